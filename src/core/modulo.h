// Remainders by a divisor that is known long before: multiplications instead of a division.
#pragma once

#include <cstdint>

namespace hemiola {

/// x % divisor for every 32-bit x, exactly (Lemire, Kaser, Kurz: "Faster remainder by direct
/// computation", 2019). The divisor is at least 1.
class Modulo {
 public:
  constexpr Modulo() = default;
  constexpr explicit Modulo(std::uint32_t divisor)
      : divisor_(divisor), inverse_(UINT64_MAX / divisor + 1) {}

  constexpr std::uint32_t divisor() const { return divisor_; }

  constexpr std::uint32_t operator()(std::uint32_t x) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint32_t>(static_cast<Wide>(inverse_ * x) * divisor_ >> 64);
  }

 private:
  std::uint32_t divisor_ = 1;
  std::uint64_t inverse_ = 0;  ///< 2^64 / divisor, rounded up; of 1: 2^64, which is 0 here
};

}  // namespace hemiola
