// What the stages of the line engine know of requests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/calendar.h"
#include "sim/request.h"

namespace hemiola::sim {

inline constexpr auto kByTag = [](const Arrival& a, const Arrival& b) {
  return a.time != b.time ? a.time < b.time : a.tag < b.tag;
};

/// Requests left the cache since the round before: they are asked for some arrivals ahead.
inline constexpr std::size_t kAhead = 24;

/// Whether a number that counts up and wraps round comes first.
inline bool earlier(std::uint32_t a, std::uint32_t b) {
  return static_cast<std::int32_t>(a - b) < 0;
}

inline bool is_of_engine(const Request& request) {
  return request.intent == Intent::burst || (request.intent == Intent::flag && request.wave < 0);
}

/// A flag that a copy engine sends to another rank: it is at the ports before answers are.
inline bool sent_by_copy(const Request& request) {
  return request.stage == Stage::out && request.intent == Intent::flag;
}

/// Payload of the present leg, in sectors.
inline std::uint8_t carried(const Request& request) {
  const bool back = request.stage == Stage::back_out;
  return back == is_load(request.intent) ? request.size : std::uint8_t{0};
}

}  // namespace hemiola::sim
