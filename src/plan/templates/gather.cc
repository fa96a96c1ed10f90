#include "plan/templates/gather.h"

#include <algorithm>
#include <numeric>
#include <string>

#include "hemiola/parts/build_plan.h"
#include "plan/fabric.h"

namespace hemiola::plan {
namespace {

std::int64_t stride_of_partners(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  if (arguments.machine == nullptr) return 1;
  const int inner = node_size(*arguments.machine);
  if (inner == 1 || inner >= ranks || ranks % inner != 0 ||
      arguments.machine->reach(0, inner) != machine::Reach::network)
    return 1;
  std::int64_t stride = inner + 1;
  while (std::gcd(stride, ranks) != 1) ++stride;
  return stride;
}

/// Number `first` + i * `step`, with i the counter of the outermost loop.
Affine numbered(std::int64_t first, std::int64_t step) {
  return {.constant = first, .loop = {step, 0}};
}

}  // namespace

Affine partners(const TemplateArguments& arguments, bool clockwise) {
  const std::int64_t stride = stride_of_partners(arguments) * (clockwise ? 1 : -1);
  return around(arguments.ranks, stride, stride);
}

Affine partner_of(const TemplateArguments& arguments, bool clockwise) {
  return partners(arguments, !clockwise);
}

void reduce_directly(const TemplateArguments& arguments, Plan& plan, Stream& stream,
                     const std::function<Region(const Affine& rank)>& source,
                     const Region& result) {
  const std::int64_t others = plan.ranks - 1;
  const Affine peer = partners(arguments);
  const Region own = source(own_rank());
  const bool is_push = arguments.word("transfer") == "push";
  const auto slots = static_cast<std::int32_t>(plan.tensors.size());
  const Region slot = chunk_of(slots, counting());
  if (is_push) {
    plan.tensors.push_back({"slots", Role::scratch, others});
    repeat(stream, others, push(peer, source(peer), slot));
  }
  stream.items.push_back(copy(own, result));
  repeat(stream, others,
         is_push ? after(accumulating(copy(slot, result)), partner_of(arguments), counting())
                 : accumulating(pull(peer, own, result)));
}

void set_codes_by_inner_index(Plan& plan, std::vector<Code> codes) {
  const auto inner = static_cast<std::int32_t>(codes.size());
  plan.mesh = {{"outer", plan.ranks / inner}, {"inner", inner}};
  plan.codes = std::move(codes);
  plan.code_of.clear();
  for (std::int32_t rank = 0; rank < plan.ranks; ++rank) plan.code_of.push_back(rank % inner);
}

Transfer exchanged(const TemplateArguments& arguments, const Affine& peer,
                   const std::function<Region(const Affine&)>& from,
                   const std::function<Region(const Affine&)>& into) {
  return arguments.word("transfer") == "push" ? push(peer, from(peer), into(own_rank()))
                                              : pull(peer, from(own_rank()), into(peer));
}

void exchange_blocks(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks) {
  Stream stream{"exchange", {}};
  const bool is_push = arguments.word("transfer") == "push";
  const std::int64_t turn = is_clockwise(arguments) ? 1 : -1;
  const Affine peer = around(plan.ranks, turn, turn);
  std::vector<Item> parts;
  for (std::int64_t part = 0; part < blocks.parts; ++part) {
    const Affine owner = is_push ? own_rank() : peer;
    const Region from = blocks.own(owner, part), to = blocks.gathered(owner, part);
    parts.emplace_back(is_push ? push(peer, from, to) : pull(peer, from, to));
  }
  repeat(stream, plan.ranks - 1, std::move(parts));
  run_everywhere(plan, std::move(stream));
}

void ring_of_blocks(const TemplateArguments&, Plan& plan, const Blocks& blocks) {
  Stream stream{"ring", {}};
  const std::int64_t ranks = plan.ranks;
  const Affine right = neighbour(1, ranks), left = neighbour(-1, ranks);
  std::vector<Item> forwards;
  for (std::int64_t part = 0; part < blocks.parts; ++part) {
    stream.items.emplace_back(
        push(right, blocks.own(own_rank(), part), blocks.gathered(own_rank(), part)));
    const Region block = blocks.gathered(around(ranks, -1, -1), part);
    forwards.emplace_back(after(push(right, block, block), left, numbered(part, blocks.parts)));
  }
  repeat(stream, ranks - 2, std::move(forwards));
  run_everywhere(plan, std::move(stream));
}

void double_ring_of_blocks(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks) {
  const std::int64_t inner = inner_of(arguments);
  const std::int64_t ranks = plan.ranks, outer = ranks / inner, parts = blocks.parts;
  const std::int32_t outer_stream = 0, inner_stream = 1;
  std::vector<Code> codes;
  for (std::int64_t i = 0; i < inner; ++i) {
    const Affine above = around(ranks, inner), below = around(ranks, -inner);
    const Affine right{.constant = (i + 1) % inner - i, .rank = 1};
    const Affine left{.constant = (i + inner - 1) % inner - i, .rank = 1};
    Stream across{"outer", {}}, around_group{"inner", {}};
    // In step s a rank has the blocks of the group s before its own, first that of its own inner
    // index, which the outer ring brought.
    std::vector<Item> outer_steps, inner_steps;
    for (std::int64_t part = 0; part < parts; ++part) {
      const Region own = blocks.own(own_rank(), part);
      if (outer > 1) across.items.emplace_back(push(above, own, blocks.gathered(own_rank(), part)));
      const Region block = blocks.gathered(around(ranks, -inner, -inner), part);
      outer_steps.emplace_back(after(push(above, block, block), below, numbered(part, parts)));
    }
    for (std::int64_t j = 0; j < inner - 1; ++j) {
      const std::int64_t shift = (i + inner - j) % inner - i;  // to the block's owner in its group
      for (std::int64_t part = 0; part < parts; ++part) {
        const Region first = blocks.gathered({.constant = shift, .rank = 1}, part);
        Transfer transfer = push(right, j == 0 ? blocks.own(own_rank(), part) : first, first);
        if (j > 0) transfer = after(transfer, left, constant((j - 1) * parts + part), inner_stream);
        around_group.items.emplace_back(transfer);
        const Region later = blocks.gathered(around(ranks, shift - inner, -inner), part);
        transfer = push(right, later, later);
        inner_steps.emplace_back(
            j == 0 ? after(transfer, below, numbered(part, parts), outer_stream)
                   : after(transfer, left,
                           numbered((inner - 1 + j - 1) * parts + part, (inner - 1) * parts),
                           inner_stream));
      }
    }
    repeat(across, outer - 2, std::move(outer_steps));
    repeat(around_group, inner > 1 ? outer - 1 : 0, std::move(inner_steps));
    codes.push_back({{std::move(across), std::move(around_group)}});
  }
  set_codes_by_inner_index(plan, std::move(codes));
}

TwoLevels two_levels(std::int64_t ranks, std::int64_t inner, std::int64_t i, const Blocks& blocks,
                     std::int64_t first) {
  TwoLevels levels;
  const Affine others = around(ranks, inner, inner), source = around(ranks, -inner, -inner);
  for (std::int64_t part = 0; part < blocks.parts; ++part) {
    const Region own = blocks.own(own_rank(), part), to = blocks.gathered(own_rank(), part);
    const Region block = blocks.gathered(source, part);
    levels.across.emplace_back(push(others, own, to));
    for (std::int64_t d = 1; d < inner; ++d) {
      const Affine peer{.constant = (i + d) % inner - i, .rank = 1};
      levels.inside.emplace_back(push(peer, own, to));
      const Transfer pass = push(peer, block, block);
      // Those to the other peers come later in the stream.
      levels.passed_on.emplace_back(
          d == 1 ? after(pass, source, numbered(first + part, blocks.parts)) : pass);
    }
  }
  return levels;
}

void two_levels_of_blocks(const TemplateArguments& arguments, Plan& plan, const Blocks& blocks) {
  const std::int64_t inner = inner_of(arguments);
  const std::int64_t ranks = plan.ranks, others = ranks / inner - 1;
  std::vector<Code> codes;
  for (std::int64_t i = 0; i < inner; ++i) {
    TwoLevels levels = two_levels(ranks, inner, i, blocks);
    Stream across{"outer", {}}, group{"inner", std::move(levels.inside)};
    repeat(across, others, std::move(levels.across));
    repeat(group, inner > 1 ? others : 0, std::move(levels.passed_on));
    codes.push_back({{std::move(across), std::move(group)}});
  }
  set_codes_by_inner_index(plan, std::move(codes));
}

ParameterInfo order_parameter() {
  return {"order",
          "clockwise",
          {"clockwise", "counter-clockwise"},
          "which peer comes first: the next rank or the one before"};
}

ParameterInfo split_parameter(const char* default_value) {
  return {"split", default_value, {}, "parts that are moved one by one"};
}

ParameterInfo waves_parameter() {
  return {"waves", "2", {}, "parts of a chunk; all peers get one part before any gets the next"};
}

ParameterInfo inner_parameter() {
  return {
      "inner",
      "0",
      {},
      "ranks of an inner group; 0: those of a node where the machine is known, else the largest "
      "divisor up to 8 that leaves two groups"};
}

bool is_clockwise(const TemplateArguments& arguments) {
  return arguments.word("order") == "clockwise";
}

std::int64_t parts_of(const TemplateArguments& arguments, const std::string& parameter) {
  return arguments.number(parameter, 1, 4096);
}

std::int64_t split_of(const TemplateArguments& arguments) {
  return parts_of(arguments, "split");
}

std::int64_t waves_of(const TemplateArguments& arguments) {
  return parts_of(arguments, "waves");
}

std::int64_t inner_of(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  std::int64_t inner = arguments.number("inner");
  if (inner == 0 && arguments.machine != nullptr) {
    inner = std::min<std::int64_t>(ranks, node_size(*arguments.machine));
    if (ranks % inner != 0 || inner == ranks) inner = 0;
  }
  if (inner == 0) {
    inner = std::max<std::int64_t>(1, std::min<std::int64_t>(8, ranks / 2));
    while (ranks % inner != 0) --inner;
  }
  if (inner > ranks || ranks % inner != 0) {
    throw Failure("'" + arguments.name + "': groups of " + std::to_string(inner) +
                      " do not divide " + std::to_string(ranks) + " ranks",
                  kOption, "inner is a divisor of the number of ranks");
  }
  return inner;
}

}  // namespace hemiola::plan
