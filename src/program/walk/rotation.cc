#include "program/walk/rotation.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/index.h"
#include "program/semantics/primitive.h"
#include "program/semantics/streams.h"

namespace hemiola::program {
namespace {

std::int64_t modulo(std::int64_t a, std::int64_t m) {
  return (a % m + m) % m;
}

std::set<std::int32_t> bodies_of(const Bound& program, int rank) {
  std::set<std::int32_t> bodies;
  each_body(program.code(rank), program.kernels(), [&](std::int32_t b) { bodies.insert(b); });
  return bodies;
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
        rows_(program.buffers().size(), 0),
        seen_(program.buffers().size(), false) {}

  bool holds() {
    for (int rank = 0; rank < ranks_; ++rank)
      if (program_.code_of()[index(rank)] != program_.code_of()[index((rank + period_) % ranks_)])
        return false;
    for (const Buffer& buffer : program_.buffers()) {
      const auto differs = [&](std::int64_t chunks) { return chunks != buffer.chunks.front(); };
      if (std::ranges::any_of(buffer.chunks, differs)) return false;
    }
    for (body_ = 0; body_ < std::ssize(program_.bodies()); ++body_) {
      loops_.clear();
      for (const Op& op : program_.bodies()[index(body_)].ops) {
        if (op.kind == OpKind::loop && loops_.empty()) table_ = &op;
        if (op.kind == OpKind::loop) loops_.push_back(op.unit.count > 0 ? 0 : op.count);
        if (op.kind == OpKind::end_loop && !loops_.empty()) loops_.pop_back();
        if (!same(op)) return false;
      }
    }
    return true;
  }

  const std::vector<std::uint8_t>& turns() const { return turns_; }
  const std::vector<std::int64_t>& rows() const { return rows_; }

 private:
  /// By how many chunks a value is larger `period` ranks further, modulo a row of so many.
  struct Shift {
    std::int64_t moved = 0;  ///< -1: that differs from rank to rank
    std::int64_t row = 0;
  };

  bool same(const Op& op) {
    const auto operand = [&](const Operand& o) { return same(o); };
    const auto semaphore = [&](const SemaphoreRef& s) { return rotates(s.rank); };
    const auto connection = [&](const ConnectionRef& c) {
      return (c.inbound < 0 && c.outbound < 0) || rotates(c.peer);
    };
    return std::ranges::all_of(op.src, operand) && std::ranges::all_of(op.dst, operand) &&
           std::ranges::all_of(op.semaphores, semaphore) && connection(op.send_to) &&
           connection(op.recv_from) && std::ranges::all_of(op.more_from, connection) &&
           std::ranges::all_of(op.more_to, connection);
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

  Shift shift(const Affine& value, std::int64_t chunks) const {
    if (chunks == 0 || same_for_all(value)) return {same_for_all(value) ? 0 : -1, chunks};
    if (value.modulus == 0) {
      // From the last ranks to the first ones it falls by rank * ranks, which must be nothing.
      if (modulo(value.rank * value.scale * ranks_, chunks) != 0) return {-1, chunks};
      return {modulo(value.rank * value.scale * period_, chunks), chunks};
    }
    if (modulo(value.rank * ranks_, value.modulus) != 0) return {-1, chunks};
    const std::int64_t steps = modulo(value.rank * period_, value.modulus);
    const std::int64_t round = value.modulus * value.scale;
    if (modulo(round, chunks) == 0) return {modulo(steps * value.scale, chunks), chunks};
    if (value.scale > 0 && chunks % round == 0) return {steps * value.scale, round};
    return {-1, chunks};
  }

  bool same(const Operand& operand) {
    if (operand.group >= 0 || !rotates(operand.rank)) return false;
    // Where it really is. The owner's rank decides about an alias, and goes round as this one does.
    std::int32_t buffer = operand.buffer;
    std::int64_t chunks = program_.chunks_of(buffer, 0);
    Shift all = shift(operand.chunk, chunks);
    for (std::size_t depth = 0; depth < program_.buffers().size(); ++depth) {
      const Buffer& description = program_.buffers()[index(buffer)];
      if (description.alias < 0) break;
      buffer = description.alias;
      chunks = program_.chunks_of(buffer, 0);
      const Shift own = shift(operand.chunk, chunks);
      const Shift alias = shift(description.alias_chunk, chunks);
      if (own.moved < 0 || alias.moved < 0 || own.row != chunks || alias.row != chunks)
        return false;
      all = {chunks > 0 ? modulo(own.moved + alias.moved, chunks) : 0, chunks};
    }
    if (all.moved < 0) return false;
    if (all.moved != 0 && all.row != chunks && !stays_in_unit(operand, all)) return false;
    return note(buffer, all, operand.access);
  }

  /// Whether what turns in rows never crosses from one period's part of a row into the next one's.
  bool stays_in_unit(const Operand& operand, const Shift& shift) {
    if (operand.access != Access::plain || loops_.size() > 2) return false;
    const bool each_row = operand.run > 0 && operand.pitch % shift.row == 0;
    const std::int64_t extent =
        operand.run == 0 ? operand.chunks
        : each_row       ? operand.run
                         : (operand.chunks / operand.run - 1) * operand.pitch + operand.run;
    for (const int rank : users()) {
      std::int64_t unit = -1;
      for (int corner = 0; corner < 1 << loops_.size(); ++corner) {
        Indices at{.rank = rank, .loop = {}};
        for (std::size_t l = 0; l < loops_.size(); ++l) {
          if (loops_[l] == 0) return false;
          at.loop[l] = (corner >> l & 1) != 0 ? loops_[l] - 1 : 0;
        }
        // All places of a table are between two of them.
        std::pair<std::int64_t, std::int64_t> places{};
        if (operand.column >= 0) places = table_->range_of(operand.column);
        const auto [least, most] = places;
        const std::int64_t first = modulo(operand.chunk(at) + least, shift.row);
        if (unit >= 0 && first / shift.moved != unit) return false;
        unit = first / shift.moved;
        if (first % shift.moved + (most - least) + extent > shift.moved) return false;
      }
    }
    return true;
  }

  /// Ranks below the period that run the present body.
  const std::vector<int>& users() {
    if (users_.empty()) {
      users_.resize(program_.bodies().size());
      for (int rank = 0; rank < period_; ++rank)
        for (const std::int32_t body : bodies_of(program_, rank))
          users_[index(body)].push_back(rank);
    }
    return users_[index(body_)];
  }

  /// All that touches a buffer turns alike, or nothing does.
  bool note(std::int32_t buffer, const Shift& shift, Access access) {
    const std::uint8_t turn = shift.moved != 0 ? 1 : 0;
    std::int64_t row = 0;
    if (turn != 0) {
      if (shift.row * period_ % ranks_ != 0 || shift.moved != shift.row * period_ / ranks_)
        return false;
      const Buffer& description = program_.buffers()[index(buffer)];
      const std::int64_t part = program_.memory_bytes(buffer, 0) / description.rotation;
      const std::int64_t unit = memory_offset(shift.moved * program_.chunk_stride(buffer), access);
      row = unit * (ranks_ / period_);
      const bool whole = shift.row == program_.chunks_of(buffer, 0);
      if ((whole ? row != part : part % row != 0) || unit % line_ != 0) return false;
    }
    if (seen_[index(buffer)] && (turns_[index(buffer)] != turn || rows_[index(buffer)] != row))
      return false;
    seen_[index(buffer)] = true;
    turns_[index(buffer)] = turn;
    rows_[index(buffer)] = row;
    return true;
  }

  const Bound& program_;
  const int ranks_;
  const int period_;
  const std::int64_t line_;
  std::vector<std::uint8_t> turns_;  ///< by buffer, of those seen
  std::vector<std::int64_t> rows_;   ///< by buffer, of those seen
  std::vector<bool> seen_;
  std::int64_t body_ = 0;
  const Op* table_ = nullptr;            ///< the last outermost loop
  std::vector<std::int64_t> loops_;      ///< iterations of those around; 0: not known
  std::vector<std::vector<int>> users_;  ///< by body
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
        turns_(job.buffers().size(), kUnknown),
        rows_(job.buffers().size(), 0) {}

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
  const std::vector<std::int64_t>& rows() const { return rows_; }

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
    // The memory of the group's first ranks is where that of the whole's first period is.
    for (int own = 0; own < shift; ++own)
      if (frame.rank_of(own) >= period_) return false;
    const auto [known, is_new] =
        known_.try_emplace({{frame.program.get(), frame.buffers.get()}, shift}, true);
    if (!is_new) return known->second;
    std::vector<std::uint8_t> turns(frame.program->buffers.size(), 0);
    std::vector<std::int64_t> rows(turns.size(), 0);
    if (shift != 0) {
      Frame alone = frame;
      alone.ranks = alone.buffers = nullptr;
      const Bound bound(std::move(alone), nullptr, {});
      Check check(bound, shift, line_);
      if (bound.ranks() % shift != 0 || bound.ranks() / shift != ranks_ / period_ || !check.holds())
        return known->second = false;
      turns = check.turns();
      rows = check.rows();
      // Memory that larger launches share would turn by more than this one's part of it.
      for (std::size_t b = 0; b < turns.size(); ++b) {
        const auto own = static_cast<std::int32_t>(b);
        if (turns[b] != 0 &&
            job_.memory_bytes(frame.buffer_of(own), 0) != bound.memory_bytes(own, 0))
          return known->second = false;
      }
    }
    for (std::size_t b = 0; b < turns.size(); ++b) {
      const std::int32_t whole = frame.buffer_of(static_cast<std::int32_t>(b));
      if (whole < 0) continue;
      std::uint8_t& turn = turns_[index(whole)];
      std::int64_t& row = rows_[index(whole)];
      if (turn != kUnknown && (turn != turns[b] || row != rows[b])) return known->second = false;
      turn = turns[b];
      row = rows[b];
    }
    return true;
  }

  const Bound& job_;
  const int ranks_;
  const int period_;
  const std::int64_t line_;
  std::vector<std::uint8_t> turns_;  ///< by buffer
  std::vector<std::int64_t> rows_;   ///< by buffer: bytes
  std::map<std::pair<std::pair<const void*, const void*>, int>, bool> known_;
};

Rotation rotation_of_job(const Bound& job, std::int64_t line) {
  const int ranks = job.ranks();
  for (int period = 1; period < ranks; ++period) {
    if (ranks % period != 0) continue;
    JobCheck check(job, period, line);
    if (!check.holds()) continue;
    Rotation rotation{period, check.turns(), check.rows(), {}, false};
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
  const std::size_t buffers = job.buffers().size();
  return {ranks, std::vector<std::uint8_t>(buffers), std::vector<std::int64_t>(buffers), {}, false};
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
    for (const Op& op : program.bodies()[index(body)].ops) {
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
  const std::size_t buffers = program.buffers().size();
  Rotation none{program.ranks(),
                std::vector<std::uint8_t>(buffers),
                std::vector<std::int64_t>(buffers),
                {},
                false};
  if (program.linked() != nullptr)
    return program.groups().empty() ? rotation_of_job(program, line) : none;
  for (int period = 1; period < program.ranks(); ++period) {
    if (program.ranks() % period != 0) continue;
    Check check(program, period, line);
    if (!check.holds()) continue;
    Rotation rotation{period, check.turns(), check.rows(), {}, false};
    for (int rank = 0; rank < period; ++rank) add_offsets(program, rank, rotation);
    return rotation;
  }
  return none;
}

}  // namespace hemiola::program
