// Small results for the tests of this layer.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "sim/result/result.h"

namespace hemiola::report {

inline sim::Attribution attribution(
    std::initializer_list<std::pair<sim::Reason, std::int64_t>> parts) {
  sim::Attribution attribution{};
  for (const auto& [reason, fs] : parts) attribution[static_cast<std::size_t>(reason)] = fs;
  return attribution;
}

/// Two ranks, 12,345.678901 ns; rank 1 is the latest.
inline sim::Result two_rank_result() {
  sim::Result result;
  result.size = KiB(1);
  result.count = 256;
  result.time = {12'345'678'901};
  result.algbw_GBps = 0.0829;
  result.busbw_GBps = 0.125;
  result.bound = {{3'000'000'000}, "a to b", {6'172'839'450}};
  result.ideal = {2'000'000'000};
  result.checked = "full";
  result.line_hops = 1234;
  result.visited_hops = 99;
  result.wall_s = 0.5;
  result.peak_rss_bytes = 4096;
  result.counters = {{"l2.hits", 7}, {"poll.requests", 11}};
  result.links = {{"a", "b", 0, "nvlink4", 1024, 1152, 8, {2'560'000}, 3}};
  result.attribution = {
      attribution({{sim::Reason::link, 2'345'678'901}, {sim::Reason::finished, 10'000'000'000}}),
      attribution({{sim::Reason::launch, 4'000'000'000},
                   {sim::Reason::link, 8'000'000'000},
                   {sim::Reason::poll, 345'678'901}})};
  result.rank_end = {{2'345'678'901}, {12'345'678'901}};
  return result;
}

}  // namespace hemiola::report
