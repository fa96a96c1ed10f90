#include "workload/traces/pytorch/roles.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/lists.h"
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

/// Made of fills and copies, with no kernel of its own beside them.
bool is_made_of_copies(std::string_view name) {
  static const std::vector<std::string_view> kNames = words_of(
      "to _to_copy contiguous clone copy_ reshape reshape_as flatten ravel repeat tile "
      "type_as cat _cat stack zeros zeros_like ones ones_like full full_like new_zeros "
      "new_ones new_full zero_ fill_ pad constant_pad_nd slice_backward select_backward "
      "select_copy slice_scatter select_scatter scalar_tensor cuda float half bfloat16 "
      "double int long repeat_interleave");
  std::string_view plain = operator_of(name);
  // Nodes of the autograd graph run operators, and are none.
  if (plain.find("::") == std::string_view::npos ||
      plain.find("autograd::") != std::string_view::npos)
    return true;
  if (!plain.starts_with("aten::")) return false;
  plain.remove_prefix(6);
  return std::ranges::find(kNames, plain) != kNames.end();
}

/// Storages that the kernels and calls of an operator, and of those below it, write.
struct Written {
  std::unordered_set<std::int64_t> computed, copied;

  void add(const std::vector<std::int64_t>& storages, bool by_copy) {
    (by_copy ? copied : computed).insert(storages.begin(), storages.end());
  }
  /// The smaller into the larger, so that deep nesting costs n log n.
  void take(Written& other) {
    merge(computed, other.computed);
    merge(copied, other.copied);
  }

 private:
  static void merge(std::unordered_set<std::int64_t>& into,
                    std::unordered_set<std::int64_t>& from) {
    if (into.size() < from.size()) into.swap(from);
    into.insert(from.begin(), from.end());
  }
};

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
      if (parent == place.end() || parent->second == i)
        roots_.push_back(i);
      else
        children_[parent->second].push_back(i);
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
    Written below{};  ///< by the children that are done
  };

  /// Children before their callers. Operators nest as deep as somebody's program does, so without
  /// recursion.
  void walk(std::uint32_t root) {
    std::vector<Visit> open;
    const auto enter = [&](std::uint32_t node, bool is_in_call) {
      if (visited_[node]) return;
      visited_[node] = true;
      open.push_back({node, 0, is_in_call || is_inside_call(nodes_[node].name), {}});
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
      if (open.size() > 1) open[open.size() - 2].below.take(top.below);
      open.pop_back();
    }
  }

  void decide(Visit& visit) {
    const TorchNode& node = nodes_[visit.node];
    OperatorRole& role = found_.roles[visit.node];
    OperatorEffect effect = effect_of(node);
    if (visit.is_in_call || is_around_call(node.name)) {
      role = OperatorRole::call;
      visit.below.add(effect.writes, false);
      return;
    }
    if (!effect.is_on_gpu) return;
    if (effect.writes.empty()) {
      role = OperatorRole::alias;
      return;
    }
    const bool by_copies = is_made_of_copies(node.name);
    std::erase_if(effect.writes, [&](std::int64_t storage) {
      return visit.below.computed.contains(storage) ||
             (by_copies && visit.below.copied.contains(storage));
    });
    role = effect.writes.empty() ? OperatorRole::covered : OperatorRole::kernel;
    visit.below.add(effect.writes, fills_or_copies(node.name));
    found_.writes[visit.node] = std::move(effect.writes);
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
