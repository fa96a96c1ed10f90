// Where the bytes of a rank's buffers are.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "program/semantics/primitive.h"
#include "program/walk/rotation.h"

namespace hemiola::sim {

/// Every rank lays its buffers out alike, one after the other from multiples of a large page on;
/// what the simulator needs itself (flags) stands after them. A buffer that turns
/// (program::Rotation) begins on ranks of the k-th period with the chunks of the k-th period, so
/// that ranks that behave alike find theirs at the same addresses.
class Addresses {
 public:
  Addresses(const program::Bound& program, program::Rotation rotation)
      : rotation_(std::move(rotation)) {
    for (std::size_t b = 0; b < program.buffers().size(); ++b) {
      std::int64_t bytes = 0;
      for (int rank = 0; rank < program.ranks(); ++rank)
        bytes = std::max(bytes, program.memory_bytes(static_cast<std::int32_t>(b), rank));
      Placed placed{.base = end_};
      if (rotation_.turns[b] != 0) {
        placed.part = rotation_.rows[b];
        placed.turn = placed.part / (program.ranks() / rotation_.period);
      }
      placed_.push_back(placed);
      end_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    }
  }

  const program::Rotation& rotation() const { return rotation_; }
  /// The first byte behind all buffers.
  std::int64_t end() const { return end_; }

  /// Of the first byte of a span (not of its rows), in its buffer.
  std::int64_t offset_of(const program::Span& span) const {
    const Placed& buffer = placed_[index(span.buffer)];
    if (buffer.turn == 0) return span.offset;
    const std::int64_t in_part = span.offset % buffer.part;
    const std::int64_t turned = in_part - span.rank / rotation_.period * buffer.turn;
    return span.offset - in_part + (turned < 0 ? turned + buffer.part : turned);
  }
  /// Of the same byte, in the memory of its rank.
  std::int64_t start_of(const program::Span& span) const {
    return placed_[index(span.buffer)].base + offset_of(span);
  }
  /// Of data byte `data` of a plain span.
  std::int64_t of(const program::Span& span, std::int64_t data) const {
    const std::int64_t at = span.skip + data;
    return start_of(span) + (span.run > 0 ? at / span.run * span.pitch + at % span.run : data);
  }

 private:
  static constexpr std::int64_t kAlignment = 2 << 20;
  struct Placed {
    std::int64_t base = 0;
    std::int64_t part = 0;  ///< bytes of what turns: those of one repetition, or of a row in it
    std::int64_t turn = 0;  ///< bytes by which a period turns it; 0: it does not
  };

  program::Rotation rotation_;
  std::vector<Placed> placed_;  ///< by buffer
  std::int64_t end_ = 0;
};

}  // namespace hemiola::sim
