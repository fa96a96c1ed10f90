#include "verify/values.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hemiola::verify {
namespace {

constexpr std::int64_t saturated = 1 << 30;

std::size_t mix_into(std::size_t seed, std::uint64_t value) {
  return (seed ^ (value + 0x9e3779b97f4a7c15U + (seed << 6) + (seed >> 2))) * 0xff51afd7ed558ccdU;
}

/// Sums the terms of one delta and call, which may overlap, into the fewest runs of sources.
void add_runs(std::span<const Term> terms, std::vector<Term>& out) {
  struct Edge {
    std::int32_t source;
    std::int64_t change;
  };
  std::vector<Edge> edges;
  for (const Term& term : terms) {
    edges.push_back({term.source, term.count});
    edges.push_back({term.source + term.sources, -term.count});
  }
  std::ranges::sort(edges, {}, &Edge::source);
  std::int64_t count = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    count += edges[i].change;
    if (i + 1 == edges.size() || edges[i + 1].source == edges[i].source || count == 0) continue;
    const std::int32_t begin = edges[i].source;
    const std::int32_t length = edges[i + 1].source - begin;
    const std::int64_t capped = std::min(count, saturated);
    Term* last = out.empty() ? nullptr : &out.back();
    if (last != nullptr && last->delta == terms[0].delta && last->call == terms[0].call &&
        last->count == capped && last->source + last->sources == begin)
      last->sources += length;
    else
      out.push_back({begin, length, terms[0].delta, capped, terms[0].call});
  }
}

}  // namespace

std::string sources_of(const Term& term) {
  if (term.sources == 1) return fmt::format("rank {}", term.source);
  return fmt::format("ranks {} to {}", term.source, term.source + term.sources - 1);
}

std::size_t ValueTable::Hash::operator()(const SumKey& key) const {
  return mix_into(mix_into(static_cast<std::size_t>(key.a), static_cast<std::uint64_t>(key.b)),
                  static_cast<std::uint64_t>(key.shift));
}

std::size_t ValueTable::Hash::operator()(const std::vector<Term>& terms) const {
  std::size_t seed = terms.size();
  for (const Term& term : terms) {
    seed = mix_into(seed, static_cast<std::uint64_t>(term.source));
    seed = mix_into(seed, static_cast<std::uint64_t>(term.sources));
    seed = mix_into(seed, static_cast<std::uint64_t>(term.delta));
    seed = mix_into(seed, static_cast<std::uint64_t>(term.count));
    seed = mix_into(seed, static_cast<std::uint64_t>(term.call));
  }
  return seed;
}

Value ValueTable::intern(std::vector<Term> terms) {
  const std::int64_t shift = terms.front().delta;
  for (Term& term : terms) term.delta -= shift;
  const auto [at, added] =
      interned_.try_emplace(std::move(terms), static_cast<std::int32_t>(by_index_.size()));
  if (added) by_index_.push_back(&at->first);
  return {at->second, shift};
}

Value ValueTable::contributions(std::int32_t first_rank, std::int32_t ranks, std::int64_t delta) {
  return intern({{first_rank, ranks, delta, 1}});
}

Value ValueTable::unwritten(std::int32_t memory, std::int64_t delta) {
  return intern({{-2 * (memory + 1), 1, delta, 1}});  // even numbers: runs of them never adjoin
}

std::vector<Term> ValueTable::terms(Value value) const {
  std::vector<Term> result = *by_index_[static_cast<std::size_t>(value.terms)];
  for (Term& term : result) term.delta += value.shift;
  return result;
}

Value ValueTable::of(std::vector<Term> terms) {
  const auto place = [](const Term& term) { return std::pair(term.delta, term.call); };
  std::ranges::stable_sort(terms,
                           [&](const Term& x, const Term& y) { return place(x) < place(y); });
  std::vector<Term> result;
  for (std::size_t begin = 0, end = 0; begin < terms.size(); begin = end) {
    while (end < terms.size() && place(terms[end]) == place(terms[begin])) ++end;
    add_runs(std::span(terms).subspan(begin, end - begin), result);
  }
  return intern(std::move(result));
}

Value ValueTable::sum(Value a, Value b) {
  if (a.terms > b.terms) std::swap(a, b);
  if (!a.defined()) return b;
  const SumKey key{a.terms, b.terms, b.shift - a.shift};
  auto known = sums_.find(key);
  if (known == sums_.end()) {
    std::vector<Term> all = terms({a.terms, 0});
    const std::vector<Term> others = terms({b.terms, key.shift});
    all.insert(all.end(), others.begin(), others.end());
    known = sums_.emplace(key, of(std::move(all))).first;
  }
  return {known->second.terms, known->second.shift + a.shift};
}

}  // namespace hemiola::verify
