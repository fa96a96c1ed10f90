// Two results of the same program have to be equal in all that they say of it (tests only).
#pragma once

#include <string>

#include "sim/result.h"

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

}  // namespace hemiola::sim::test
