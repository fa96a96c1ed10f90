// The attribution of a whole run as that of its period, in every engine.
#pragma once

#include <algorithm>

#include "sim/result/result.h"

namespace hemiola::sim {

/// `spent` sums to `end`, launch included; scaled to `period`. The largest takes the remainder.
inline void scale_to_period(Attribution& spent, std::int64_t end, Time period) {
  if (end <= 0) return;
  std::int64_t sum = 0;
  for (std::int64_t& fs : spent) {
    fs = static_cast<std::int64_t>(static_cast<__int128>(fs) * period.fs / end);
    sum += fs;
  }
  *std::ranges::max_element(spent) += period.fs - sum;
}

}  // namespace hemiola::sim
