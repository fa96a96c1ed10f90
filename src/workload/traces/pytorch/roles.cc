#include "workload/traces/pytorch/roles.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "core/index.h"
#include "workload/traces/pytorch/operators.h"
#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

/// All below it belongs to the call.
bool is_inside_call(std::string_view name) {
  return name == "record_param_comms" || name.starts_with("nccl:");
}
/// Calls, and may copy its arguments before it does.
bool is_around_call(std::string_view name) {
  return name.find("c10d") != std::string_view::npos;
}

/// Writes an output without computing it.
bool fills_or_copies(std::string_view name) {
  const std::string_view plain = operator_of(name);
  return plain == "aten::fill_" || plain == "aten::zero_" || plain == "aten::copy_";
}

/// Made of fills and copies, with no kernel of its own beside them.
bool is_made_of_copies(std::string_view name) {
  constexpr std::array<std::string_view, 42> kNames{"to",
                                                    "_to_copy",
                                                    "contiguous",
                                                    "clone",
                                                    "copy_",
                                                    "reshape",
                                                    "reshape_as",
                                                    "flatten",
                                                    "ravel",
                                                    "repeat",
                                                    "tile",
                                                    "type_as",
                                                    "cat",
                                                    "_cat",
                                                    "stack",
                                                    "zeros",
                                                    "zeros_like",
                                                    "ones",
                                                    "ones_like",
                                                    "full",
                                                    "full_like",
                                                    "new_zeros",
                                                    "new_ones",
                                                    "new_full",
                                                    "zero_",
                                                    "fill_",
                                                    "pad",
                                                    "constant_pad_nd",
                                                    "slice_backward",
                                                    "select_backward",
                                                    "select_copy",
                                                    "slice_scatter",
                                                    "select_scatter",
                                                    "scalar_tensor",
                                                    "cuda",
                                                    "float",
                                                    "half",
                                                    "bfloat16",
                                                    "double",
                                                    "int",
                                                    "long",
                                                    "repeat_interleave"};
  std::string_view plain = operator_of(name);
  // Nodes of the autograd graph run operators, and are none.
  if (plain.find("::") == std::string_view::npos ||
      plain.find("autograd::") != std::string_view::npos)
    return true;
  if (!plain.starts_with("aten::")) return false;
  plain.remove_prefix(6);
  return std::find(kNames.begin(), kNames.end(), plain) != kNames.end();
}

class RoleFinder {
 public:
  explicit RoleFinder(const std::vector<TorchNode>& nodes) : nodes_(nodes) {
    found_.roles.resize(nodes.size());
    found_.writes.resize(nodes.size());
    children_.resize(nodes.size());
    visited_.resize(nodes.size());
    std::unordered_map<std::uint64_t, std::uint32_t> place;
    for (std::uint32_t i = 0; i < nodes.size(); ++i) place.emplace(nodes[i].id, i);
    for (std::uint32_t i = 0; i < nodes.size(); ++i) {
      const auto parent = place.find(nodes[i].parent);
      if (parent == place.end() || parent->second == i) {
        roots_.push_back(i);
      } else {
        children_[parent->second].push_back(i);
      }
    }
  }

  OperatorRoles find() {
    for (const std::uint32_t root : roots_) walk(root);
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) walk(i);  // callers that call each other
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      const OperatorRole role = found_.roles[n];
      OperatorCounts& counts = found_.counts;
      if (role == OperatorRole::kernel) ++counts.kernels;
      if (role == OperatorRole::alias) ++counts.aliases;
      if (role == OperatorRole::covered) ++counts.covered;
      // What lies around and inside a call is covered by it.
      if (role == OperatorRole::call)
        ++(nodes_[n].name == "record_param_comms" ? counts.calls : counts.covered);
      if (role == OperatorRole::host) ++counts.host;
    }
    return std::move(found_);
  }

 private:
  struct Visit {
    std::uint32_t node = 0;
    std::size_t next = 0;  ///< of its children
    bool is_in_call = false;
  };

  /// Children before their callers. Operators nest as deep as somebody's program does, so without
  /// recursion.
  void walk(std::uint32_t root) {
    std::vector<Visit> open;
    const auto enter = [&](std::uint32_t node, bool is_in_call) {
      if (visited_[node]) return;
      visited_[node] = true;
      open.push_back({node, 0, is_in_call || is_inside_call(nodes_[node].name)});
    };
    enter(root, false);
    while (!open.empty()) {
      Visit& top = open.back();
      if (top.next < children_[top.node].size()) {
        const std::uint32_t child = children_[top.node][top.next++];
        enter(child, top.is_in_call);
        continue;
      }
      decide(top);
      open.pop_back();
    }
  }

  void decide(const Visit& visit) {
    OperatorRole& role = found_.roles[visit.node];
    if (visit.is_in_call || is_around_call(nodes_[visit.node].name)) {
      role = OperatorRole::call;
      return;
    }
    OperatorEffect effect = effect_of(nodes_[visit.node]);
    if (!effect.is_on_gpu) return;
    if (effect.writes.empty()) {
      role = OperatorRole::alias;
      return;
    }
    if (!children_[visit.node].empty()) drop_covered(visit.node, effect.writes);
    role = effect.writes.empty() ? OperatorRole::covered : OperatorRole::kernel;
    found_.writes[visit.node] = std::move(effect.writes);
  }

  /// Takes away the storages that kernels and calls below the operator write.
  void drop_covered(std::uint32_t node, std::vector<std::int64_t>& writes) const {
    const bool by_copies = is_made_of_copies(nodes_[node].name);
    std::vector<std::uint32_t> below = children_[node];
    std::size_t looked = 0;
    while (!below.empty() && !writes.empty()) {
      const std::uint32_t one = below.back();
      below.pop_back();
      if (looked++ > nodes_.size()) return;  // callers that call each other
      below.insert(below.end(), children_[one].begin(), children_[one].end());
      const bool is_kernel = found_.roles[one] == OperatorRole::kernel;
      if (is_kernel && !by_copies && fills_or_copies(nodes_[one].name)) continue;
      if (is_kernel) drop(found_.writes[one], writes);
      if (found_.roles[one] == OperatorRole::call) drop(effect_of(nodes_[one]).writes, writes);
    }
  }

  static void drop(const std::vector<std::int64_t>& what, std::vector<std::int64_t>& from) {
    std::erase_if(from, [&](std::int64_t storage) {
      return std::find(what.begin(), what.end(), storage) != what.end();
    });
  }

  const std::vector<TorchNode>& nodes_;
  OperatorRoles found_;
  std::vector<std::vector<std::uint32_t>> children_;
  std::vector<std::uint32_t> roots_;
  std::vector<bool> visited_;
};

}  // namespace

OperatorRoles roles_of(const std::vector<TorchNode>& nodes) {
  return RoleFinder(nodes).find();
}

}  // namespace hemiola::workload
