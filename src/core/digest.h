// A number that stands for contents: equal contents have equal ones, on every host; others have
// different ones but for chance. Not for secrets.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/random.h"

namespace hemiola {

class Digest {
 public:
  Digest& add(std::int64_t value) {
    value_ = splitmix64(value_ * kSplitMixStep + static_cast<std::uint64_t>(value));
    return *this;
  }
  Digest& add(std::string_view text) {
    add(static_cast<std::int64_t>(text.size()));
    for (const char c : text) add(static_cast<std::int64_t>(static_cast<unsigned char>(c)));
    return *this;
  }
  std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0;
};

}  // namespace hemiola
