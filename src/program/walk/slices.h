// How an operation's bytes are dealt to the workgroups that share it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hemiola::program {

/// The first byte of slice `index` of `slices` (`slices`: the end of the last one): units of `unit`
/// bytes, the last one maybe shorter, are dealt evenly, the first slices get one more.
constexpr std::int64_t slice_begin(std::int64_t bytes, std::int64_t unit, std::int64_t index,
                                   std::int64_t slices) {
  const std::int64_t units = (bytes + unit - 1) / unit;
  return std::min((index * (units / slices) + std::min(index, units % slices)) * unit, bytes);
}

}  // namespace hemiola::program
