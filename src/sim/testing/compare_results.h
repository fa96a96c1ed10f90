// Two results of the same program have to be equal in all that they say of it (tests only).
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>

#include "sim/result/result.h"

namespace hemiola::sim::test {

/// What differs first; empty: nothing. How a result came about (visited hops, ranks simulated) is
/// not compared.
inline std::string differs(const Result& a, const Result& b) {
  if (a.time != b.time) return "time: " + to_string(a.time) + ", " + to_string(b.time);
  if (a.rank_end != b.rank_end) return "ends of ranks";
  std::string counters;
  for (const auto& [name, count] : a.counters) {
    if (b.counters.at(name) != count)
      counters +=
          name + ": " + std::to_string(count) + ", " + std::to_string(b.counters.at(name)) + "; ";
  }
  if (!counters.empty()) return counters;
  if (a.bound.bandwidth != b.bound.bandwidth || a.bound.latency != b.bound.latency) return "bound";
  if (a.line_hops != b.line_hops) return "line hops";
  if (a.attribution != b.attribution) return "attribution";
  if (a.links.size() != b.links.size()) return "links";
  for (std::size_t l = 0; l < a.links.size(); ++l) {
    const LinkUse &x = a.links[l], &y = b.links[l];
    if (x.from != y.from || x.to != y.to || x.lane != y.lane ||
        x.payload_bytes != y.payload_bytes || x.wire_bytes != y.wire_bytes ||
        x.requests != y.requests || x.busy != y.busy || x.max_queue != y.max_queue)
      return "link " + x.from + " to " + x.to;
  }
  return {};
}

/// What is wrong with an attribution; empty: nothing.
inline std::string wrong_in(const Result& result) {
  for (std::size_t rank = 0; rank < result.attribution.size(); ++rank) {
    const Attribution& attribution = result.attribution[rank];
    for (std::size_t r = 0; r < kReasons; ++r) {
      if (attribution[r] < 0)
        return std::string(name_of(static_cast<Reason>(r))) + " of rank " + std::to_string(rank) +
               " is " + to_string(Time{attribution[r]});
    }
    const std::int64_t sum =
        std::accumulate(attribution.begin(), attribution.end(), std::int64_t{0});
    if (sum != result.time.fs)
      return "rank " + std::to_string(rank) + " sums to " + to_string(Time{sum}) + ", not to " +
             to_string(result.time);
  }
  return {};
}

}  // namespace hemiola::sim::test
