// The data of a size, cut into the blocks that a synthesised schedule moves. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>

#include "hemiola/parts/build_plan.h"

namespace hemiola::plan {

/// `count` blocks one after the other, in units that are the chunks of the plan. Equal blocks are a
/// unit each, and the plan is for every size. DataBlocks of a size that does not divide are as even
/// as whole units go, and the plan is for multiples of this size only.
class DataBlocks {
 public:
  static DataBlocks equal(std::int64_t count) { return {count, count}; }
  /// For `size` bytes, of which each of `shares` equal parts is cut into equally many blocks. Equal
  /// ones where 16 B units allow it, else units of 16 B or more; nothing where there are more
  /// blocks than units, or the shares are no whole units.
  static std::optional<DataBlocks> of_size(std::int64_t count, std::int64_t shares,
                                           std::int64_t size) {
    constexpr std::int64_t kUnit = 16;  // bytes; what chunks are multiples of (docs/plans.md)
    constexpr std::int64_t kFine = 16;  // units of a block at least, before units get larger
    if (size % (kUnit * count) == 0) return equal(count);
    if (size % (kUnit * shares) != 0 || size / kUnit < count) return std::nullopt;
    std::int64_t unit = kUnit;
    while (size % (2 * unit * shares) == 0 && 2 * unit * kFine <= size / count) unit *= 2;
    return DataBlocks{count, size / unit};
  }

  std::int64_t count() const { return count_; }
  std::int64_t units() const { return units_; }
  /// Of the first `block` blocks.
  std::int64_t units_before(std::int64_t block) const {
    // Without the remainder first: the product of both could be too large.
    return block * (units_ / count_) + block * (units_ % count_) / count_;
  }
  std::int64_t units_of(std::int64_t block) const {
    return units_before(block + 1) - units_before(block);
  }
  /// Of the largest block.
  std::int64_t most_units() const { return (units_ + count_ - 1) / count_; }

  /// The block in a tensor that holds the blocks from `first` on.
  Region in(std::int32_t tensor, std::int64_t block, std::int64_t first = 0) const {
    return chunks_of(tensor, constant(units_before(block) - units_before(first)), units_of(block));
  }
  /// The block in place `slot` of a tensor of places that have room for any block.
  Region in_slot(std::int32_t tensor, std::int64_t slot, std::int64_t block) const {
    return chunks_of(tensor, constant(slot * most_units()), units_of(block));
  }

 private:
  DataBlocks(std::int64_t count, std::int64_t units) : count_(count), units_(units) {}

  std::int64_t count_, units_;
};

}  // namespace hemiola::plan
