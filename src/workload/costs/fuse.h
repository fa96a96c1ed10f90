// Products and their collectives in one launch: what asynchronous tensor parallelism makes of them.
#pragma once

#include <memory>
#include <vector>

#include "workload/costs/simulated_costs.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// The rule that a product and its collective in groups of so many ranks run by; null: none fuses
/// them. `product` is that of one rank.
const CollectiveRule* fusing_rule(const std::vector<CollectiveRule>& rules, Collective kind,
                                  int ranks, const machine::GemmShape& product);

/// The product of all ranks together, as `explore --gemm` counts it: an all-gather's ranks have
/// columns of it each, those of a sum a part of `k`.
machine::GemmShape whole_product(Collective kind, int ranks, machine::GemmShape product);

/// Where a rule fuses them, one node for
///  * an all-gather and the product that waits for it, where no kernel lies between them: the left
///    matrix of the product is what was gathered;
///  * a product and the reduce-scatter or all-reduce of its result, where the next kernel waits for
///    that.
/// The node is a collective on the stream of the product (CollectiveCall::product), which depends
/// on what both depended on; where the collective was is a node that takes no time. What already
/// runs beside another kernel stays as it is, and so do groups whose ranks do not all do the same,
/// and collectives that are left out (`without`). The same workload where nothing is fused.
std::shared_ptr<const Workload> fuse_products(std::shared_ptr<const Workload> workload,
                                              const std::vector<CollectiveRule>& rules,
                                              const std::vector<Collective>& without);

}  // namespace hemiola::workload
