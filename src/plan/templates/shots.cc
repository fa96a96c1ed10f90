// All-reduces of small and middle sizes: one or two exchanges among all ranks (vLLM and SGLang
// custom_all_reduce.cuh, MSCCL++ allreduce_rsag_zero_copy.cu and its packet kernels).
#include "plan/build.h"
#include "plan/templates/families.h"
#include "plan/templates/gather.h"

namespace hemiola::plan {
namespace {

/// Every rank reduces everything.
Plan make_all_reduce_one_shot(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, 1}};
  const std::int32_t input = 0, output = 1, slots = 2;
  const Affine peer = partners(arguments);
  Stream stream{"exchange", {}};
  if (arguments.word("transfer") == "pull") {
    stream.items.push_back(copy(chunk_of(input), chunk_of(output)));
    repeat(stream, ranks - 1, accumulating(pull(peer, chunk_of(input), chunk_of(output))));
  } else {
    plan.in_place_safe = true;
    plan.tensors.push_back({"slots", Role::scratch, ranks - 1});
    repeat(stream, ranks - 1, push(peer, chunk_of(input), chunk_of(slots, counting())));
    stream.items.push_back(copy(chunk_of(input), chunk_of(output)));
    repeat(stream, ranks - 1,
           after(accumulating(copy(chunk_of(slots, counting()), chunk_of(output))),
                 partner_of(arguments), counting()));
  }
  run_everywhere(plan, stream);
  return plan;
}

/// Rank r reduces chunk r, then the reduced chunks are gathered.
Plan make_all_reduce_two_shot(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  const bool pull_inputs = arguments.word("transfer") == "pull";
  const bool pull_results = arguments.word("gather") == "pull";
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks}, {"output", Role::output, ranks}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1;
  const auto add_scratch = [&](const char* name, std::int64_t chunks) {
    plan.tensors.push_back({name, Role::scratch, chunks});
    return static_cast<std::int32_t>(plan.tensors.size() - 1);
  };
  const Affine peer = partners(arguments);
  const Region own = chunk_of(input, own_rank());
  // Peers pull the result from scratch, so that nobody reads an output after its owner has gone on.
  const Region result =
      pull_results ? chunk_of(add_scratch("reduced", 1)) : chunk_of(output, own_rank());

  Stream stream{"exchange", {}};
  if (pull_inputs) {
    stream.items.push_back(copy(own, result));
    repeat(stream, ranks - 1, accumulating(pull(peer, own, result)));
  } else {
    const std::int32_t slots = add_scratch("slots", ranks - 1);
    repeat(stream, ranks - 1, push(peer, chunk_of(input, peer), chunk_of(slots, counting())));
    stream.items.push_back(copy(own, result));
    repeat(stream, ranks - 1,
           after(accumulating(copy(chunk_of(slots, counting()), result)), partner_of(arguments),
                 counting()));
  }
  const std::int64_t reduced = count_transfers(stream) - 1;
  if (pull_results) {
    repeat(stream, ranks - 1,
           after(pull(peer, result, chunk_of(output, peer)), peer, constant(reduced)));
    stream.items.push_back(copy(result, chunk_of(output, own_rank())));
  } else {
    repeat(stream, ranks - 1, push(peer, result, chunk_of(output, own_rank())));
  }
  run_everywhere(plan, stream);
  return plan;
}

}  // namespace

TemplateInfo all_reduce_one_shot() {
  return {"all-reduce/one-shot",
          Collective::all_reduce,
          "each rank reduces everything",
          {transfer_parameter("pull")},
          make_all_reduce_one_shot};
}

TemplateInfo all_reduce_two_shot() {
  return {"all-reduce/two-shot",
          Collective::all_reduce,
          "each rank reduces one chunk, then all gather",
          {transfer_parameter("pull"),
           {"gather", "push", {"push", "pull"}, "how reduced chunks reach the other ranks"}},
          make_all_reduce_two_shot};
}

}  // namespace hemiola::plan
