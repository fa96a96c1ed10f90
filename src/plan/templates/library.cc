// Whole collectives as transfers: left to a library, or done by a switch that multicasts and
// reduces (NVLS: multimem.ld_reduce and multimem.st of NCCL and of vLLM's and TensorRT-LLM's
// kernels).
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/gather.h"

namespace hemiola::plan {
namespace {

Plan make_all_reduce_partitioned(const TemplateArguments& arguments) {
  const std::int64_t parts = split_of(arguments);
  Plan plan = start_plan(arguments, parts);
  plan.tensors = {{"input", Role::input, parts}, {"output", Role::output, parts}};
  plan.groups = {everybody(plan.ranks)};
  plan.in_place_safe = true;
  Stream stream{"collectives", {}};
  repeat(stream, parts,
         collective_of(Collective::all_reduce, chunk_of(0, counting()), chunk_of(1, counting())));
  run_everywhere(plan, stream);
  return plan;
}

Plan make_reduce_scatter_collective(const TemplateArguments& arguments) {
  const std::int64_t parts = split_of(arguments), ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks * parts);
  plan.tensors = {{"input", Role::input, ranks * parts}, {"output", Role::output, parts}};
  plan.groups = {everybody(plan.ranks)};
  plan.in_place_safe = true;
  Region source = chunks_of(0, {}, ranks);
  if (parts > 1) {
    source.boxes.clear();
    for (std::int64_t rank = 0; rank < ranks; ++rank)
      source.boxes.push_back({{counting(rank * parts), 1}});
  }
  Stream stream{"collectives", {}};
  repeat(stream, parts, collective_of(Collective::reduce_scatter, source, chunk_of(1, counting())));
  run_everywhere(plan, stream);
  return plan;
}

/// The switch reduces the own chunk of all ranks; what comes back goes to all through it.
Plan make_all_reduce_nvls(const TemplateArguments& arguments) {
  const std::int64_t parts = split_of(arguments), ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks * parts);
  plan.tensors = {{"input", Role::input, ranks * parts},
                  {"output", Role::output, ranks * parts},
                  {"reduced", Role::transit, parts}};
  plan.groups = {everybody(plan.ranks)};
  plan.in_place_safe = true;
  plan.lowering = {kThroughSwitch};
  Stream stream{"switch", {}};
  for (std::int64_t part = 0; part < parts; ++part) {
    const Affine own = scaled(own_rank(), parts, part);
    const Region reduced = chunk_of(2, constant(part));
    Transfer load = pull(own_rank(), chunk_of(0, own), reduced);
    load.reduce = ReduceOp::sum;
    Transfer store = push(own_rank(), reduced, chunk_of(1, own));
    for (Transfer* transfer : {&load, &store}) {
      transfer->group = 0;
      stream.items.emplace_back(*transfer);
    }
  }
  run_everywhere(plan, stream);
  return plan;
}

}  // namespace

std::vector<TemplateInfo> library_templates() {
  return of_collectives({{"all-reduce/partitioned",
                          "one all-reduce of a library for each part",
                          {split_parameter()},
                          make_all_reduce_partitioned},
                         {"reduce-scatter/collective",
                          "one reduce-scatter of a library for each part",
                          {split_parameter()},
                          make_reduce_scatter_collective},
                         {"all-reduce/nvls",
                          "the switch reduces a chunk per rank and multicasts the result",
                          {split_parameter()},
                          make_all_reduce_nvls}});
}

}  // namespace hemiola::plan
