// What windows of a sampled run have shown of something: sums.
#pragma once

#include <cstdint>

namespace hemiola::sim {

/// What something has taken where it was simulated line by line: sums.
struct Pace {
  std::int64_t units = 0;  ///< bytes; steps; drains; batches
  std::int64_t time = 0;   ///< fs, or what they had of something that they share (Crowd)
  bool known() const { return units > 0; }
  std::int64_t time_for(std::int64_t count) const {
    return units == 0 ? 0 : static_cast<std::int64_t>(static_cast<__int128>(time) * count / units);
  }
  double each() const { return static_cast<double>(time) / static_cast<double>(units); }
  void add(std::int64_t count, std::int64_t fs) {
    units += count;
    time += fs;
  }
};

namespace sampled {

inline std::size_t at(std::int32_t number) {
  return static_cast<std::size_t>(number);
}

}  // namespace sampled
}  // namespace hemiola::sim
