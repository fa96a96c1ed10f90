#include "program/rotation.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

/// The same of a job: whether rank r + period does what rank r does, with launches on the ranks
/// that much further.
class JobCheck {
 public:
  JobCheck(const Bound& job, int period, std::int64_t line)
      : job_(job),
        ranks_(job.ranks()),
        period_(period),
        line_(line),
        turns_(job.buffers().size(), kUnknown) {}

  bool holds() {
    for (int rank = 0; rank < ranks_; ++rank)
      if (!alike(rank, (rank + period_) % ranks_)) return false;
    return true;
  }

  std::vector<std::uint8_t> turns() const {
    std::vector<std::uint8_t> result;
    for (const std::uint8_t turn : turns_) result.push_back(turn == 1 ? 1 : 0);
    return result;
  }

 private:
  static constexpr std::uint8_t kUnknown = 2;

  bool alike(int rank, int other) {
    const RankCode& here = job_.code(rank);
    const RankCode& there = job_.code(other);
    if (here.streams.size() != there.streams.size() || here.options != there.options) return false;
    for (std::size_t s = 0; s < here.streams.size(); ++s) {
      if (here.streams[s].size() != there.streams[s].size()) return false;
      for (std::size_t i = 0; i < here.streams[s].size(); ++i)
        if (!alike(rank, here.streams[s][i], other, there.streams[s][i])) return false;
    }
    return true;
  }

  bool alike(int rank, const StreamItem& here, int other, const StreamItem& there) {
    if (here.kind != there.kind || here.index != there.index || here.duration != there.duration)
      return false;
    const bool of_launch = here.kind == StreamItem::Kind::launch_begin;
    return !of_launch || alike(rank, job_.frame(here.frame), other, job_.frame(there.frame));
  }

  bool alike(int rank, const Frame& here, int other, const Frame& there) {
    if (here.program != there.program || here.size != there.size || here.type != there.type ||
        here.op != there.op || here.call != there.call || here.calls != there.calls ||
        here.first_semaphore != there.first_semaphore ||
        here.first_barrier != there.first_barrier || *here.buffers != *there.buffers ||
        here.ranks->size() != there.ranks->size())
      return false;
    const int shift = there.own_of(other) - here.own_of(rank);
    const auto count = static_cast<std::int64_t>(here.ranks->size());
    for (std::int64_t own = 0; own < count; ++own)
      if (there.rank_of(modulo(own + shift, count)) != (here.rank_of(own) + period_) % ranks_)
        return false;
    return turns_by(here, static_cast<int>(modulo(shift, count)));
  }

  /// A group that is mapped onto another one in its order does the same with its memory; one that
  /// is mapped onto itself turns as its program does.
  bool turns_by(const Frame& frame, int shift) {
    const auto [known, is_new] =
        known_.try_emplace({{frame.program.get(), frame.buffers.get()}, shift}, true);
    if (!is_new) return known->second;
    std::vector<std::uint8_t> turns(frame.program->buffers.size(), 0);
    if (shift != 0) {
      Frame alone = frame;
      alone.ranks = alone.buffers = nullptr;
      const Bound bound(std::move(alone), nullptr, {});
      Check check(bound, shift, line_);
      // The memory of rank 0 of a group is where that of the whole's first period is.
      if (bound.ranks() % shift != 0 || bound.ranks() / shift != ranks_ / period_ ||
          frame.rank_of(0) >= period_ || !check.holds())
        return known->second = false;
      turns = check.turns();
      // Memory that larger launches share would turn by more than this one's part of it.
      for (std::size_t b = 0; b < turns.size(); ++b) {
        const auto own = static_cast<std::int32_t>(b);
        if (turns[b] != 0 && job_.memory_bytes(frame.buffer_of(own), 0) != bound.memory_bytes(own, 0))
          return known->second = false;
      }
    }
    for (std::size_t b = 0; b < turns.size(); ++b) {
      const std::int32_t whole = frame.buffer_of(static_cast<std::int32_t>(b));
      if (whole < 0) continue;
      std::uint8_t& turn = turns_[index(whole)];
      if (turn != kUnknown && turn != turns[b]) return known->second = false;
      turn = turns[b];
    }
    return true;
  }

  const Bound& job_;
  const int ranks_;
  const int period_;
  const std::int64_t line_;
  std::vector<std::uint8_t> turns_;  ///< by buffer
  std::map<std::pair<std::pair<const void*, const void*>, int>, bool> known_;
};

Rotation rotation_of_job(const Bound& job, std::int64_t line) {
  const int ranks = job.ranks();
  for (int period = 1; period < ranks; ++period) {
    if (ranks % period != 0) continue;
    JobCheck check(job, period, line);
    if (!check.holds()) continue;
    Rotation rotation{period, check.turns(), {}, false};
    std::vector<std::set<std::int32_t>> offsets(index(period));
    std::set<const void*> seen;
    for (const Frame& frame : job.linked()->frames) {
      if (!seen.insert(frame.ranks.get()).second) continue;
      for (const std::int32_t rank : *frame.ranks)
        for (const std::int32_t peer : *frame.ranks)
          if (rank < period && peer != rank)
            offsets[index(rank)].insert(static_cast<std::int32_t>(modulo(peer - rank, ranks)));
    }
    for (const std::set<std::int32_t>& of_rank : offsets)
      rotation.offsets.emplace_back(of_rank.begin(), of_rank.end());
    return rotation;
  }
  return {ranks, std::vector<std::uint8_t>(job.buffers().size()), {}, false};
}

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
  if (!program.groups().empty()) return none;
  if (program.linked() != nullptr) return rotation_of_job(program, line);
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
