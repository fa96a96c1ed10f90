// Plans for executors that know three buffers per rank and no counters: movements in one order,
// chunks of these buffers, and who has to come first where two touch the same bytes. Private to
// lower_channels.cc and lower_connections.cc.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "program/lower_general.h"

namespace hemiola::program::general {

/// Consecutive chunks that all places of a movement have: sources, then destinations.
struct Row {
  std::vector<std::int64_t> chunk;  ///< by place, in the buffer of Ordered::kind_of
  std::int64_t chunks = 0;
};

struct Ordered {
  Movements movements;
  /// Those that move something, such that none waits for one behind it.
  std::vector<const Movement*> order;
  std::int64_t unit = 1;  ///< units of area.h in a chunk
  /// By tensor: its buffer, and the chunk where it begins there. All scratch and transit tensors
  /// share one buffer.
  std::vector<std::pair<BufferKind, std::int64_t>> place;
  std::array<std::int64_t, 3> chunks{};  ///< of the input, output and scratch buffer
  bool in_place = false;  ///< input and output share memory: one is the rank's part of the other

  /// Where a chunk of a buffer really is, if it is divided into `parts`.
  std::pair<BufferKind, std::int64_t> memory(int rank, BufferKind kind, std::int64_t chunk,
                                             std::int64_t parts = 1) const;

  BufferKind kind_of(const Place& at) const {
    return place[static_cast<std::size_t>(at.area.tensor)].first;
  }
  std::vector<Row> rows_of(const Movement& movement) const;
};

/// Sets size, alignment and chunks of `program` too, and its buffers: input, output and, where
/// there is any, scratch. Failure: options that say how other lowerings work; a plan that computes,
/// has two inputs or outputs, waits for itself, or has more than 100,000 transfers.
Ordered ordered(const plan::Plan& plan, const LowerOptions& options, Program& program);

/// Who has touched which chunk last. Callers are numbers, in the order in which they come.
class Hazards {
 public:
  using Memory = std::pair<int, BufferKind>;  ///< rank, buffer
  /// Adds to `before` whoever wrote chunks of [begin, begin + count).
  void read(const Memory& memory, std::int64_t begin, std::int64_t count, std::int64_t who,
            std::set<std::int64_t>& before);
  /// ... whoever wrote them, or has read them since.
  void write(const Memory& memory, std::int64_t begin, std::int64_t count, std::int64_t who,
             std::set<std::int64_t>& before);

 private:
  struct Cell {
    std::int64_t end = 0;
    std::int64_t writer = -1;
    std::vector<std::int64_t> readers{};
  };
  using Cells = std::map<std::int64_t, Cell>;  ///< by begin, disjoint
  /// Makes cells of exactly [begin, end), and calls `visit` for each.
  template <class Visit>
  void each_cell(const Memory& memory, std::int64_t begin, std::int64_t end, Visit&& visit);

  std::map<Memory, Cells> memory_;
};

/// Items of others that are known to be done: of an actor, all up to a number.
class Clock {
 public:
  bool knows(std::int32_t actor, std::int32_t item) const {
    const auto found = newest_.find(actor);
    return found != newest_.end() && found->second >= item;
  }
  void learn(std::int32_t actor, std::int32_t item) {
    const auto [at, added] = newest_.try_emplace(actor, item);
    if (!added && at->second < item) at->second = item;
  }
  void learn(const Clock& other) {
    for (const auto& [actor, item] : other.newest_) learn(actor, item);
  }

 private:
  std::map<std::int32_t, std::int32_t> newest_;
};

/// One by one the items of actors in an order in which nobody waits for a later one; says which
/// waits each of them needs.
class Reduction {
 public:
  using ItemOf = std::pair<std::int32_t, std::int32_t>;  ///< actor, its item
  /// Of `before`, what `actor` does not know by then: the latest first, which may imply others.
  /// The item is the actor's next one.
  std::vector<ItemOf> next(std::int32_t actor, const std::vector<ItemOf>& before);
  bool knows(std::int32_t actor, const ItemOf& item) {
    return now_[actor].knows(item.first, item.second);
  }

 private:
  std::map<std::int32_t, Clock> now_;
  std::map<ItemOf, std::pair<std::int64_t, Clock>> then_;  ///< place in the order, what it knew
  std::map<std::int32_t, std::int32_t> count_;
};

}  // namespace hemiola::program::general
