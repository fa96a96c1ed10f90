#include "verify/promises.h"

#include "plan/collective_shape.h"
#include "plan/in_place.h"
#include "verify/unrolled.h"

namespace hemiola::verify {
namespace {

std::vector<plan::Area> parts(const plan::Area& area, std::int64_t count) {
  std::vector<plan::Area> result;
  const std::int64_t share = area.elements() / count;
  for (std::int64_t i = 0; i < count; ++i) result.push_back(part(area, i * share, share));
  return result;
}

}  // namespace

Promises promises(const plan::Plan& plan, std::string& reason) {
  Promises result;
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
  std::int64_t in_parts = 1, out_parts = 1;
  if (plan.collective == Collective::reduce_scatter || plan.collective == Collective::all_to_all)
    in_parts = ranks;
  if (plan.collective == Collective::all_gather || plan.collective == Collective::all_to_all)
    out_parts = ranks;
  if (from.elements() % in_parts != 0 || to.elements() % out_parts != 0 ||
      from.elements() / in_parts != to.elements() / out_parts) {
    reason = "the sizes of input and output do not fit the collective";
    return result;
  }
  result.inputs = parts(from, in_parts);
  result.outputs = parts(to, out_parts);
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    std::vector<Promise>& own = result.of.emplace_back();
    switch (plan.collective) {
      case Collective::all_reduce:
        own.push_back({0, 0, 0, ranks});
        break;
      case Collective::reduce:
        if (rank == plan.root) own.push_back({0, 0, 0, ranks});
        break;
      case Collective::reduce_scatter:
        own.push_back({0, rank, 0, ranks});
        break;
      case Collective::broadcast:
        own.push_back({0, 0, plan.root, 1});
        break;
      case Collective::send_recv:  // as nccl-tests: everyone sends to the next rank
        own.push_back({0, 0, (rank + ranks - 1) % ranks, 1});
        break;
      case Collective::all_gather:
        for (std::int32_t peer = 0; peer < ranks; ++peer) own.push_back({peer, 0, peer, 1});
        break;
      case Collective::all_to_all:
        for (std::int32_t peer = 0; peer < ranks; ++peer) own.push_back({peer, rank, peer, 1});
        break;
      case Collective::custom:
        break;
    }
  }
  return result;
}

}  // namespace hemiola::verify
