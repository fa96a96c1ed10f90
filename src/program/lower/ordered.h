// Plans for executors that know three buffers per rank and no counters: movements in one order,
// chunks of these buffers, and who has to come first where two touch the same bytes. Private to
// lower/channels.cc and lower/connections.cc.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "program/lower/general.h"
#include "program/lower/history.h"

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

  BufferKind kind_of(const Place& at) const { return place[index(at.area.tensor)].first; }
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
  struct Writer {
    std::int64_t who = -1;
  };
  std::map<Memory, MemoryMap<Writer, std::int64_t>> memory_;
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
  using KnownItems = Known<std::int32_t, std::int32_t>;
  std::map<std::int32_t, KnownItems> now_;
  std::map<ItemOf, std::pair<std::int64_t, KnownItems>>
      then_;  ///< place in the order, what it knew
  std::map<std::int32_t, std::int32_t> count_;
};

}  // namespace hemiola::program::general
