// What a simulation says of a schedule.
#pragma once

#include <cstdint>
#include <string>

#include "core/time.h"
#include "core/units.h"
#include "sim/result/result.h"

namespace hemiola::explore {

/// By the engine fluid.
struct Measured {
  Time fluid{};                    ///< 0: it was refused, or not simulated
  std::string refused;             ///< why it cannot be run; empty: it can
  sim::Attribution attribution{};  ///< of the rank that ends last
  Bytes buffers{}, extra_traffic{};
  /// Visits of requests to resources in the line engine, about; 0: nobody asked.
  std::int64_t line_hops = 0;
  Time computing{}, moving{};  ///< while a launch of a compute ran; while something was moved
};
/// By the engine sampled.
struct Confirmed {
  Time time{};
  double error = 0;                ///< what sampled says of itself
  sim::Attribution attribution{};  ///< of the rank that ends last
};

}  // namespace hemiola::explore
