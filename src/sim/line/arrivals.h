// What the stages of the line engine know of requests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/model/request.h"

namespace hemiola::sim {

/// Requests left the cache since the round before: they are asked for some arrivals ahead.
inline constexpr std::size_t kAhead = 24;

/// Payload of the present leg, in sectors; of a train kLarge of either leg.
inline std::uint8_t carried(const Request& request) {
  const bool back = request.stage == Stage::back_out;
  return back == is_load(request.intent) || request.train ? request.size : std::uint8_t{0};
}

}  // namespace hemiola::sim
