// Traffic that nobody recorded: writes of peers by pattern (docs/replay.md, "Traffic").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "sim/result/profile.h"

namespace hemiola::study {

enum class TrafficPattern : std::uint8_t {
  constant,  ///< one write every interval; peers begin at different times within it
  burst,     ///< several at once, every interval
  poisson,   ///< gaps are exponential, the interval is their mean
  jitter,    ///< constant, each write late by up to `jitter`
  incast,    ///< all peers at the same times
  straggler  ///< incast, one peer that is drawn anew each time late by `delay`
};

struct TrafficFlow {
  std::vector<int> peers;
  int to = 0;
  TrafficPattern pattern = TrafficPattern::constant;
  Time start{}, interval{}, jitter{}, delay{};
  std::int64_t count = 1;  ///< of writes, of each peer; bursts are several
  std::int64_t burst = 1;  ///< writes at once
  std::int64_t size = 128, offset = 0, value = 1;
  std::int64_t span = 128;  ///< bytes from `offset` on over which the writes go round
  std::string buffer;
};

struct Traffic {
  std::uint64_t seed = 1;
  std::vector<TrafficFlow> flows;
};

/// YAML, or JSON, of which it is a superset. `ranks`: of the machine; peers and destinations are
/// among them. Failure with the line and the key ("/traffic/0/rate") of what is wrong.
Traffic read_traffic(std::string_view text, const std::string& file, int ranks);

/// All peers of all flows, in order.
std::vector<int> peers_of(const Traffic& traffic);

/// Adds the writes to a profile, which is in_order() afterwards; of one `peer` if it is not -1.
/// Equal for equal seeds: what a peer draws depends on the seed, its flow and its number only.
void add_traffic(sim::Profile& profile, const Traffic& traffic, int peer = -1);

}  // namespace hemiola::study
