// Products of distributed matrices with the collective that feeds them or follows them:
// tensor-parallel layers (AG-GEMM, GEMM-RS, GEMM-AR) and the change from heads to rows around
// attention (A2A-GEMM). Sizes m, n and k are those of the whole product; which of them is divided
// among the ranks is said per family.
#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"
#include "plan/templates/pipelines.h"

namespace hemiola::plan {
namespace {

// AG-GEMM: c[m, n / ranks] = a[m, k] b[k, n / ranks]; a is divided along m at the start.

template <GatherBlocks gather>
Plan make_ag_gemm(const TemplateArguments& arguments) {
  const DataType type = data_type_of(arguments);
  const std::int64_t m = positive(arguments, "m"), k = positive(arguments, "k");
  const std::int64_t n = divided(arguments, "n", positive(arguments, "n"), arguments.ranks);
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"a", Role::input, {m, k}, type},
                  {"b", Role::input, {k, n}, type},
                  {"c", Role::output, {m, n}, type}};
  gather(arguments, plan, blocks_along(arguments, plan, 0, 0, split_of(arguments)));
  const std::int64_t rows = plan.tensors[0].shape[0] / plan.ranks;
  compute_everywhere(plan, gemm_of(arguments, plan, 0, 1, 2),
                     {slab(plan, 0, 0, scaled(own_rank(), rows), rows), all_of(plan, 1)},
                     {all_of(plan, 2), false});
  return plan;
}

// GEMM-RS and GEMM-AR: partial[m, n] = a[m, k / ranks] b[k / ranks, n] on every rank; the sum of
// all partials is divided along m (RS), or on every rank (AR).

const std::int32_t kPartial = 2, kSum = 3;

Plan start_partial(const TemplateArguments& arguments, bool scatters) {
  const DataType type = data_type_of(arguments);
  const std::int64_t m = positive(arguments, "m"), n = positive(arguments, "n");
  const std::int64_t k = divided(arguments, "k", positive(arguments, "k"), arguments.ranks);
  const std::int64_t rows = scatters ? divided(arguments, "m", m, arguments.ranks) : m;
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"a", Role::input, {m, k}, type},
                  {"b", Role::input, {k, n}, type},
                  {"partial", Role::scratch, {m, n}, type},
                  {"c", Role::output, {rows, n}, type}};
  plan.groups = {everybody(plan.ranks)};
  return plan;
}

/// With the streams that the plan has.
Plan finish_partial(const TemplateArguments& arguments, Plan plan) {
  // Every rank gets the sum of all rows, or of its own.
  const std::int64_t rows = plan.tensors[kSum].shape[0];
  const bool all = rows == plan.tensors[kPartial].shape[0];
  compute_everywhere(
      plan, gemm_of(arguments, plan, 0, 1, kPartial), {all_of(plan, 0), all_of(plan, 1)},
      {all_of(plan, kSum), true,
       all ? all_of(plan, kPartial) : slab(plan, kPartial, 0, scaled(own_rank(), rows), rows)});
  return plan;
}

/// `sums`: a stream beside the first one; none without items.
Plan finish_partial(const TemplateArguments& arguments, Plan plan, Stream stream,
                    Stream sums = {}) {
  run_everywhere(plan, std::move(stream));
  if (!sums.items.empty()) plan.codes[0].streams.push_back(std::move(sums));
  return finish_partial(arguments, std::move(plan));
}

/// Every rank collects its rows from all others, and adds the own ones last. Pushing uses a slot of
/// memory per peer, and a stream of the owner adds them up as they come: who pushes may be a copy
/// engine, which cannot add.
Plan make_gemm_rs_direct(const TemplateArguments& arguments) {
  Plan plan = start_partial(arguments, true);
  const std::int64_t ranks = plan.ranks, parts = split_of(arguments);
  const std::int64_t block = plan.tensors[kSum].shape[0], n = plan.tensors[kSum].shape[1];
  const std::int64_t rows = divided(arguments, "m", block, parts);
  const bool is_pull = arguments.word("transfer") == "pull";
  const std::int64_t turn = is_clockwise(arguments) ? 1 : -1;
  const Affine peer = around(ranks, turn, turn);
  const std::int32_t slots = kSum + 1;
  if (!is_pull)
    plan.tensors.push_back(
        {"slots", Role::scratch, {(ranks - 1) * block, n}, plan.tensors[kSum].type});
  const auto partial_of = [&](const Affine& owner, std::int64_t part) {
    return slab(plan, kPartial, 0, scaled(owner, block, part * rows), rows);
  };

  std::vector<Item> moved, first, others, own;
  for (std::int64_t part = 0; part < parts; ++part) {
    const Region mine = partial_of(own_rank(), part);
    const Region sum = slab(plan, kSum, 0, constant(part * rows), rows);
    own.emplace_back(when_computed(accumulating(copy(mine, sum)), own_rank(), mine));
    if (is_pull) {
      const Affine nearest = around(ranks, turn), next = around(ranks, 2 * turn, turn);
      first.emplace_back(when_computed(pull(nearest, mine, sum), nearest, mine));
      others.emplace_back(when_computed(accumulating(pull(next, mine, sum)), next, mine));
      continue;
    }
    const Region theirs = partial_of(peer, part);
    const auto slot = [&](const Affine& number) {
      return slab(plan, slots, 0, scaled(number, block, part * rows), rows);
    };
    moved.emplace_back(when_computed(push(peer, theirs, slot(counting())), own_rank(), theirs));
    first.emplace_back(after(copy(slot({}), sum), around(ranks, -turn), constant(part)));
    others.emplace_back(after(accumulating(copy(slot(counting(1)), sum)),
                              around(ranks, -2 * turn, -turn),
                              Affine{.constant = parts + part, .loop = {parts, 0}}));
  }
  Stream sums{is_pull ? "reduce" : "sums", std::move(first)};
  repeat(sums, ranks - 2, std::move(others));
  sums.items.insert(sums.items.end(), own.begin(), own.end());
  if (is_pull) return finish_partial(arguments, std::move(plan), std::move(sums));
  Stream stream{"push", {}};
  repeat(stream, ranks - 1, std::move(moved));
  return finish_partial(arguments, std::move(plan), std::move(stream), std::move(sums));
}

/// Sums go around a ring; every rank adds its own rows as soon as they are computed.
Plan make_gemm_rs_ring(const TemplateArguments& arguments) {
  Plan plan = start_partial(arguments, true);
  const std::int64_t ranks = plan.ranks, parts = split_of(arguments);
  const std::int64_t block = plan.tensors[kSum].shape[0];
  const std::int64_t rows = divided(arguments, "m", block, parts);
  const Affine right = neighbour(1, ranks), left = neighbour(-1, ranks);
  const auto forwarded = static_cast<std::int32_t>(plan.tensors.size());
  plan.tensors.push_back(
      {"forwarded", Role::scratch, plan.tensors[kPartial].shape, plan.tensors[kPartial].type});
  // Step s passes on what is for rank (rank - 1 - s).
  const auto step = [&](const Affine& owner, std::int64_t part, bool is_first, bool is_last) {
    const auto rows_in = [&](std::int32_t tensor) {
      return slab(plan, tensor, 0, scaled(owner, block, part * rows), rows);
    };
    const Region result =
        is_last ? slab(plan, kSum, 0, constant(part * rows), rows) : rows_in(forwarded);
    Transfer transfer = reducing(
        push(right, is_first ? rows_in(kPartial) : rows_in(forwarded), result), rows_in(kPartial));
    if (is_first) transfer = when_computed(std::move(transfer), own_rank(), rows_in(kPartial));
    return when_computed(std::move(transfer), right, rows_in(kPartial));
  };
  Stream stream{"ring", {}};
  std::vector<Item> middle;
  for (std::int64_t part = 0; part < parts; ++part) {
    stream.items.emplace_back(step(around(ranks, -1), part, true, ranks == 2));
    middle.emplace_back(after(step(around(ranks, -2, -1), part, false, false), left,
                              Affine{.constant = part, .loop = {parts, 0}}));
  }
  repeat(stream, ranks - 3, std::move(middle));
  for (std::int64_t part = 0; part < parts && ranks > 2; ++part)
    stream.items.emplace_back(after(step(around(ranks, 1), part, false, true), left,
                                    constant((ranks - 3) * parts + part)));
  return finish_partial(arguments, std::move(plan), std::move(stream));
}

/// Inside a group, its rank of inner index i adds up what the group has for the ranks i of all
/// groups, the others' blocks first: each crosses to its owner once, as one sum, while the next one
/// is computed. With `all`, sums then go the other way: across, and on inside.
Plan make_two_levels_of_sums(const TemplateArguments& arguments, bool all) {
  Plan plan = start_partial(arguments, !all);
  const std::int64_t ranks = plan.ranks, inner = inner_of(arguments), outer = ranks / inner;
  const std::int64_t parts = split_of(arguments), n = plan.tensors[kSum].shape[1];
  const std::int64_t block = divided(arguments, "m", plan.tensors[kPartial].shape[0], ranks);
  const std::int64_t rows = divided(arguments, "m", block, parts);
  const std::int32_t collected = kSum + 1, slots = kSum + 2;
  for (const char* name : {"collected", "slots"}) {
    const std::int64_t others = std::max<std::int64_t>(1, outer - 1);
    plan.tensors.push_back({name, Role::scratch, {others * block, n}, plan.tensors[kSum].type});
  }
  const auto part_of = [&](std::int32_t tensor, const Affine& number, std::int64_t part) {
    return slab(plan, tensor, 0, scaled(number, block, part * rows), rows);
  };
  const auto sum_of = [&](const Affine& owner, std::int64_t part) {
    return part_of(kSum, all ? owner : Affine{}, part);
  };
  // Of one part: what adds up, and a push.
  const std::int64_t items = std::max<std::int64_t>(2, inner), arrivals = outer - 1;
  const std::int64_t before_sums = parts * ((items - 1) * outer + 2 * arrivals);
  const Blocks sums{sum_of, sum_of, parts};
  const Affine others = around(ranks, inner, inner), source = around(ranks, -inner, -inner);
  std::vector<Code> codes;
  for (std::int64_t i = 0; i < inner; ++i) {
    // The group's sum of one part of a block.
    const auto add_up = [&](std::vector<Item>& into, const Region& partial, const Region& sum) {
      if (inner == 1) into.emplace_back(when_computed(copy(partial, sum), own_rank(), partial));
      for (std::int64_t d = 1; d < inner; ++d) {
        const Affine peer{.constant = (i + d) % inner - i, .rank = 1};
        Transfer one = pull(peer, partial, sum);
        one = d > 1 ? accumulating(std::move(one))
                    : when_computed(reducing(std::move(one), partial), own_rank(), partial);
        into.emplace_back(when_computed(std::move(one), peer, partial));
      }
    };
    std::vector<Item> crossing, own, arrived;
    for (std::int64_t part = 0; part < parts; ++part) {
      const Region held = part_of(collected, counting(), part);
      const Region slot = part_of(slots, counting(), part), mine = sum_of(own_rank(), part);
      add_up(crossing, part_of(kPartial, others, part), held);
      crossing.emplace_back(push(others, held, slot));
      add_up(own, part_of(kPartial, own_rank(), part), mine);
      arrived.emplace_back(
          after(accumulating(copy(slot, mine)), source,
                Affine{.constant = (part + 1) * items - 1, .loop = {parts * items, 0}}));
    }
    Stream stream{"sums", {}};
    const auto add = [&stream](const std::vector<Item>& more) {
      stream.items.insert(stream.items.end(), more.begin(), more.end());
    };
    repeat(stream, arrivals, std::move(crossing));
    add(own);
    repeat(stream, arrivals, std::move(arrived));
    if (all) {
      TwoLevels levels = two_levels(ranks, inner, i, sums, before_sums);
      repeat(stream, arrivals, std::move(levels.across));
      add(levels.inside);
      repeat(stream, inner > 1 ? arrivals : 0, std::move(levels.passed_on));
    }
    codes.push_back({{std::move(stream)}});
  }
  set_codes_by_inner_index(plan, std::move(codes));
  return finish_partial(arguments, std::move(plan));
}

/// One collective of a library for each part of the columns (axis 1) or rows (axis 0).
Plan make_by_library(const TemplateArguments& arguments, Collective collective, std::size_t axis,
                     const char* extent) {
  Plan plan = start_partial(arguments, collective == Collective::reduce_scatter);
  const std::int64_t parts = split_of(arguments);
  const std::int64_t length = divided(arguments, extent, plan.tensors[kSum].shape[axis], parts);
  Stream stream{"collectives", {}};
  for (std::int64_t part = 0; part < parts; ++part) {
    const Affine first = constant(part * length);
    const Region source = slab(plan, kPartial, axis, first, length);
    const Region sum = slab(plan, kSum, axis, first, length);
    stream.items.emplace_back(
        when_computed(collective_of(collective, source, sum), own_rank(), source));
  }
  return finish_partial(arguments, std::move(plan), std::move(stream));
}

/// Every rank has the switch reduce its share of the rows, and multicast the sum. Shares are taken
/// part by part, so that the first rows are done first.
Plan make_gemm_ar_nvls(const TemplateArguments& arguments) {
  Plan plan = start_partial(arguments, false);
  const std::int64_t parts = split_of(arguments), m = plan.tensors[kSum].shape[0];
  const std::int64_t rows = divided(arguments, "m", m, parts * plan.ranks);
  plan.tensors.push_back({"reduced",
                          Role::transit,
                          {parts * rows, plan.tensors[kSum].shape[1]},
                          plan.tensors[kSum].type});
  const auto reduced = static_cast<std::int32_t>(plan.tensors.size() - 1);
  plan.lowering = {kThroughSwitch};
  Stream stream{"switch", {}};
  for (std::int64_t part = 0; part < parts; ++part) {
    const Affine first = scaled(own_rank(), rows, part * rows * plan.ranks);
    const Region held = slab(plan, reduced, 0, constant(part * rows), rows);
    const Region source = slab(plan, kPartial, 0, first, rows);
    Transfer load = pull(own_rank(), source, held);
    load.reduce = ReduceOp::sum;
    load.group = 0;
    for (std::int64_t rank = 0; rank < plan.ranks; ++rank)
      load = when_computed(std::move(load), constant(rank), source);
    Transfer store = push(own_rank(), held, slab(plan, kSum, 0, first, rows));
    store.group = 0;
    stream.items.emplace_back(std::move(load));
    stream.items.emplace_back(std::move(store));
  }
  return finish_partial(arguments, std::move(plan), std::move(stream));
}

// A2A-GEMM: x[m, k / ranks] on every rank becomes a[m / ranks, k]; c[m / ranks, n] = a b.

Plan make_a2a_gemm_direct(const TemplateArguments& arguments) {
  const DataType type = data_type_of(arguments);
  const std::int64_t ranks = arguments.ranks, waves = waves_of(arguments);
  const std::int64_t m = positive(arguments, "m"), n = positive(arguments, "n");
  const std::int64_t k = positive(arguments, "k");
  const std::int64_t rows = divided(arguments, "m", m, ranks);
  const std::int64_t columns = divided(arguments, "k", k, ranks);
  const std::int64_t wave_rows = divided(arguments, "m", rows, waves);
  Plan plan = start_plan(arguments, 1);
  plan.tensors = {{"x", Role::input, {m, columns}, type},
                  {"b", Role::input, {k, n}, type},
                  {"a", Role::scratch, {rows, k}, type},
                  {"c", Role::output, {rows, n}, type}};
  const std::int32_t x = 0, b = 1, a = 2, c = 3;
  const Affine peer = is_clockwise(arguments) ? around(ranks, 1, 1) : around(ranks, -1, -1);
  Stream stream{"exchange", {}}, own{"own part", {}};
  for (std::int64_t wave = 0; wave < waves; ++wave) {
    const auto from = [&](const Affine& to) {
      return slab(plan, x, 0, scaled(to, rows, wave * wave_rows), wave_rows);
    };
    const auto into = [&](const Affine& owner) {
      return Region{a,
                    {{{constant(wave * wave_rows), wave_rows}, {scaled(owner, columns), columns}}}};
    };
    own.items.emplace_back(copy(from(own_rank()), into(own_rank())));
    repeat(stream, ranks - 1, exchanged(arguments, peer, from, into));
  }
  run_everywhere(plan, std::move(stream));
  plan.codes.front().streams.push_back(std::move(own));
  compute_everywhere(plan, gemm_of(arguments, plan, a, b, c), {all_of(plan, x), all_of(plan, b)},
                     {all_of(plan, c), false});
  for (std::int64_t owner = 0; owner < ranks; ++owner) {
    plan.codes[0].expected.push_back({{a, {{{{}, rows}, {constant(owner * columns), columns}}}},
                                      false,
                                      slab(plan, x, 0, scaled(own_rank(), rows), rows),
                                      constant(owner)});
  }
  return plan;
}

}  // namespace

std::vector<TemplateInfo> gemm_templates() {
  const ParameterInfo pulls = transfer_parameter("pull"), order = order_parameter();
  const ParameterInfo split = split_parameter(), inner = inner_parameter();
  return of_products(
      {{"ag-gemm/swizzle",
        "a product whose left matrix is gathered directly",
        {pulls, order, split},
        make_ag_gemm<exchange_blocks>},
       {"ag-gemm/ring",
        "a product whose left matrix is gathered around a ring",
        {split},
        make_ag_gemm<ring_of_blocks>},
       {"ag-gemm/double-ring",
        "a product whose left matrix is gathered around two levels of rings",
        {inner, split},
        make_ag_gemm<double_ring_of_blocks>},
       {"ag-gemm/hierarchical",
        "a product whose left matrix is gathered across groups, then inside them",
        {inner, split},
        make_ag_gemm<two_levels_of_blocks>},
       {"gemm-rs/direct",
        "a product whose sum each rank collects its rows of",
        {pulls, order, split},
        make_gemm_rs_direct},
       {"gemm-rs/ring", "a product whose sum goes around a ring", {split}, make_gemm_rs_ring},
       {"gemm-rs/hierarchical",
        "a product whose sum is formed inside groups, then across them",
        {inner, split},
        [](const TemplateArguments& all) { return make_two_levels_of_sums(all, false); }},
       {"gemm-rs/collective",
        "a product with a reduce-scatter of a library for each part of its columns",
        {split},
        [](const TemplateArguments& all) {
          return make_by_library(all, Collective::reduce_scatter, 1, "n");
        }},
       {"gemm-ar/partitioned",
        "a product with an all-reduce of a library for each part of its rows",
        {split_parameter("2")},
        [](const TemplateArguments& all) {
          return make_by_library(all, Collective::all_reduce, 0, "m");
        }},
       {"gemm-ar/nvls",
        "a product whose sum the switch forms and multicasts",
        {split_parameter("2")},
        make_gemm_ar_nvls},
       {"gemm-ar/hierarchical",
        "a product whose sum is formed inside groups, then across, and spread",
        {inner, split},
        [](const TemplateArguments& all) { return make_two_levels_of_sums(all, true); }},
       {"a2a-gemm/direct",
        "a product whose left matrix comes by an all-to-all",
        {transfer_parameter("push"), order, waves_parameter()},
        make_a2a_gemm_direct}});
}

}  // namespace hemiola::plan
