#include "plan/rings.h"

#include <algorithm>
#include <utility>

#include "plan/families.h"

namespace hemiola::plan {
namespace {

const std::int32_t kInput = 0, kOutput = 1, kPartial = 2;

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// A plan being written with one stream per ring.
struct Writing {
  Plan plan;
  RankByRank code;
  std::int64_t ranks, rings;
};

Writing start(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  const auto count = static_cast<std::int64_t>(rings.size());
  Writing writing{start_plan(arguments, arguments.ranks * count), RankByRank(arguments.ranks),
                  arguments.ranks, count};
  for (std::int64_t i = 0; i < count; ++i) writing.code.add_stream("ring " + std::to_string(i));
  writing.plan.in_place_safe = true;
  return writing;
}

/// Steps 0 .. ranks - 2 around ring `number`: in step s the rank at place p passes on the chunk of
/// the rank at place p - `behind` - s. `transfer(owner, rank, step)` says how; step 0 waits for
/// `first_needs` of the rank before it, if that is not negative, every other for the step before.
template <class Make>
void go_round(Writing& writing, const Ring& ring, std::int32_t number, std::int64_t behind,
              std::int64_t first_needs, Make&& make) {
  const std::int64_t ranks = writing.ranks;
  const auto place = [&](std::int64_t p) { return ring[at((p % ranks + ranks) % ranks)]; };
  for (std::int64_t p = 0; p < ranks; ++p) {
    for (std::int64_t step = 0; step < ranks - 1; ++step) {
      Transfer transfer = make(place(p - behind - step), step);
      transfer.peer = constant(place(p + 1));
      const std::int64_t needed = first_needs + step;
      if (step > 0 || first_needs >= 0)
        transfer.after.push_back(done(place(p - 1), number, needed));
      writing.code.add(place(p), number, std::move(transfer));
    }
  }
}

/// `result`: where the last step leaves the sum, at the owner of the chunk.
template <class Result>
void reduce_round(Writing& writing, const Ring& ring, std::int32_t number, Result&& result) {
  go_round(writing, ring, number, 1, -1, [&](std::int64_t owner, std::int64_t step) {
    const Affine chunk = constant(owner * writing.rings + number);
    const bool is_last = step == writing.ranks - 2;
    return reducing(push({}, chunk_of(step == 0 ? kInput : kPartial, chunk),
                         is_last ? result(chunk) : chunk_of(kPartial, chunk)),
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
  if (arguments.machine == nullptr || arguments.word("rings") == "identity") return {};
  std::vector<Ring> rings = find_rings(Fabric(*arguments.machine));
  if (rings.size() == 1 && std::is_sorted(rings.front().begin(), rings.front().end())) return {};
  return rings;
}

Plan all_reduce_along(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  Writing writing = start(arguments, rings);
  const std::int64_t chunks = writing.plan.chunks_per_size;
  writing.plan.tensors = {{"input", Role::input, chunks},
                          {"output", Role::output, chunks},
                          {"partial", Role::transit, chunks}};
  for (std::int32_t number = 0; number < writing.rings; ++number) {
    const Ring& ring = rings[at(number)];
    reduce_round(writing, ring, number,
                 [](const Affine& chunk) { return chunk_of(kOutput, chunk); });
    go_round(writing, ring, number, 0, writing.ranks - 2, [&](std::int64_t owner, std::int64_t) {
      const Region chunk = chunk_of(kOutput, constant(owner * writing.rings + number));
      return push({}, chunk, chunk);
    });
  }
  writing.code.finish(writing.plan);
  return std::move(writing.plan);
}

Plan reduce_scatter_along(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  Writing writing = start(arguments, rings);
  const std::int64_t chunks = writing.plan.chunks_per_size;
  writing.plan.tensors = {{"input", Role::input, chunks},
                          {"output", Role::output, writing.rings},
                          {"partial", Role::transit, chunks}};
  for (std::int32_t number = 0; number < writing.rings; ++number) {
    reduce_round(writing, rings[at(number)], number,
                 [&](const Affine&) { return chunk_of(kOutput, constant(number)); });
  }
  writing.code.finish(writing.plan);
  return std::move(writing.plan);
}

Plan all_gather_along(const TemplateArguments& arguments, const std::vector<Ring>& rings) {
  Writing writing = start(arguments, rings);
  writing.plan.tensors = {{"input", Role::input, writing.rings},
                          {"output", Role::output, writing.plan.chunks_per_size}};
  for (std::int32_t number = 0; number < writing.rings; ++number) {
    go_round(writing, rings[at(number)], number, 0, -1, [&](std::int64_t owner, std::int64_t step) {
      const Region chunk = chunk_of(kOutput, constant(owner * writing.rings + number));
      return push({}, step == 0 ? chunk_of(kInput, constant(number)) : chunk, chunk);
    });
    for (std::int64_t rank = 0; rank < writing.ranks; ++rank)
      writing.code.add(rank, number,
                       copy(chunk_of(kInput, constant(number)),
                            chunk_of(kOutput, constant(rank * writing.rings + number))));
  }
  writing.code.finish(writing.plan);
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
    broadcast_along(code, chain_from(rings[at(number)], plan.root),
                    {.input = kInput, .output = kOutput, .first = number}, kInput, {});
  }
  code.add(plan.root, 0, copy(chunks_of(kInput, {}, count), chunks_of(kOutput, {}, count)));
  code.finish(plan);
  return plan;
}

Tree chain_to(const Ring& ring, int root) {
  Tree chain(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i)
    chain[at(ring[i])] = ring[i] == root ? -1 : ring[(i + 1) % ring.size()];
  return chain;
}

Tree chain_from(const Ring& ring, int root) {
  Tree chain(ring.size());
  for (std::size_t i = 0; i < ring.size(); ++i)
    chain[at(ring[i])] = ring[i] == root ? -1 : ring[(i + ring.size() - 1) % ring.size()];
  return chain;
}

}  // namespace hemiola::plan
