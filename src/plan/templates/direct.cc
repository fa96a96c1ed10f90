// Direct exchanges: every rank talks to every other, in each step all to different ones.
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/gather.h"

namespace hemiola::plan {
namespace {

Plan make_all_gather_direct(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, ranks}};
  plan.in_place_safe = true;
  const auto own = [](const Affine&) { return chunk_of(kInput); };
  const auto gathered = [](const Affine& owner) { return chunk_of(kOutput, owner); };
  Stream stream{"exchange", {}};
  repeat(stream, ranks - 1,
         exchanged(arguments, partners(arguments, is_clockwise(arguments)), own, gathered));
  stream.items.push_back(copy(own(own_rank()), gathered(own_rank())));
  run_everywhere(plan, stream);
  return plan;
}

/// In waves: part w of every chunk goes to all peers before part w + 1 of any.
Plan all_to_all_in(const TemplateArguments& arguments, std::int64_t waves) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks * waves);
  plan.tensors = {{"input", Role::input, ranks * waves}, {"output", Role::output, ranks * waves}};
  const Affine peer = partners(arguments, is_clockwise(arguments));
  Stream stream{"exchange", {}};
  for (std::int64_t wave = 0; wave < waves; ++wave) {
    const auto part_of = [&](std::int32_t tensor) {
      return [=](const Affine& rank) { return chunk_of(tensor, scaled(rank, waves, wave)); };
    };
    const auto sent = part_of(kInput), arrived = part_of(kOutput);
    repeat(stream, ranks - 1, exchanged(arguments, peer, sent, arrived));
    stream.items.push_back(copy(sent(own_rank()), arrived(own_rank())));
  }
  run_everywhere(plan, stream);
  return plan;
}

/// Rank r sends its input to rank r + 1, as nccl-tests' sendrecv does.
Plan make_send_recv_direct(const TemplateArguments& arguments) {
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, 1}};
  const bool is_push = arguments.word("transfer") == "push";
  const Affine peer = neighbour(is_push ? 1 : -1, plan.ranks);
  Stream stream{"send", {}};
  stream.items.push_back(is_push ? push(peer, chunk_of(0), chunk_of(1))
                                 : pull(peer, chunk_of(0), chunk_of(1)));
  run_everywhere(plan, stream);
  return plan;
}

Plan make_reduce_scatter_direct(const TemplateArguments& arguments) {
  Plan plan = start_plan(arguments, arguments.ranks);
  plan.tensors = {{"input", Role::input, arguments.ranks}, {"output", Role::output, 1}};
  plan.in_place_safe = true;
  Stream stream{"exchange", {}};
  reduce_directly(
      arguments, plan, stream, [](const Affine& rank) { return chunk_of(kInput, rank); },
      chunk_of(kOutput));
  run_everywhere(plan, stream);
  return plan;
}

}  // namespace

std::vector<TemplateInfo> direct_templates() {
  const ParameterInfo pushes = transfer_parameter("push");
  return of_collectives(
      {{"all-gather/direct",
        "each rank exchanges with every other",
        {pushes, order_parameter()},
        make_all_gather_direct},
       {"all-to-all/direct",
        "each rank exchanges with every other",
        {pushes, order_parameter()},
        [](const TemplateArguments& all) { return all_to_all_in(all, 1); }},
       {"all-to-all/waves",
        "each rank exchanges with every other, a part of each chunk at a time",
        {pushes, order_parameter(), waves_parameter()},
        [](const TemplateArguments& all) { return all_to_all_in(all, waves_of(all)); }},
       {"send-recv/direct", "each rank sends to the next one", {pushes}, make_send_recv_direct},
       {"reduce-scatter/direct",
        "each rank reduces its chunk from all others",
        {transfer_parameter("pull")},
        make_reduce_scatter_direct}});
}

}  // namespace hemiola::plan
