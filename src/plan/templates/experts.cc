// Experts of a mixture (MoE) whose tokens have a capacity: every rank has `rows` tokens for each
// expert of every rank. Tokens go to the ranks of their experts, and the products of all own
// experts are one kernel, whose tiles wait for the rows of a rank for an expert.
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/pipelines.h"

namespace hemiola::plan {
namespace {

constexpr std::int32_t kTokens = 0, kWeights = 1, kGathered = 2, kExpertResult = 3;

/// c[e, rows of all ranks, n] = a[e, rows of all ranks, k] b[e, k, n], e of the own experts.
Plan make_experts(const TemplateArguments& arguments) {
  const DataType type = data_type_of(arguments);
  const std::int64_t ranks = arguments.ranks, experts = parts_of(arguments, "experts");
  const std::int64_t rows = positive(arguments, "rows");
  const std::int64_t n = positive(arguments, "n"), k = positive(arguments, "k");
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"x", Role::input, {ranks * experts, rows, k}, type},
                  {"b", Role::input, {experts, k, n}, type},
                  {"a", Role::scratch, {experts, ranks * rows, k}, type},
                  {"c", Role::output, {experts, ranks * rows, n}, type}};
  const Affine peer = around(ranks, 1, 1);
  Stream stream{"tokens", {}}, own{"own tokens", {}};
  for (std::int64_t expert = 0; expert < experts; ++expert) {
    const auto from = [&](const Affine& taker) {
      return slab(plan, kTokens, 0, scaled(taker, experts, expert), 1);
    };
    const auto into = [&](const Affine& owner) {
      return Region{kGathered,
                    {{{constant(expert), 1}, {scaled(owner, rows), rows}, {constant(0), k}}}};
    };
    own.items.emplace_back(copy(from(own_rank()), into(own_rank())));
    repeat(stream, ranks - 1, exchanged(arguments, peer, from, into));
  }
  run_everywhere(plan, std::move(stream));
  plan.codes.front().streams.push_back(std::move(own));
  Compute products{.name = "experts", .kernel = "gemm", .axes = {}, .operands = {}};
  products.axes = {{"e", experts, 1, false},
                   {"m", ranks * rows, positive(arguments, "tile_m"), false},
                   {"n", n, positive(arguments, "tile_n"), false},
                   {"k", k, positive(arguments, "tile_k"), true}};
  products.operands = {{kGathered, Use::read, {0, 1, 3}},
                       {kWeights, Use::read, {0, 3, 2}},
                       {kExpertResult, Use::accumulate, {0, 1, 2}}};
  compute_everywhere(plan, products, {all_of(plan, kTokens), all_of(plan, kWeights)},
                     {all_of(plan, kExpertResult), false});
  for (std::int64_t owner = 0; owner < ranks; ++owner)
    plan.codes.front().expected.push_back(
        {slab(plan, kGathered, 1, constant(owner * rows), rows), false,
         slab(plan, kTokens, 0, scaled(own_rank(), experts), experts), constant(owner)});
  return plan;
}

}  // namespace

std::vector<TemplateInfo> expert_templates() {
  return of_elements(
      {{"moe/direct",
        "products of experts whose tokens come by an all-to-all, expert by expert",
        {transfer_parameter("push")},
        make_experts}},
      with_tile({size_parameter("rows", "64", "tokens of a rank for an expert (its capacity)"),
                 size_parameter("experts", "8", "of a rank"),
                 size_parameter("n", "2048", "columns of an expert's product"),
                 size_parameter("k", "4096", "what is summed over")},
                "64"));
}

}  // namespace hemiola::plan
