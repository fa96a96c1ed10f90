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

Plan make_all_to_all_direct(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks}, {"output", Role::output, ranks}};
  const std::int32_t input = 0, output = 1;
  const Affine peer = partners(arguments, is_clockwise(arguments));
  Stream stream{"exchange", {}};
  repeat(stream, ranks - 1,
         arguments.word("transfer") == "push"
             ? push(peer, chunk_of(input, peer), chunk_of(output, own_rank()))
             : pull(peer, chunk_of(input, own_rank()), chunk_of(output, peer)));
  stream.items.push_back(copy(chunk_of(input, own_rank()), chunk_of(output, own_rank())));
  run_everywhere(plan, stream);
  return plan;
}

/// All-to-all in waves: part w of every chunk goes to all peers before part w + 1 of any.
Plan make_all_to_all_waves(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks, waves = waves_of(arguments);
  Plan plan = start_plan(arguments, ranks * waves);
  plan.tensors = {{"input", Role::input, ranks * waves}, {"output", Role::output, ranks * waves}};
  const std::int32_t input = 0, output = 1;
  const Affine peer = partners(arguments, is_clockwise(arguments));
  Stream stream{"exchange", {}};
  for (std::int64_t wave = 0; wave < waves; ++wave) {
    const auto part = [&](std::int32_t tensor, const Affine& owner) {
      return chunk_of(tensor, scaled(owner, waves, wave));
    };
    repeat(stream, ranks - 1,
           arguments.word("transfer") == "push"
               ? push(peer, part(input, peer), part(output, own_rank()))
               : pull(peer, part(input, own_rank()), part(output, peer)));
    stream.items.push_back(copy(part(input, own_rank()), part(output, own_rank())));
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
  const std::int64_t ranks = arguments.ranks;
  Plan plan = start_plan(arguments, ranks);
  plan.tensors = {{"input", Role::input, ranks}, {"output", Role::output, 1}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1, slots = 2;
  const Region own = chunk_of(input, own_rank());
  const Region result = chunk_of(output);
  const Affine peer = partners(arguments);
  Stream stream{"exchange", {}};
  if (arguments.word("transfer") == "pull") {
    stream.items.push_back(copy(own, result));
    repeat(stream, ranks - 1, accumulating(pull(peer, own, result)));
  } else {
    plan.tensors.push_back({"slots", Role::scratch, ranks - 1});
    repeat(stream, ranks - 1, push(peer, chunk_of(input, peer), chunk_of(slots, counting())));
    stream.items.push_back(copy(own, result));
    repeat(stream, ranks - 1,
           after(accumulating(copy(chunk_of(slots, counting()), result)), partner_of(arguments),
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
          {transfer_parameter("push"), order_parameter()},
          make_all_gather_direct};
}

TemplateInfo all_to_all_direct() {
  return {"all-to-all/direct",
          Collective::all_to_all,
          "each rank exchanges with every other",
          {transfer_parameter("push"), order_parameter()},
          make_all_to_all_direct};
}

TemplateInfo all_to_all_waves() {
  return {"all-to-all/waves",
          Collective::all_to_all,
          "each rank exchanges with every other, a part of each chunk at a time",
          {transfer_parameter("push"), order_parameter(), waves_parameter()},
          make_all_to_all_waves};
}

TemplateInfo send_recv_direct() {
  return {"send-recv/direct",
          Collective::send_recv,
          "each rank sends to the next one",
          {transfer_parameter("push")},
          make_send_recv_direct};
}

TemplateInfo reduce_scatter_direct() {
  return {"reduce-scatter/direct",
          Collective::reduce_scatter,
          "each rank reduces its chunk from all others",
          {transfer_parameter("pull")},
          make_reduce_scatter_direct};
}

}  // namespace hemiola::plan
