// Direct exchanges: every rank talks to every other, starting with its right neighbour, so that in
// each step all ranks have different partners.
#include "plan/build.h"
#include "plan/families.h"

namespace hemiola::plan {
namespace {

Plan make_all_gather_direct(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, ranks}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1;
  const Affine peer = around(ranks, 1, 1);
  Stream stream{"exchange", {}};
  repeat(stream, ranks - 1,
         arguments.word("transfer") == "push"
             ? push(peer, chunk_of(input), chunk_of(output, own_rank()))
             : pull(peer, chunk_of(input), chunk_of(output, peer)));
  stream.items.push_back(copy(chunk_of(input), chunk_of(output, own_rank())));
  run_everywhere(plan, stream);
  return plan;
}

Plan make_all_to_all_direct(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks}, {"output", Role::output, ranks}};
  const std::int32_t input = 0, output = 1;
  const Affine peer = around(ranks, 1, 1);
  Stream stream{"exchange", {}};
  repeat(stream, ranks - 1,
         arguments.word("transfer") == "push"
             ? push(peer, chunk_of(input, peer), chunk_of(output, own_rank()))
             : pull(peer, chunk_of(input, own_rank()), chunk_of(output, peer)));
  stream.items.push_back(copy(chunk_of(input, own_rank()), chunk_of(output, own_rank())));
  run_everywhere(plan, stream);
  return plan;
}

Plan make_reduce_scatter_direct(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks}, {"output", Role::output, 1}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1, slots = 2;
  const Region own = chunk_of(input, own_rank());
  const Region result = chunk_of(output);
  const Affine peer = around(ranks, 1, 1);
  Stream stream{"exchange", {}};
  if (arguments.word("transfer") == "pull") {
    stream.items.push_back(copy(own, result));
    repeat(stream, ranks - 1, accumulating(pull(peer, own, result)));
  } else {
    plan.tensors.push_back({"slots", Role::scratch, ranks - 1});
    repeat(stream, ranks - 1, push(peer, chunk_of(input, peer), chunk_of(slots, counting())));
    stream.items.push_back(copy(own, result));
    repeat(stream, ranks - 1,
           after(accumulating(copy(chunk_of(slots, counting()), result)), around(ranks, -1, -1),
                 counting()));
  }
  run_everywhere(plan, stream);
  return plan;
}

}  // namespace

TemplateInfo all_gather_direct() {
  return {"all-gather/direct",
          Collective::all_gather,
          "each rank exchanges with every other",
          {transfer_parameter("push")},
          make_all_gather_direct};
}

TemplateInfo all_to_all_direct() {
  return {"all-to-all/direct",
          Collective::all_to_all,
          "each rank exchanges with every other",
          {transfer_parameter("push")},
          make_all_to_all_direct};
}

TemplateInfo reduce_scatter_direct() {
  return {"reduce-scatter/direct",
          Collective::reduce_scatter,
          "each rank reduces its chunk from all others",
          {transfer_parameter("pull")},
          make_reduce_scatter_direct};
}

}  // namespace hemiola::plan
