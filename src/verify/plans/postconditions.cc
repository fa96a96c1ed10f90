#include "verify/plans/postconditions.h"

#include "plan/collective_shape.h"
#include "plan/in_place.h"
#include "verify/plans/unrolled.h"

namespace hemiola::verify {
namespace {

std::vector<plan::Area> parts(const plan::Area& area, std::int64_t count) {
  std::vector<plan::Area> result;
  const std::int64_t share = area.elements() / count;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(part(area, i * share, share));
  return result;
}

}  // namespace

Postconditions postconditions(const plan::Plan& plan, std::string& reason) {
  Postconditions result;
  const std::int32_t input = only_tensor(plan, plan::Role::input);
  const std::int32_t output = only_tensor(plan, plan::Role::output);
  if (plan::states_result(plan) || input < 0 || output < 0) {
    reason = plan::states_result(plan)
                 ? "no rank says what it expects"
                 : "a collective has one input and one output tensor; this plan has not";
    return result;
  }
  const plan::Area from = whole(plan, input), to = whole(plan, output);
  const std::int32_t ranks = plan.ranks;
  const auto [in_parts, out_parts] = plan::parts_of(plan.collective, ranks);
  if (from.elements() % in_parts != 0 || to.elements() % out_parts != 0 ||
      from.elements() / in_parts != to.elements() / out_parts) {
    reason = "the sizes of input and output do not fit the collective";
    return result;
  }
  result.inputs = parts(from, in_parts);
  result.outputs = parts(to, out_parts);
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    result.of.push_back(plan::postconditions_of(plan.collective, ranks, plan.root, rank));
  return result;
}

}  // namespace hemiola::verify
