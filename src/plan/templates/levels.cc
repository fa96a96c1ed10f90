// Exchanges over a mesh of ranks, and all-gathers of blocks in parts: what a node does among its
// own GPUs and what it does across nodes are different streams (NCCL's rail alignment and PXN; the
// double ring of DoubleRing attention).
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/gather.h"

namespace hemiola::plan {
namespace {

/// What a rank has itself goes to its output last.
template <GatherBlocks gather>
Plan make_all_gather(const TemplateArguments& arguments) {
  const std::int64_t parts = split_of(arguments), all = arguments.ranks * parts;
  Plan plan = start_plan(arguments, all);
  plan.tensors = {{"input", Role::input, parts}, {"output", Role::output, all}};
  plan.in_place_safe = true;
  gather(arguments, plan,
         {[](const Affine&, std::int64_t part) { return chunk_of(kInput, constant(part)); },
          [parts](const Affine& owner, std::int64_t part) {
            return chunk_of(kOutput, scaled(owner, parts, part));
          },
          parts});
  for (Code& code : plan.codes)
    code.streams.back().items.push_back(
        copy(chunks_of(kInput, {}, parts), chunks_of(kOutput, scaled(own_rank(), parts), parts)));
  return plan;
}

/// Inside a group, chunks for rank j of any other group go to the own rank j; that one sends what
/// it collected for a rank as one message.
Plan make_all_to_all_hierarchical(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks, inner = inner_of(arguments), outer = ranks / inner;
  Plan plan = start_plan(arguments, ranks);
  plan.mesh = {{"outer", static_cast<int>(outer)}, {"inner", static_cast<int>(inner)}};
  // Chunk g * inner + i of `stage` on a rank with inner index j: from (own group, i) to (g, j).
  plan.tensors = {{"input", Role::input, ranks},
                  {"output", Role::output, ranks},
                  {"stage", Role::scratch, ranks}};
  const std::int32_t stage = 2, collect_stream = 0;
  for (std::int64_t i = 0; i < inner; ++i) {
    Stream collect{"inner", {}}, send{"outer", {}};
    const Affine group = around(ranks, inner - i, inner);  // first rank of the group s further
    for (std::int64_t d = 0; d < inner; ++d) {
      const std::int64_t j = (i + d) % inner;
      const Affine peer{.constant = j - i, .rank = 1};
      const Affine target = around(ranks, inner + j - i, inner), slot = around(ranks, inner, inner);
      const auto send_to_peer = [&](const Region& from, const Region& to) {
        return d == 0 ? copy(from, to) : push(peer, from, to);
      };
      repeat(collect, outer - 1, send_to_peer(chunk_of(kInput, target), chunk_of(stage, slot)));
      collect.items.push_back(send_to_peer(chunk_of(kInput, peer), chunk_of(kOutput, own_rank())));
    }
    Transfer message = push(around(ranks, inner, inner), chunks_of(stage, group, inner),
                            chunks_of(kOutput, {.constant = -i, .rank = 1}, inner));
    for (std::int64_t d = 0; d < inner; ++d) {
      // The own rank is d-th in the order of the one d before it in its group.
      message.after.push_back({{.constant = (i + inner - d) % inner - i, .rank = 1},
                               collect_stream,
                               {.constant = d * outer, .loop = {1, 0}},
                               {}});
    }
    repeat(send, outer - 1, std::move(message));
    plan.codes.push_back({{std::move(collect), std::move(send)}});
  }
  for (std::int32_t rank = 0; rank < plan.ranks; ++rank)
    plan.code_of.push_back(rank % static_cast<std::int32_t>(inner));
  return plan;
}

}  // namespace

std::vector<TemplateInfo> level_templates() {
  return of_collectives({{"all-gather/swizzle",
                          "each rank exchanges with every other, in parts",
                          {transfer_parameter("push"), order_parameter(), split_parameter()},
                          make_all_gather<exchange_blocks>},
                         {"all-gather/double-ring",
                          "rings inside groups of ranks pass on what rings across the groups bring",
                          {inner_parameter(), split_parameter()},
                          make_all_gather<double_ring_of_blocks>},
                         {"all-gather/hierarchical",
                          "exchange across groups of ranks, then inside them",
                          {inner_parameter(), split_parameter()},
                          make_all_gather<two_levels_of_blocks>},
                         {"all-to-all/hierarchical",
                          "collect inside groups of ranks, then exchange across them",
                          {inner_parameter()},
                          make_all_to_all_hierarchical}});
}

}  // namespace hemiola::plan
