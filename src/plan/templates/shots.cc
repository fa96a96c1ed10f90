// All-reduces of small and middle sizes: one or two exchanges among all ranks (vLLM and SGLang
// custom_all_reduce.cuh, MSCCL++ allreduce_rsag_zero_copy.cu and its packet kernels).
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/gather.h"

namespace hemiola::plan {
namespace {

/// Every rank reduces everything.
Plan make_all_reduce_one_shot(const TemplateArguments& arguments) {
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, 1}};
  plan.in_place_safe = arguments.word("transfer") == "push";
  Stream stream{"exchange", {}};
  reduce_directly(
      arguments, plan, stream, [](const Affine&) { return chunk_of(kInput); }, chunk_of(kOutput));
  run_everywhere(plan, stream);
  return plan;
}

/// Rank r reduces chunk r, then the reduced chunks are gathered.
Plan make_all_reduce_two_shot(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  const bool pull_results = arguments.word("gather") == "pull";
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks}, {"output", Role::output, ranks}};
  plan.in_place_safe = true;
  const Affine peer = partners(arguments);
  // Peers pull the result from scratch, so that nobody reads an output after its owner has gone on.
  if (pull_results) plan.tensors.push_back({"reduced", Role::scratch, 1});
  const Region result = pull_results ? chunk_of(2) : chunk_of(kOutput, own_rank());
  Stream stream{"exchange", {}};
  reduce_directly(
      arguments, plan, stream, [](const Affine& rank) { return chunk_of(kInput, rank); }, result);
  const std::int64_t reduced = count_transfers(stream) - 1;
  if (pull_results) {
    repeat(stream, ranks - 1,
           after(pull(peer, result, chunk_of(kOutput, peer)), peer, constant(reduced)));
    stream.items.push_back(copy(result, chunk_of(kOutput, own_rank())));
  } else {
    repeat(stream, ranks - 1, push(peer, result, chunk_of(kOutput, own_rank())));
  }
  run_everywhere(plan, stream);
  return plan;
}

}  // namespace

std::vector<TemplateInfo> shot_templates() {
  return of_collectives(
      {{"all-reduce/two-shot",
        "each rank reduces one chunk, then all gather",
        {transfer_parameter("pull"),
         {"gather", "push", {"push", "pull"}, "how reduced chunks reach the other ranks"}},
        make_all_reduce_two_shot},
       {"all-reduce/one-shot",
        "each rank reduces everything",
        {transfer_parameter("pull")},
        make_all_reduce_one_shot}});
}

}  // namespace hemiola::plan
