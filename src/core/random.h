// Numbers that look drawn, the same on every host.
#pragma once

#include <cstdint>

namespace hemiola {

constexpr std::uint64_t kSplitMixStep = 0x9e3779b97f4a7c15;

/// SplitMix64 (Steele, Lea, Flood 2014): what the generator draws next in state `state`; that
/// is then `state + kSplitMixStep`.
constexpr std::uint64_t splitmix64(std::uint64_t state) {
  std::uint64_t z = state + kSplitMixStep;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

}  // namespace hemiola
