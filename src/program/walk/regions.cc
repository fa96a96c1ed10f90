// Which bytes of its operands an operation touches: whole regions, slices of thread-block groups,
// and the two kinds of pieces (docs/program.md).
#include <algorithm>

#include "program/walk/cursor.h"
#include "program/walk/slices.h"

namespace hemiola::program {

/// The innermost piece loop around the current operation, or -1. Count loops inside it do not
/// matter.
std::int32_t Cursor::piece_loop() const {
  std::int32_t depth = depth_ - 1;
  while (depth >= 0 && loops_[index(depth)].unit == 0) --depth;
  return depth;
}

std::int64_t Cursor::regions([[maybe_unused]] const Op& op, const Operand& operand) const {
  const std::int32_t depth = piece_loop();
  if (depth < 0) return 1;
  const auto at = index(depth);
  const Loop& loop = loops_[at];
  if (loop.pieces == Pieces::of_region) return 1;
  const bool whole = indices_.loop[at] == 0 && loop.unit >= frame_->chunk_bytes;
  return whole ? 1 : operand.chunks;
}

Cursor::Region Cursor::region(const Op& op, const Operand& operand, std::int64_t index) const {
  const std::int64_t chunk = frame_->chunk_bytes;
  const auto slice = [&](Region all) {
    if (op.slices <= 1) return all;
    const std::int64_t unit = op.unit.count > 0 ? op.unit.count : program_->alignment.count;
    const std::int64_t begin = slice_begin(all.bytes, unit, op.slice, op.slices);
    const std::int64_t end = slice_begin(all.bytes, unit, op.slice + 1, op.slices);
    return Region{all.offset + begin, end - begin, all.piece};
  };
  const Region all{0, operand.chunks * chunk, 0};
  const std::int32_t depth = piece_loop();
  if (depth < 0) return slice(all);
  const auto at = static_cast<std::size_t>(depth);
  const Loop& loop = loops_[at];
  const std::int64_t begin = indices_.loop[at] * loop.unit;
  if (loop.pieces == Pieces::of_region) {  // a piece of the workgroup's slice
    const Region share = slice(all);
    return {share.offset + begin, std::clamp<std::int64_t>(share.bytes - begin, 0, loop.unit),
            begin};
  }
  if (begin == 0 && loop.unit >= chunk) return slice(all);  // a slice of the piece
  return slice(
      {index * chunk + begin, std::clamp<std::int64_t>(chunk - begin, 0, loop.unit), begin});
}

std::int64_t Cursor::chunk_of(const Operand& operand) const {
  const std::int64_t chunk = operand.chunk(indices_);
  if (operand.column < 0) return chunk;
  return chunk + loops_[0].places[indices_.loop[0] * loops_[0].columns + operand.column];
}

/// A clear reaches the part of a rotating buffer that the previous repetition used.
Span Cursor::span(const Operand& operand, Region region, bool clears) const {
  const bool multicast = is_multicast(operand.access);
  const auto owner = static_cast<std::int32_t>(operand.rank(indices_));  // in the frame
  const std::int64_t stride = frame_->chunk_stride(operand.buffer);
  // In a folded buffer the pieces of a chunk take turns in the same memory.
  const std::int64_t offset = stride == frame_->chunk_bytes
                                  ? region.offset
                                  : region.offset - region.piece + region.piece % stride;
  const bool rows = operand.run > 0;
  const std::int64_t data = chunk_of(operand) * stride + (rows ? 0 : offset);
  // Multicast operands lie at the same place on every member (checked by bind).
  const auto resolver = multicast ? static_cast<int>(indices_.rank) : owner;
  const auto place = frame_->resolve(operand.buffer, memory_offset(data, operand.access), resolver);
  Span out{multicast ? -1 : rank_of(owner), frame_->buffer_of(place.buffer), place.offset,
           operand.access, multicast ? frame_->first_group + operand.group : -1};
  if (rows) {
    out.run = operand.run * stride;
    out.pitch = operand.pitch * stride;
    out.skip = offset;
  }
  const Buffer& buffer = program_->buffers.at(index(place.buffer));
  if (buffer.rotation > 1) {
    const std::int64_t part = (iteration_ + (clears ? buffer.rotation - 1 : 0)) % buffer.rotation;
    out.offset += part * (bound_->memory_bytes(out.buffer, rank_of(resolver)) / buffer.rotation);
  }
  if (is_packet(operand.access) && !clears) out.flag = iteration_ + 1;
  return out;
}

}  // namespace hemiola::program
