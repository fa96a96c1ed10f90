// Direct exchanges: every rank talks to every other, in each step all to different ones.
#include "plan/build.h"
#include "plan/templates/families.h"
#include "plan/templates/gather.h"

namespace hemiola::plan {
namespace {

Plan make_all_gather_direct(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, 1}, {"output", Role::output, ranks}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1;
  const Affine peer = partners(arguments, is_clockwise(arguments));
  Stream stream{"exchange", {}};
  repeat(stream, ranks - 1,
         arguments.word("transfer") == "push"
             ? push(peer, chunk_of(input), chunk_of(output, own_rank()))
             : pull(peer, chunk_of(input), chunk_of(output, peer)));
  stream.items.push_back(copy(chunk_of(input), chunk_of(output, own_rank())));
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
    const auto part = [&](std::int32_t tensor, const Affine& owner) {
      return chunk_of(tensor, scaled(owner, waves, wave));
    };
    repeat(stream, ranks - 1,
           arguments.word("transfer") == "push"
               ? push(peer, part(kInput, peer), part(kOutput, own_rank()))
               : pull(peer, part(kInput, own_rank()), part(kOutput, peer)));
    stream.items.push_back(copy(part(kInput, own_rank()), part(kOutput, own_rank())));
  }
  run_everywhere(plan, stream);
  return plan;
}

Plan make_all_to_all_direct(const TemplateArguments& arguments) {
  return all_to_all_in(arguments, 1);
}

Plan make_all_to_all_waves(const TemplateArguments& arguments) {
  return all_to_all_in(arguments, waves_of(arguments));
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

TemplateInfo all_gather_direct() {
  return collective_template("all-gather/direct", "each rank exchanges with every other",
                             {transfer_parameter("push"), order_parameter()},
                             make_all_gather_direct);
}

TemplateInfo all_to_all_direct() {
  return collective_template("all-to-all/direct", "each rank exchanges with every other",
                             {transfer_parameter("push"), order_parameter()},
                             make_all_to_all_direct);
}

TemplateInfo all_to_all_waves() {
  return collective_template(
      "all-to-all/waves", "each rank exchanges with every other, a part of each chunk at a time",
      {transfer_parameter("push"), order_parameter(), waves_parameter()}, make_all_to_all_waves);
}

TemplateInfo send_recv_direct() {
  return collective_template("send-recv/direct", "each rank sends to the next one",
                             {transfer_parameter("push")}, make_send_recv_direct);
}

TemplateInfo reduce_scatter_direct() {
  return collective_template("reduce-scatter/direct", "each rank reduces its chunk from all others",
                             {transfer_parameter("pull")}, make_reduce_scatter_direct);
}

}  // namespace hemiola::plan
