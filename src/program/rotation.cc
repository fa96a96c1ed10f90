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
    for (int rank = 0; rank < ranks_; ++rank) {
      if (program_.code_of()[index(rank)] != program_.code_of()[index((rank + period_) % ranks_)])
        return false;
    }
    for (const Buffer& buffer : program_.buffers()) {
      const auto differs = [&](std::int64_t chunks) { return chunks != buffer.chunks.front(); };
      if (std::any_of(buffer.chunks.begin(), buffer.chunks.end(), differs)) return false;
    }
    for (body_ = 0; body_ < std::ssize(program_.bodies()); ++body_) {
      loops_.clear();
      for (const Op& op : program_.bodies()[index(body_)].ops) {
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
        const std::int64_t first = modulo(operand.chunk(at), shift.row);
        if (unit >= 0 && first / shift.moved != unit) return false;
        unit = first / shift.moved;
        if (first % shift.moved + extent > shift.moved) return false;
      }
    }
    return true;
  }

  /// Ranks below the period that run the present body.
  const std::vector<int>& users() {
    if (users_.empty()) {
      users_.resize(program_.bodies().size());
      for (int rank = 0; rank < period_; ++rank) {
        for (const std::int32_t body : bodies_of(program_, rank))
          users_[index(body)].push_back(rank);
      }
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
  std::vector<std::int64_t> loops_;      ///< iterations of those around; 0: not known
  std::vector<std::vector<int>> users_;  ///< by body
};

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
  const std::size_t buffers = program.buffers().size();
  Rotation none{program.ranks(),
                std::vector<std::uint8_t>(buffers),
                std::vector<std::int64_t>(buffers),
                {},
                false};
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
