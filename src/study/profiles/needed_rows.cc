#include "study/profiles/needed_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "program/walk/cursor.h"

namespace hemiola::study {
namespace {

using program::Bound;
using program::Primitive;
using program::PrimitiveKind;
using program::Span;

class Walk {
 public:
  Walk(const Bound& program, const std::vector<int>& ranks)
      : program_(program), watched_(index(program.ranks())) {
    for (const int rank : ranks) watched_[index(rank)] = true;
    needed_.profile.file = program.source();
    needed_.profile.ranks = program.ranks();
    for (std::size_t b = 0; b < program.buffers().size(); ++b) {
      const std::int64_t bytes = program.memory_bytes(static_cast<std::int32_t>(b), ranks.front());
      if (bytes > 0) needed_.profile.buffers.push_back({program.buffers()[b].name, bytes});
    }
    if (!program.semaphores().empty()) {
      semaphores_ = buffer(std::string(sim::kSemaphores));
      needed_.profile.buffers.push_back(
          {std::string(sim::kSemaphores), 8 * std::ssize(program.semaphores())});
    }
  }

  NeededRows walk() {
    // Where groups are multicast, rows cannot stand behind signals.
    if (program_.groups().empty()) note_signals();
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      if (watched_[index(rank)]) continue;
      each_body(rank, [&](std::int32_t body) { walk_body(rank, body); });
    }
    for (auto& [key, flag] : flags_) needed_.flags.push_back(std::move(flag));
    needed_.profile = sim::in_order(std::move(needed_.profile));
    return std::move(needed_);
  }

 private:
  template <typename Visit>
  void each_body(int rank, Visit visit) const {
    const program::RankCode& code = program_.code(rank);
    for (const program::Stream& stream : code.streams) {
      for (const program::StreamItem& item : stream) {
        if (item.kind == program::StreamItem::Kind::engine) visit(item.index);
        if (item.kind != program::StreamItem::Kind::kernel) continue;
        for (const std::int32_t body : program_.kernels()[index(item.index)].bodies) visit(body);
      }
    }
  }

  /// What replayed ranks tell others.
  void note_signals() {
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      if (!watched_[index(rank)]) continue;
      each_body(rank, [&](std::int32_t body) {
        program::Cursor cursor(program_, rank, body);
        for (Primitive primitive; cursor.next(primitive);)
          if (tells(primitive))
            told_.insert(primitive.semaphores.begin(), primitive.semaphores.end());
      });
    }
  }
  static bool tells(const Primitive& primitive) {
    return primitive.kind == PrimitiveKind::signal || primitive.kind == PrimitiveKind::post;
  }

  void walk_body(int rank, std::int32_t body) {
    program::Cursor cursor(program_, rank, body);
    after_ = {-1, 0};
    for (Primitive primitive; cursor.next(primitive);) {
      if (primitive.kind == PrimitiveKind::wait && !primitive.consume) note_wait(primitive);
      if (tells(primitive))
        for (std::size_t s = 0; s < primitive.semaphores.size(); ++s)
          add(rank, primitive.semaphores[s], s < primitive.values.size() ? primitive.values[s] : 1);
      if (primitive.kind != PrimitiveKind::move) continue;
      for (const Span& span : primitive.dst)
        if (program::is_packet(span.access) && span.flag != 0) store(rank, span, primitive.bytes);
    }
  }

  /// What comes behind it in its workgroup comes behind what a replayed rank has told.
  void note_wait(const Primitive& wait) {
    for (std::size_t s = 0; s < wait.semaphores.size(); ++s) {
      const program::SemaphoreId id = wait.semaphores[s];
      const std::int64_t more = wait.values[s] - program_.semaphores()[index(id.index)].initial;
      if (told_.contains(id) && more > 0) after_ = {id.index, more};
    }
  }
  void set_after(sim::ProfileRow& row) const {
    if (after_.first < 0) return;
    row.after_buffer = semaphores_;
    row.after_offset = 8 * std::int64_t{after_.first};
    row.after_value = after_.second;
  }

  void add(int source, program::SemaphoreId id, std::int64_t value) {
    if (!watched_[index(id.rank)]) return;
    sim::ProfileRow row{.source = source, .destination = id.rank, .kind = sim::ProfileKind::add};
    row.buffer = semaphores_;
    row.offset = 8 * std::int64_t{id.index};
    row.size = 8;
    row.value = value;
    const std::string& name = program_.semaphores()[index(id.index)].name;
    NeededFlag& flag = count(row, row.offset, name);
    flag.value += value;
    set_after(row);
    needed_.profile.rows.push_back(std::move(row));
  }

  /// Packets: to one rank, or through a switch to all members of a group.
  void store(int source, const Span& span, std::int64_t bytes) {
    if (!program::is_multicast(span.access)) {
      store_at(source, span.rank, span, bytes);
      return;
    }
    for (const int rank : program_.groups()[index(span.group)]) store_at(source, rank, span, bytes);
  }
  void store_at(int source, int rank, const Span& span, std::int64_t bytes) {
    if (!watched_[index(rank)] || rank == source) return;
    sim::ProfileRow row{.source = source, .destination = rank, .kind = sim::ProfileKind::packet};
    const std::string& name = program_.buffers()[index(span.buffer)].name;
    row.buffer = buffer(name);
    row.offset = span.offset;
    row.size = program::memory_size(bytes, span.access);
    row.value = span.flag;
    NeededFlag& flag = count(row, 0, {});
    flag.value = std::max(flag.value, span.flag);
    set_after(row);
    needed_.profile.rows.push_back(std::move(row));
  }

  std::int32_t buffer(const std::string& name) const {
    const auto& buffers = needed_.profile.buffers;
    const auto found = std::ranges::find(buffers, name, &sim::ProfileBuffer::name);
    return static_cast<std::int32_t>(found - buffers.begin());
  }

  /// Rows of packets for one buffer are counted together.
  NeededFlag& count(const sim::ProfileRow& row, std::int64_t offset, const std::string& name) {
    const std::string& in = row.buffer == semaphores_
                                ? std::string(sim::kSemaphores)
                                : needed_.profile.buffers[index(row.buffer)].name;
    const auto [found, fresh] =
        flags_.try_emplace(std::tuple(row.destination, row.kind, row.buffer, offset, row.source),
                           NeededFlag{.rank = row.destination,
                                      .source = row.source,
                                      .kind = row.kind,
                                      .buffer = in,
                                      .offset = row.offset,
                                      .end = row.offset + row.size,
                                      .name = name});
    NeededFlag& flag = found->second;
    if (!fresh) {
      flag.offset = std::min(flag.offset, row.offset);
      flag.end = std::max(flag.end, row.offset + row.size);
    }
    ++flag.rows;
    return flag;
  }

  const Bound& program_;
  std::vector<bool> watched_;
  std::int32_t semaphores_ = -1;
  std::map<std::tuple<int, sim::ProfileKind, std::int32_t, std::int64_t, int>, NeededFlag> flags_;
  NeededRows needed_;
  std::set<program::SemaphoreId> told_;  ///< by replayed ranks
  /// Of the workgroup at hand: the semaphore of its last wait for one of them, and its value.
  std::pair<std::int32_t, std::int64_t> after_{-1, 0};
};

}  // namespace

NeededRows needed_rows(const Bound& program, const std::vector<int>& ranks) {
  return Walk(program, ranks).walk();
}

}  // namespace hemiola::study
