#include "program/rotation.h"

#include <algorithm>
#include <set>

#include "core/index.h"
#include "program/primitive.h"

namespace hemiola::program {
namespace {

std::int64_t modulo(std::int64_t a, std::int64_t m) {
  return (a % m + m) % m;
}

/// Whether a program is the same after a rotation by `period` ranks.
class Check {
 public:
  Check(const Bound& program, int period, std::int64_t line)
      : program_(program),
        ranks_(program.ranks()),
        period_(period),
        line_(line),
        turns_(program.buffers().size(), 0),
        seen_(program.buffers().size(), false) {}

  bool holds() {
    for (int rank = 0; rank < ranks_; ++rank) {
      if (program_.code_of()[index(rank)] != program_.code_of()[index((rank + period_) % ranks_)])
        return false;
    }
    for (const Buffer& buffer : program_.buffers()) {
      const auto differs = [&](std::int64_t chunks) { return chunks != buffer.chunks.front(); };
      if (std::any_of(buffer.chunks.begin(), buffer.chunks.end(), differs)) return false;
    }
    return std::all_of(program_.bodies().begin(), program_.bodies().end(), [&](const Body& body) {
      return std::all_of(body.ops.begin(), body.ops.end(), [&](const Op& op) { return same(op); });
    });
  }

  const std::vector<std::uint8_t>& turns() const { return turns_; }

 private:
  bool same(const Op& op) {
    const auto operand = [&](const Operand& o) { return same(o); };
    const auto semaphore = [&](const SemaphoreRef& s) { return rotates(s.rank); };
    const auto connection = [&](const ConnectionRef& c) {
      return (c.inbound < 0 && c.outbound < 0) || rotates(c.peer);
    };
    return std::all_of(op.src.begin(), op.src.end(), operand) &&
           std::all_of(op.dst.begin(), op.dst.end(), operand) &&
           std::all_of(op.semaphores.begin(), op.semaphores.end(), semaphore) &&
           connection(op.send_to) && connection(op.recv_from) &&
           std::all_of(op.more_from.begin(), op.more_from.end(), connection) &&
           std::all_of(op.more_to.begin(), op.more_to.end(), connection);
  }

  /// A rank that an expression names goes round with the one that names it.
  bool rotates(const Affine& rank) const {
    if (rank == own_rank()) return true;
    return rank.modulus == ranks_ && rank.scale == 1 && rank.offset == 0 &&
           modulo((rank.rank - 1) * period_, ranks_) == 0;
  }

  bool same_for_all(const Affine& value) const {
    if (value.rank == 0) return true;
    return value.modulus > 0 && modulo(value.rank * period_, value.modulus) == 0 &&
           modulo(value.rank * ranks_, value.modulus) == 0;
  }

  /// By how many chunks, modulo `chunks`, the value is larger `period` ranks further; -1: that
  /// differs from rank to rank.
  std::int64_t shift(const Affine& value, std::int64_t chunks) const {
    if (chunks == 0 || same_for_all(value)) return same_for_all(value) ? 0 : -1;
    if (value.modulus == 0) {
      // From the last ranks to the first ones it falls by rank * ranks, which must be nothing.
      if (modulo(value.rank * value.scale * ranks_, chunks) != 0) return -1;
      return modulo(value.rank * value.scale * period_, chunks);
    }
    if (modulo(value.rank * ranks_, value.modulus) != 0) return -1;
    const std::int64_t steps = modulo(value.rank * period_, value.modulus);
    return modulo(value.modulus * value.scale, chunks) == 0 ? modulo(steps * value.scale, chunks)
                                                            : -1;
  }

  bool same(const Operand& operand) {
    if (operand.group >= 0 || !rotates(operand.rank)) return false;
    // Where it really is. The owner's rank decides about an alias, and goes round as this one does.
    std::int32_t buffer = operand.buffer;
    std::int64_t chunks = program_.chunks_of(buffer, 0);
    std::int64_t moved = shift(operand.chunk, chunks);
    for (std::size_t depth = 0; depth < program_.buffers().size(); ++depth) {
      const Buffer& description = program_.buffers()[index(buffer)];
      if (description.alias < 0) break;
      buffer = description.alias;
      chunks = program_.chunks_of(buffer, 0);
      const std::int64_t own = shift(operand.chunk, chunks);
      const std::int64_t alias = shift(description.alias_chunk, chunks);
      if (own < 0 || alias < 0) return false;
      moved = chunks > 0 ? modulo(own + alias, chunks) : 0;
    }
    if (moved < 0) return false;
    return note(buffer, chunks, moved, operand.access);
  }

  /// All that touches a buffer turns, or nothing does.
  bool note(std::int32_t buffer, std::int64_t chunks, std::int64_t moved, Access access) {
    const std::uint8_t turn = moved != 0 ? 1 : 0;
    if (moved != 0) {
      if (chunks * period_ % ranks_ != 0 || moved != chunks * period_ / ranks_) return false;
      const Buffer& description = program_.buffers()[index(buffer)];
      const std::int64_t part = program_.memory_bytes(buffer, 0) / description.rotation;
      const std::int64_t unit = memory_offset(moved * program_.chunk_stride(buffer), access);
      if (unit * (ranks_ / period_) != part || unit % line_ != 0) return false;
    }
    if (seen_[index(buffer)] && turns_[index(buffer)] != turn) return false;
    seen_[index(buffer)] = true;
    turns_[index(buffer)] = turn;
    return true;
  }

  const Bound& program_;
  const int ranks_;
  const int period_;
  const std::int64_t line_;
  std::vector<std::uint8_t> turns_;  ///< by buffer, of those seen
  std::vector<bool> seen_;
};

std::set<std::int32_t> bodies_of(const Bound& program, int rank) {
  std::set<std::int32_t> bodies;
  for (const Stream& stream :
       program.codes()[static_cast<std::size_t>(program.code_of()[static_cast<std::size_t>(rank)])]
           .streams) {
    for (const StreamItem& item : stream) {
      if (item.kind == StreamItem::Kind::engine) bodies.insert(item.index);
      if (item.kind != StreamItem::Kind::kernel) continue;
      const Kernel& kernel = program.kernels()[static_cast<std::size_t>(item.index)];
      bodies.insert(kernel.bodies.begin(), kernel.bodies.end());
    }
  }
  return bodies;
}

// The offsets at which a rank's code names ranks.
void add_offsets(const Bound& program, int rank, Rotation& rotation) {
  std::set<std::int32_t> offsets;
  const auto note = [&](const Affine& of) {
    if (of.loop[0] != 0 || of.loop[1] != 0) rotation.all_offsets = true;
    const std::int64_t peer = of({.rank = rank, .loop = {}});
    offsets.insert(static_cast<std::int32_t>(modulo(peer - rank, program.ranks())));
  };
  const auto peer = [&](const ConnectionRef& c) {
    if (c.inbound >= 0 || c.outbound >= 0) note(c.peer);
  };
  for (const std::int32_t body : bodies_of(program, rank)) {
    for (const Op& op : program.bodies()[static_cast<std::size_t>(body)].ops) {
      for (const Operand& operand : op.src) note(operand.rank);
      for (const Operand& operand : op.dst) note(operand.rank);
      for (const SemaphoreRef& semaphore : op.semaphores) note(semaphore.rank);
      peer(op.send_to);
      peer(op.recv_from);
      for (const ConnectionRef& c : op.more_from) peer(c);
      for (const ConnectionRef& c : op.more_to) peer(c);
    }
  }
  offsets.erase(0);
  rotation.offsets.emplace_back(offsets.begin(), offsets.end());
}

}  // namespace

Rotation rotation_of(const Bound& program, std::int64_t line) {
  Rotation none{program.ranks(), std::vector<std::uint8_t>(program.buffers().size()), {}, false};
  if (!program.groups().empty() || program.linked() != nullptr) return none;
  for (int period = 1; period < program.ranks(); ++period) {
    if (program.ranks() % period != 0) continue;
    Check check(program, period, line);
    if (!check.holds()) continue;
    Rotation rotation{period, check.turns(), {}, false};
    for (int rank = 0; rank < period; ++rank) add_offsets(program, rank, rotation);
    return rotation;
  }
  return none;
}

}  // namespace hemiola::program
