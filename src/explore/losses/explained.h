// Causes that share out a time, none of which is below zero.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hemiola::explore {

/// What is left to be explained, cause by cause: each takes what was measured of it, as far as that
/// goes. Femtoseconds.
class Explained {
 public:
  explicit Explained(std::int64_t fs) : left_(std::max<std::int64_t>(0, fs)) {}
  std::int64_t left() const { return left_; }
  std::int64_t take(double fs) {
    const std::int64_t taken =
        fs >= static_cast<double>(left_) ? left_ : static_cast<std::int64_t>(std::max(0.0, fs));
    left_ -= taken;
    return taken;
  }

 private:
  std::int64_t left_;
};

}  // namespace hemiola::explore
