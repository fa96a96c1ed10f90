#include "workload/costs/fuse.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/data_type.h"
#include "core/index.h"
#include "workload/once.h"

namespace hemiola::workload {
namespace {

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
    const std::vector<std::int32_t> class_of = classes_of_ranks(workload);
    for (const GroupFamily& family : workload.families)
      is_in_a_class_.push_back(
          std::ranges::all_of(family.groups, [&](const std::vector<int>& group) {
            return std::ranges::all_of(group, [&](int rank) {
              return class_of[index(rank)] == class_of[index(group.front())];
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
    std::uint32_t product = kNoNode, call = kNoNode;
  };

  bool depends(const Trace& trace, std::uint32_t node, std::uint32_t on) const {
    const auto waited = trace.dependencies_of(trace.nodes[node]);
    return std::ranges::find(waited, on) != waited.end();
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
    std::vector<std::uint32_t> last_waiter(trace.nodes.size(), kNoNode);
    std::vector<std::uint32_t> first_waiter(trace.nodes.size(), kNoNode);
    for (std::uint32_t n = 0; n < trace.nodes.size(); ++n) {
      for (const std::uint32_t on : trace.dependencies_of(trace.nodes[n])) {
        if (first_waiter[on] == kNoNode) first_waiter[on] = n;
        last_waiter[on] = n;
      }
    }
    std::uint32_t before = kNoNode;  // the kernel before, and whether it is fused already
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
        if (before != kNoNode && !is_taken && waits && kind != Collective::all_gather &&
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
    CollectiveCall both = call_of(call);
    both.product = product.work;
    return calls_.find(result_.collectives, both);
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
    std::vector<Node> nodes = one.trace->nodes;
    std::vector<std::uint32_t> call_of_product(nodes.size(), kNoNode);
    for (const Pair& pair : pairs) {
      Node& product = nodes[pair.product];
      Node& call = nodes[pair.call];
      if (pair.call < pair.product) call_of_product[pair.product] = pair.call;
      product.name = fused_name(product, call);
      product.work = fused_call(product, call);
      product.kind = NodeKind::collective;
      call.kind = NodeKind::nothing;
      call.work = -1;
    }
    // A product takes over what its all-gather waited for.
    auto made = std::make_shared<Trace>();
    made->source = one.trace->source;
    std::vector<std::uint32_t> waited;
    for (std::uint32_t n = 0; n < nodes.size(); ++n) {
      const auto own = one.trace->dependencies_of(one.trace->nodes[n]);
      waited.assign(own.begin(), own.end());
      if (call_of_product[n] != kNoNode) {
        const auto more = one.trace->dependencies_of(one.trace->nodes[call_of_product[n]]);
        waited.insert(waited.end(), more.begin(), more.end());
      }
      made->add(nodes[n], waited);
    }
    one.trace = std::move(made);
    return true;
  }

  Workload result_;
  const std::vector<CollectiveRule>& rules_;
  const std::vector<Collective>& without_;
  std::vector<bool> is_in_a_class_;  ///< by family: each group
  OnceList<CollectiveCall> calls_;
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
