// Rings: every rank sends to its right neighbour only and forwards what arrived from the left.
// The schedules are those of NCCL (src/device/all_reduce.h, all_gather.h, reduce_scatter.h,
// broadcast.h).
#include "plan/build.h"
#include "plan/families.h"
#include "plan/rings.h"

namespace hemiola::plan {
namespace {

/// Reduces around the ring. Step k passes chunk (rank + shift - k) on; its last step leaves chunk
/// (rank + shift + 1) complete in `result`. Appends ranks - 1 transfers to an empty stream.
void reduce_around(Stream& stream, std::int64_t ranks, std::int64_t shift, std::int32_t input,
                   std::int32_t partial, const Region& result_at_peer) {
  const Affine right = neighbour(1, ranks);
  const Affine left = neighbour(-1, ranks);
  const auto last = [&](Transfer transfer) {
    transfer.destination = result_at_peer;
    return transfer;
  };
  const Affine first_chunk = around(ranks, shift);
  const Transfer first =
      reducing(push(right, chunk_of(input, first_chunk), chunk_of(partial, first_chunk)),
               chunk_of(input, first_chunk));
  if (ranks == 2) {
    stream.items.push_back(last(first));
    return;
  }
  stream.items.push_back(first);
  const Affine chunk = around(ranks, shift - 1, -1);
  repeat(stream, ranks - 3,
         after(reducing(push(right, chunk_of(partial, chunk), chunk_of(partial, chunk)),
                        chunk_of(input, chunk)),
               left, counting()));
  const Affine last_chunk = around(ranks, shift + 2);
  stream.items.push_back(after(
      last(reducing(push(right, chunk_of(partial, last_chunk), {}), chunk_of(input, last_chunk))),
      left, constant(ranks - 3)));
}

/// Step k passes chunk (rank + shift - k) of `output` on, k = 0 .. ranks - 2. Each step needs the
/// one before it on the left; `first_needs` is the number of the transfer that step 0 needs there,
/// or -1.
void gather_around(Stream& stream, std::int64_t ranks, std::int64_t shift, std::int32_t output,
                   const Region& first_source, std::int64_t first_needs) {
  const Affine right = neighbour(1, ranks);
  const Affine left = neighbour(-1, ranks);
  const std::int64_t first_number = count_transfers(stream);
  Transfer first = push(right, first_source, chunk_of(output, around(ranks, shift)));
  if (first_needs >= 0) first = after(first, left, constant(first_needs));
  stream.items.push_back(first);
  const Affine chunk = around(ranks, shift - 1, -1);
  repeat(stream, ranks - 2,
         after(push(right, chunk_of(output, chunk), chunk_of(output, chunk)), left,
               counting(first_number)));
}

Plan make_all_reduce_ring(const TemplateArguments& arguments) {
  if (const auto rings = rings_of(arguments); !rings.empty())
    return all_reduce_along(arguments, rings);
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks},
                  {"output", Role::output, ranks},
                  {"partial", Role::transit, ranks}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1, partial = 2;
  Stream stream{"ring", {}};
  reduce_around(stream, ranks, 0, input, partial, chunk_of(output, around(ranks, 2)));
  gather_around(stream, ranks, 1, output, chunk_of(output, around(ranks, 1)), ranks - 2);
  run_everywhere(plan, stream);
  return plan;
}

Plan make_reduce_scatter_ring(const TemplateArguments& arguments) {
  if (const auto rings = rings_of(arguments); !rings.empty())
    return reduce_scatter_along(arguments, rings);
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks},
                  {"output", Role::output, 1},
                  {"partial", Role::transit, ranks}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1, partial = 2;
  Stream stream{"ring", {}};
  reduce_around(stream, ranks, -1, input, partial, chunk_of(output));
  run_everywhere(plan, stream);
  return plan;
}

Plan make_all_gather_ring(const TemplateArguments& arguments) {
  if (const auto rings = rings_of(arguments); !rings.empty())
    return all_gather_along(arguments, rings);
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, ranks}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1;
  Stream stream{"ring", {}};
  stream.items.push_back(copy(chunk_of(input), chunk_of(output, own_rank())));
  gather_around(stream, ranks, 0, output, chunk_of(input), -1);
  run_everywhere(plan, stream);
  return plan;
}

/// The root is followed by all others in order: three different codes.
Plan make_broadcast_ring(const TemplateArguments& arguments) {
  if (const auto rings = rings_of(arguments); !rings.empty())
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
  plan.code_of.assign(static_cast<std::size_t>(ranks), 1);
  plan.code_of[static_cast<std::size_t>(plan.root)] = 0;
  plan.code_of[static_cast<std::size_t>((plan.root + ranks - 1) % ranks)] = 2;
  return plan;
}

}  // namespace

TemplateInfo all_reduce_ring() {
  return {"all-reduce/ring",
          Collective::all_reduce,
          "reduce around a ring, then gather around it",
          {rings_parameter()},
          make_all_reduce_ring};
}

TemplateInfo reduce_scatter_ring() {
  return {"reduce-scatter/ring",
          Collective::reduce_scatter,
          "reduce around a ring",
          {rings_parameter()},
          make_reduce_scatter_ring};
}

TemplateInfo all_gather_ring() {
  return {"all-gather/ring",
          Collective::all_gather,
          "pass chunks around a ring",
          {rings_parameter()},
          make_all_gather_ring};
}

TemplateInfo broadcast_ring() {
  return {"broadcast/ring",
          Collective::broadcast,
          "pass everything along a chain that starts at the root",
          {root_parameter("sends"), rings_parameter()},
          make_broadcast_ring};
}

}  // namespace hemiola::plan
