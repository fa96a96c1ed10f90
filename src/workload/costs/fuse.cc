#include "workload/costs/fuse.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/data_type.h"
#include "core/index.h"

namespace hemiola::workload {
namespace {

constexpr std::uint32_t kNobody = ~std::uint32_t{0};

/// Bytes of the matrix of a product that its collective gathers, or sums.
std::int64_t moved_bytes(Collective kind, const machine::GemmShape& product) {
  if (kind == Collective::all_gather) return product.m * product.k * size_of(product.type);
  return product.m * product.n * size_of(product.output.value_or(product.type));
}

class Fuser {
 public:
  Fuser(const Workload& workload, const std::vector<CollectiveRule>& rules,
        const std::vector<Collective>& without)
      : result_(workload), rules_(rules), without_(without) {
    class_of_.resize(index(workload.ranks));
    for (std::size_t c = 0; c < workload.classes.size(); ++c)
      for (const int rank : workload.classes[c].ranks) class_of_[index(rank)] = c;
    for (const GroupFamily& family : workload.families)
      is_in_a_class_.push_back(
          std::ranges::all_of(family.groups, [&](const std::vector<int>& group) {
            return std::ranges::all_of(group, [&](int rank) {
              return class_of_[index(rank)] == class_of_[index(group.front())];
            });
          }));
  }

  bool run() {
    bool any = false;
    for (RankClass& one : result_.classes) any = fuse_trace(one) || any;
    return any;
  }
  Workload take() { return std::move(result_); }

 private:
  /// A product and its collective, as indices of nodes.
  struct Pair {
    std::uint32_t product = kNobody, call = kNobody;
  };

  bool depends(const Trace& trace, std::uint32_t node, std::uint32_t on) const {
    const auto first = trace.dependencies.begin() + trace.nodes[node].first_dependency;
    const auto last = first + trace.nodes[node].dependencies;
    return std::find(first, last, on) != last;
  }

  const CollectiveCall& call_of(const Node& node) const {
    return result_.collectives[index(node.work)];
  }

  /// Whether a rule fuses them, wherever they stand.
  bool go_together(const Node& product, const Node& call) const {
    if (product.kind != NodeKind::compute || product.work < 0) return false;
    if (call.kind != NodeKind::collective) return false;
    const Compute& compute = result_.computes[index(product.work)];
    const CollectiveCall& one = call_of(call);
    if (compute.kind != Compute::Kind::product || compute.product.batch != 1) return false;
    if (!is_in_a_class_[index(one.family)] || one.product >= 0) return false;
    if (std::ranges::find(without_, one.kind) != without_.end()) return false;
    const auto ranks = static_cast<int>(result_.families[index(one.family)].groups.front().size());
    return ranks > 1 && moved_bytes(one.kind, compute.product) == one.bytes &&
           fusing_rule(rules_, one.kind, ranks, compute.product) != nullptr;
  }

  std::vector<Pair> find(const Trace& trace) const {
    std::vector<Pair> found;
    // Of calls: who else waits for them.
    std::vector<std::uint32_t> last_waiter(trace.nodes.size(), kNobody);
    std::vector<std::uint32_t> first_waiter(trace.nodes.size(), kNobody);
    for (std::uint32_t n = 0; n < trace.nodes.size(); ++n) {
      for (std::uint32_t d = 0; d < trace.nodes[n].dependencies; ++d) {
        const std::uint32_t on = trace.dependencies[trace.nodes[n].first_dependency + d];
        if (first_waiter[on] == kNobody) first_waiter[on] = n;
        last_waiter[on] = n;
      }
    }
    std::uint32_t before = kNobody;  // the kernel before, and whether it is fused already
    bool is_taken = false;
    std::vector<std::uint32_t> calls;  // since then
    for (std::uint32_t n = 0; n < trace.nodes.size(); ++n) {
      const Node& node = trace.nodes[n];
      if (node.kind == NodeKind::collective) calls.push_back(n);
      if (!is_kernel(node.kind)) continue;
      if (!result_.streams[node.stream].in_order) return {};  // no kernel is the next one
      bool is_fused = false;
      for (const std::uint32_t call : calls) {
        const Collective kind = call_of(trace.nodes[call]).kind;
        const bool waits = depends(trace, n, call) && first_waiter[call] == n;
        // The sum of what the kernel before made.
        if (before != kNobody && !is_taken && waits && kind != Collective::all_gather &&
            depends(trace, call, before) && go_together(trace.nodes[before], trace.nodes[call])) {
          found.push_back({before, call});
          is_taken = true;
        }
        // What this kernel multiplies.
        if (!is_fused && waits && kind == Collective::all_gather && last_waiter[call] == n &&
            go_together(node, trace.nodes[call])) {
          found.push_back({n, call});
          is_fused = true;
        }
      }
      before = n;
      is_taken = is_fused;
      calls.clear();
    }
    return found;
  }

  std::int32_t fused_call(const Node& product, const Node& call) {
    const auto [at, is_new] = calls_.emplace(std::pair(product.work, call.work),
                                             static_cast<std::int32_t>(result_.collectives.size()));
    if (is_new) {
      CollectiveCall both = call_of(call);
      both.product = product.work;
      result_.collectives.push_back(both);
    }
    return at->second;
  }

  std::uint32_t fused_name(const Node& product, const Node& call) {
    const auto [at, is_new] = names_.emplace(std::pair(product.name, call.name),
                                             static_cast<std::uint32_t>(result_.names.size()));
    if (is_new)
      result_.names.push_back(result_.names[product.name] + " with " + result_.names[call.name]);
    return at->second;
  }

  bool fuse_trace(RankClass& one) {
    const std::vector<Pair> pairs = find(*one.trace);
    if (pairs.empty()) return false;
    auto made = std::make_shared<Trace>(*one.trace);
    std::vector<std::uint32_t> call_of_product(made->nodes.size(), kNobody);
    for (const Pair& pair : pairs) {
      Node& product = made->nodes[pair.product];
      Node& call = made->nodes[pair.call];
      if (pair.call < pair.product) call_of_product[pair.product] = pair.call;
      product.name = fused_name(product, call);
      product.work = fused_call(product, call);
      product.kind = NodeKind::collective;
      call.kind = NodeKind::nothing;
      call.work = -1;
    }
    // A product takes over what its all-gather waited for.
    made->dependencies.clear();
    for (std::uint32_t n = 0; n < made->nodes.size(); ++n) {
      const auto first = static_cast<std::uint32_t>(made->dependencies.size());
      const auto add = [&](const Node& of) {
        for (std::uint32_t d = 0; d < of.dependencies; ++d)
          made->dependencies.push_back(one.trace->dependencies[of.first_dependency + d]);
      };
      add(one.trace->nodes[n]);
      if (call_of_product[n] != kNobody) add(one.trace->nodes[call_of_product[n]]);
      made->nodes[n].first_dependency = first;
      made->nodes[n].dependencies = static_cast<std::uint32_t>(made->dependencies.size()) - first;
    }
    one.trace = std::move(made);
    return true;
  }

  Workload result_;
  const std::vector<CollectiveRule>& rules_;
  const std::vector<Collective>& without_;
  std::vector<std::size_t> class_of_;  ///< by rank
  std::vector<bool> is_in_a_class_;    ///< by family: each group
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> calls_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> names_;
};

}  // namespace

const CollectiveRule* fusing_rule(const std::vector<CollectiveRule>& rules, Collective kind,
                                  int ranks, const machine::GemmShape& product) {
  const CollectiveRule* found = nullptr;
  for (const CollectiveRule& rule : rules) {
    if (!rule.is_fused || rule.kind != kind || (rule.ranks != 0 && rule.ranks != ranks)) continue;
    const machine::GemmShape whole = whole_product(kind, ranks, product);
    if (rule.product &&
        (rule.product->m != whole.m || rule.product->n != whole.n || rule.product->k != whole.k))
      continue;
    found = &rule;
  }
  return found;
}

machine::GemmShape whole_product(Collective kind, int ranks, machine::GemmShape product) {
  (kind == Collective::all_gather ? product.n : product.k) *= ranks;
  return product;
}

std::shared_ptr<const Workload> fuse_products(std::shared_ptr<const Workload> workload,
                                              const std::vector<CollectiveRule>& rules,
                                              const std::vector<Collective>& without) {
  const bool any =
      std::ranges::any_of(rules, [](const CollectiveRule& rule) { return rule.is_fused; });
  if (!any) return workload;
  Fuser fuser(*workload, rules, without);
  if (!fuser.run()) return workload;
  return std::make_shared<const Workload>(fuser.take());
}

}  // namespace hemiola::workload
