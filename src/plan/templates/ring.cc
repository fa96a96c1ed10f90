// Rings: every rank sends to its right neighbour only and forwards what arrived from the left.
// The schedules are those of NCCL (src/device/all_reduce.h, all_gather.h, reduce_scatter.h,
// broadcast.h).
#include <algorithm>

#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/rings.h"

namespace hemiola::plan {
namespace {

/// The root is followed by all others in order: three different codes.
Plan make_broadcast_ring(const TemplateArguments& arguments) {
  const std::vector<Ring> rings = rings_of(arguments);
  if (rings.size() > 1 || !std::ranges::is_sorted(rings.front()))
    return broadcast_along(arguments, rings);
  const int ranks = arguments.ranks;
  Plan plan = start_plan(arguments, 1);
  plan.root = root_of(arguments);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, 1}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1;
  const Affine right = neighbour(1, ranks);
  const Affine left = neighbour(-1, ranks);
  const Stream root{
      "root",
      {push(right, chunk_of(input), chunk_of(output)), copy(chunk_of(input), chunk_of(output))}};
  const Stream middle{"middle",
                      {after(push(right, chunk_of(output), chunk_of(output)), left, constant(0))}};
  const Stream last{"last", {}};
  plan.codes = {Code{{root}}, Code{{middle}}, Code{{last}}};
  plan.code_of.assign(index(ranks), 1);
  plan.code_of[index(plan.root)] = 0;
  plan.code_of[index((plan.root + ranks - 1) % ranks)] = 2;
  return plan;
}

}  // namespace

std::vector<TemplateInfo> ring_templates() {
  return of_collectives(
      {{"all-reduce/ring",
        "reduce around a ring, then gather around it",
        {rings_parameter()},
        [](const TemplateArguments& all) { return all_reduce_along(all, rings_of(all)); }},
       {"reduce-scatter/ring",
        "reduce around a ring",
        {rings_parameter()},
        [](const TemplateArguments& all) { return reduce_scatter_along(all, rings_of(all)); }},
       {"all-gather/ring",
        "pass chunks around a ring",
        {rings_parameter()},
        [](const TemplateArguments& all) { return all_gather_along(all, rings_of(all)); }},
       {"broadcast/ring",
        "pass everything along a chain that starts at the root",
        {root_parameter("sends"), rings_parameter()},
        make_broadcast_ring}});
}

}  // namespace hemiola::plan
