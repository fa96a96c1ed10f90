// Recursive halving and doubling (Thakur, Rabenseifner, Gropp: Optimization of Collective
// Communication Operations in MPICH, 2005): reduce-scatter between ever nearer partners, all-gather
// back. Ranks above a power of two are folded in: the first of them add their input to a
// neighbour's and get the result.
#include <bit>
#include <optional>

#include "hemiola/parts/build_plan.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

Plan make_all_reduce_halving_doubling(const TemplateArguments& arguments) {
  const std::int64_t ranks = arguments.ranks;
  const auto powers = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(ranks)));
  const std::int64_t folded =
      ranks - powers;  // pairs (2 f, 2 f + 1) of which only the odd one stays
  Plan plan = start_plan(arguments, powers);
  plan.tensors = {{"input", Role::input, powers},
                  {"output", Role::output, powers},
                  {"partial", Role::scratch, powers}};
  plan.in_place_safe = true;
  const std::int32_t input = 0, output = 1, partial = 2;
  const auto rank_of = [&](std::int64_t place) {
    return place < folded ? 2 * place + 1 : place + folded;
  };

  RankByRank code(plan.ranks);
  code.add_stream("exchange");
  std::vector<std::optional<Dependency>> arrived(index(powers));  // by place
  const auto last_of = [&](std::int64_t place) -> std::optional<Dependency>& {
    return arrived[index(place)];
  };
  for (std::int64_t place = 0; place < folded; ++place) {
    last_of(place) = code.add(2 * place, 0,
                              reducing(push(constant(2 * place + 1), chunks_of(input, {}, powers),
                                            chunks_of(partial, {}, powers)),
                                       chunks_of(input, {}, powers)));
  }

  // Halving: in every step a place keeps the half of its chunks that contains its own number.
  for (std::int64_t half = powers / 2; half >= 1; half /= 2) {
    const bool is_first = half == powers / 2, is_last = half == 1;
    auto next = arrived;
    for (std::int64_t place = 0; place < powers; ++place) {
      const std::int64_t partner = place ^ half;
      const Affine first = constant(partner / half * half);
      const auto holds = [&](std::int64_t who) {
        return chunks_of(is_first && who >= folded ? input : partial, first, half);
      };
      Transfer transfer = reducing(push(constant(rank_of(partner)), holds(place),
                                        chunks_of(is_last ? output : partial, first, half)),
                                   holds(partner));
      for (const std::int64_t who : {place, partner})
        if (last_of(who)) transfer.after.push_back(*last_of(who));
      next[index(partner)] = code.add(rank_of(place), 0, std::move(transfer));
    }
    arrived = std::move(next);
  }

  // Doubling: what a place has grows by what its partner has.
  for (std::int64_t have = 1; have < powers; have *= 2) {
    auto next = arrived;
    for (std::int64_t place = 0; place < powers; ++place) {
      const std::int64_t partner = place ^ have;
      const Region held = chunks_of(output, constant(place / have * have), have);
      Transfer transfer = push(constant(rank_of(partner)), held, held);
      transfer.after.push_back(*last_of(place));
      next[index(partner)] = code.add(rank_of(place), 0, std::move(transfer));
    }
    arrived = std::move(next);
  }

  for (std::int64_t place = 0; place < folded; ++place) {
    const Region all = chunks_of(output, {}, powers);
    code.add(2 * place + 1, 0, after(push(constant(2 * place), all, all), *last_of(place)));
  }
  code.finish(plan);
  return plan;
}

}  // namespace

std::vector<TemplateInfo> halving_templates() {
  return of_collectives({{"all-reduce/halving-doubling",
                          "recursive halving to reduce, recursive doubling to gather",
                          {},
                          make_all_reduce_halving_doubling}});
}

}  // namespace hemiola::plan
