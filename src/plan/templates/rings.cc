#include "plan/templates/rings.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/index.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

const std::int32_t kPartialSums = 2;

/// A plan being written with one stream per ring. Where moving all ranks on by `period` leaves all
/// rings as they are, ranks that far apart run the same code, written for the first of them.
struct Writing {
  Plan plan;
  const std::vector<Ring>& rings;
  std::vector<std::vector<std::int64_t>> place;  // by ring and rank
  std::int64_t ranks, count, period;
};

/// The least distance between ranks of one code.
std::int64_t period_of(const std::vector<Ring>& rings) {
  const auto ranks = static_cast<std::int64_t>(rings.front().size());
  std::vector<std::vector<std::int64_t>> steps;  // by ring and rank: to the next rank
  for (const Ring& ring : rings) {
    steps.emplace_back(ring.size());
    for (std::size_t i = 0; i < ring.size(); ++i)
      steps.back()[index(ring[i])] = (ring[(i + 1) % ring.size()] - ring[i] + ranks) % ranks;
  }
  for (std::int64_t period = 1; period < ranks; ++period) {
    const auto repeats = [&](const std::vector<std::int64_t>& list) {
      return std::equal(list.begin() + period, list.end(), list.begin());
    };
    if (ranks % period == 0 && std::ranges::all_of(steps, repeats)) return period;
  }
  return ranks;
}

Writing start(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  const auto count = std::ssize(rings);
  Writing writing{start_plan(arguments, arguments.ranks * count),
                  rings,
                  {},
                  arguments.ranks,
                  count,
                  period_of(rings)};
  for (const Ring& ring : rings) {
    writing.place.emplace_back(ring.size());
    for (std::size_t i = 0; i < ring.size(); ++i)
      writing.place.back()[index(ring[i])] = static_cast<std::int64_t>(i);
  }
  writing.plan.codes.resize(index(writing.period));
  for (Code& code : writing.plan.codes)
    for (std::int64_t i = 0; i < count; ++i)
      code.streams.push_back({count == 1 ? "ring" : "ring " + std::to_string(i), {}, {}});
  for (std::int64_t rank = 0; rank < arguments.ranks; ++rank)
    writing.plan.code_of.push_back(static_cast<std::int32_t>(rank % writing.period));
  writing.plan.in_place_safe = true;
  return writing;
}

/// The share of a ring in what a rank owns.
Affine share(const Writing& writing, std::int64_t number, const Affine& owner) {
  return writing.count == 1 ? owner : scaled(owner, writing.count, number);
}

/// How a chunk is numbered: by the rank that owns it, or, where nobody does, by that rank's place
/// in the ring, which is a single expression for all steps.
enum class Numbering { rank, place };

/// By how much places grow with the ranks of a code; 0: not evenly.
std::int64_t places_per_rank(const Writing& writing, std::int64_t number) {
  const std::vector<std::int64_t>& place = writing.place[index(number)];
  if (writing.period == writing.ranks) return 1;  // a code has one rank
  std::int64_t shift = place[index(writing.period)] - place[0];
  if (shift > writing.ranks / 2) shift -= writing.ranks;
  return shift % writing.period == 0 ? shift / writing.period : 0;
}

/// Steps 0 .. ranks - 2 around every ring: in step s a rank passes on the chunk of the rank that is
/// `behind` + s places before it. Every step waits for the one before it at the rank before, step 0
/// (with `follows`) for the last of an earlier round. `make(ring, chunk, step)` says how.
template <class Make>
void go_round(Writing& writing, Numbering numbering, std::int64_t behind, bool follows,
              Make&& make) {
  const std::int64_t ranks = writing.ranks, last = ranks - 2;
  for (std::int64_t rank = 0; rank < writing.period; ++rank) {
    for (std::int64_t number = 0; number < writing.count; ++number) {
      const Ring& ring = writing.rings[index(number)];
      const std::int64_t place = writing.place[index(number)][index(rank)];
      const auto ahead = [&](std::int64_t places) {  // of this place, as a distance in ranks
        const std::int64_t other = ring[index(((place + places) % ranks + ranks) % ranks)];
        return (other - rank + ranks) % ranks;
      };
      const std::int64_t slope =
          numbering == Numbering::place ? places_per_rank(writing, number) : 0;
      const auto chunk_at = [&](std::int64_t s) {  // of the first rank of the code
        if (slope == 0) return (rank + ahead(-behind - s)) % ranks;
        return ((place - behind - s) % ranks + ranks) % ranks;
      };
      Stream& stream = writing.plan.codes[index(rank)].streams[index(number)];
      const std::int64_t before = count_transfers(stream);
      for (std::int64_t step = 0; step <= last;) {
        // Steps after the first and before the last are loops where chunks are equally far apart.
        std::int64_t count = 1, stride = 0;
        if (step > 0 && step + 1 < last) {
          const auto next = [&](std::int64_t s) {
            return (chunk_at(s + 1) - chunk_at(s) + ranks) % ranks;
          };
          stride = next(step);
          while (step + count < last && next(step + count - 1) == stride) ++count;
          if (stride > ranks / 2) stride -= ranks;
        }
        const std::int64_t grows = slope == 0 ? 1 : slope;  // with the rank
        const Affine owner{.constant = chunk_at(step) - grows * rank,
                           .rank = grows,
                           .loop = {count > 1 ? stride : 0, 0},
                           .modulus = ranks};
        Transfer transfer = make(number, share(writing, number, owner), step);
        transfer.peer = neighbour(ahead(1), ranks);
        if (step > 0 || follows) {
          const std::int64_t needed = before + step - 1;
          transfer = after(std::move(transfer), neighbour(ahead(-1), ranks),
                           count > 1 ? counting(needed) : constant(needed),
                           static_cast<std::int32_t>(number));
        }
        if (count > 1)
          repeat(stream, count, std::move(transfer));
        else
          stream.items.emplace_back(std::move(transfer));
        step += count;
      }
    }
  }
}

/// `result(chunk, ring)`: where the last step leaves the sum.
template <class Result>
void reduce_round(Writing& writing, Numbering numbering, std::int64_t behind, Result&& result) {
  const std::int64_t last = writing.ranks - 2;
  go_round(writing, numbering, behind, false,
           [&](std::int64_t number, const Affine& chunk, std::int64_t s) {
             return reducing(
                 push({}, chunk_of(s == 0 ? kInput : kPartialSums, chunk),
                      s == last ? result(chunk, number) : chunk_of(kPartialSums, chunk)),
                 chunk_of(kInput, chunk));
           });
}

}  // namespace

ParameterInfo rings_parameter() {
  return {
      "rings",
      "graph",
      {"graph", "identity"},
      "graph: as many as the links of the machine allow, where it is known; identity: one, 0, 1, "
      "2, ..."};
}

std::vector<Ring> rings_of(const TemplateArguments& arguments) {
  Ring in_order(index(arguments.ranks));
  std::iota(in_order.begin(), in_order.end(), 0);
  if (arguments.machine == nullptr || arguments.word("rings") == "identity") return {in_order};
  return find_rings(Fabric(*arguments.machine));
}

Plan all_reduce_along(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  Writing writing = start(arguments, rings);
  const std::int64_t chunks = writing.plan.chunks_per_size;
  writing.plan.tensors = {{"input", Role::input, chunks},
                          {"output", Role::output, chunks},
                          {"partial", Role::transit, chunks}};
  reduce_round(writing, Numbering::place, 0,
               [](const Affine& chunk, std::int64_t) { return chunk_of(kOutput, chunk); });
  go_round(writing, Numbering::place, -1, true,
           [](std::int64_t, const Affine& chunk, std::int64_t) {
             return push({}, chunk_of(kOutput, chunk), chunk_of(kOutput, chunk));
           });
  return std::move(writing.plan);
}

Plan reduce_scatter_along(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  Writing writing = start(arguments, rings);
  const std::int64_t chunks = writing.plan.chunks_per_size;
  writing.plan.tensors = {{"input", Role::input, chunks},
                          {"output", Role::output, writing.count},
                          {"partial", Role::transit, chunks}};
  reduce_round(writing, Numbering::rank, 1, [](const Affine&, std::int64_t number) {
    return chunk_of(kOutput, constant(number));
  });
  return std::move(writing.plan);
}

Plan all_gather_along(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  Writing writing = start(arguments, rings);
  writing.plan.tensors = {{"input", Role::input, writing.count},
                          {"output", Role::output, writing.plan.chunks_per_size}};
  for (Code& code : writing.plan.codes) {
    for (std::int64_t number = 0; number < writing.count; ++number) {
      const Region own = chunk_of(kOutput, share(writing, number, own_rank()));
      code.streams[index(number)].items.emplace_back(copy(chunk_of(kInput, constant(number)), own));
    }
  }
  go_round(writing, Numbering::rank, 0, false,
           [](std::int64_t number, const Affine& chunk, std::int64_t step) {
             const Region held =
                 step == 0 ? chunk_of(kInput, constant(number)) : chunk_of(kOutput, chunk);
             return push({}, held, chunk_of(kOutput, chunk));
           });
  return std::move(writing.plan);
}

Plan broadcast_along(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  const auto count = static_cast<std::int64_t>(rings.size());
  Plan plan = start_plan(arguments, count);
  plan.root = root_of(arguments);
  plan.tensors = {{"input", Role::input, count}, {"output", Role::output, count}};
  plan.in_place_safe = true;
  RankByRank code(plan.ranks);
  for (std::int64_t number = 0; number < count; ++number) {
    broadcast_along(code, chain_from(rings[index(number)], plan.root),
                    {.input = kInput, .output = kOutput, .first = number}, kInput, {});
  }
  for (std::int32_t number = 0; number < count; ++number) {
    const Affine chunk = constant(number);
    code.add(plan.root, number, copy(chunk_of(kInput, chunk), chunk_of(kOutput, chunk)));
  }
  code.finish(plan);
  name_peers_by_distance(plan);
  return plan;
}

void name_peers_by_distance(Plan& plan) {
  for (std::size_t rank = 0; rank < plan.codes.size(); ++rank) {
    for (Stream& stream : plan.codes[rank].streams) {
      for (Item& item : stream.items) {
        auto& transfer = std::get<Transfer>(item);
        if (transfer.kind != TransferKind::push) continue;
        const std::int64_t distance = transfer.peer.constant - static_cast<std::int64_t>(rank);
        transfer.peer = neighbour((distance + plan.ranks) % plan.ranks, plan.ranks);
      }
    }
  }
}

Tree chain_to(const Ring& ring, int root) {
  Tree chain(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i)
    chain[index(ring[i])] = ring[i] == root ? -1 : ring[(i + 1) % ring.size()];
  return chain;
}

Tree chain_from(const Ring& ring, int root) {
  Tree chain(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i)
    chain[index(ring[i])] = ring[i] == root ? -1 : ring[(i + ring.size() - 1) % ring.size()];
  return chain;
}

}  // namespace hemiola::plan
