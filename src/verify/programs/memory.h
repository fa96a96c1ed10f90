// The memory of all ranks as intervals: what each byte holds, who wrote it last and who read it
// since.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "program/bind/bound.h"
#include "program/semantics/primitive.h"
#include "verify/programs/clock.h"
#include "verify/values.h"

namespace hemiola::verify {

/// Bytes of a buffer of a rank, counted in data bytes: packets and their flags are a second memory
/// beside the plain one, whose byte d is the d-th data byte.
struct Region {
  std::int32_t rank = 0;
  std::int32_t buffer = 0;
  program::Access access = program::Access::plain;
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// One load or store of a region by all threads of a workgroup, or by a proxy.
struct AccessRecord {
  Actor actor = 0;
  Segment segment = 0;
  std::int32_t workgroup = 0;  ///< that did it, or posted the descriptor; its index
  std::int32_t op = 0;         ///< in the workgroup's body
  std::int32_t repetition = 0;
  std::int32_t image = 0;  ///< of actor and workgroup, as the memory's rank counts them (fold.h)
  std::int64_t base = 0;   ///< thread t owns bytes base + width * (t + k * threads)
  std::int32_t width = 16;
  std::int32_t threads = 0;
  bool write = false;
  bool polls = false;  ///< a packet load: blocks until the flag is there
};

struct Race {
  AccessRecord earlier;  ///< in the order of the interpretation
  AccessRecord later;
  Region where;
};

/// What had been done when a packet was made, byte by byte: packets order the accesses of the
/// threads they pass through, not of whole workgroups. A copy is cheap; moving bytes up by d is
/// `shift - d`.
struct Trail {
  struct Step {
    std::int32_t record = 0;
    std::int32_t turn = 0;  ///< images from the rank of the record's memory to the present one
    /// The byte that was read or stored stands this far after the packet's.
    std::int64_t delta = 0;
  };
  std::shared_ptr<const std::vector<Step>> steps;  ///< latest record first; null: nothing known
  std::int64_t shift = 0;                          ///< added to every delta
  std::int32_t turn = 0;                           ///< added to every turn
  bool operator==(const Trail&) const = default;
};
/// Both trails; the oldest steps are dropped from very long ones, which can only hide an order.
Trail join(const Trail& a, const Trail& b, std::int32_t images);
Trail one_step(std::int32_t record, std::int64_t delta);

/// Part of a region; all numbers, those of the value and the trail too, are relative to its begin.
struct Piece {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  Value value;
  Trail trail;
};

/// Adds a piece behind the last, or to it if they are alike.
void append(std::vector<Piece>& pieces, Piece piece);

/// What a byte is; neighbours that are equal may share a cell.
struct Cell {
  std::int64_t end = 0;
  Value value;
  std::int32_t writer = -1;           ///< record; -1: initial contents
  std::vector<std::int32_t> readers;  ///< records, since the last write
  std::int64_t flag = 0;              ///< packets: the flag that stands beside the data
  bool rewritten = false;  ///< packets: stored more than once with this flag; Access::lamport: not
                           ///< cleared before it was stored
  Trail trail;             ///< packets: the store and what it depends on
};

/// What the actor of an access knows, as the memory's rank counts images: the image i of an actor
/// is the clock's image i + turn.
struct View {
  const Clock& clock;
  std::int32_t turn = 0;
  std::int32_t images = 1;

  Segment all(Actor actor, std::int32_t image) const {
    return clock.all(actor, (image + turn) % images);
  }
  Segment reads(Actor actor, std::int32_t image) const {
    return clock.reads(actor, (image + turn) % images);
  }
};

/// Of the ranks below the period of a fold: regions name no others.
class Memory {
 public:
  Memory(const program::Bound& program, ValueTable& values, int period);

  void initialise(const Region& where, Value value);
  /// Somebody else put new values into a region that was initialised; who wrote and read it before
  /// stays known.
  void refill(const Region& where, Value value);

  /// Numbers an access; the number stands for it in read() and write().
  std::int32_t record(const AccessRecord& access);
  const AccessRecord& access(std::int32_t record) const { return records_[index(record)]; }

  /// Appends the values of the region in order, and checks the load against the last store.
  void read(const Region& where, std::int32_t record, const View& view, std::vector<Piece>& out);
  /// Stores the pieces, and checks the store against the last store and the loads since.
  void write(const Region& where, std::int32_t record, const View& view,
             const std::vector<Piece>& pieces, std::int64_t flag);
  /// For stores of packets: what their threads knew, as the memory's rank sees it.
  const Snapshot* stored_by(std::int32_t record) const;
  /// ... and at their last fence: what a load of the packet learns if a fence follows.
  const Snapshot& fenced_before(std::int32_t record) const { return fenced_.at(record); }
  /// To be said of stores of packets before they are written.
  void set_fenced(std::int32_t record, Snapshot fenced) { fenced_[record] = std::move(fenced); }

  /// Forgets accesses that no byte remembers any more, once there are many: a program of any length
  /// takes memory for what its bytes hold, not for what it has done. Numbers of accesses change, so
  /// nobody else may hold one.
  void forget();

  /// The first byte of a region of packets that does not carry the flag.
  std::optional<std::int64_t> first_without(const Region& packets, std::int64_t flag) const;
  /// A store of packets, as a rank sees it to which its memory's is `image`.
  struct Stored {
    std::int32_t record = 0;
    std::int32_t image = 0;
    bool before = false;  ///< of packets from which those that were asked for were made
    auto operator<=>(const Stored&) const = default;
  };
  /// The stores of the packets of a region, and those in their trails; as a rank sees them to which
  /// this memory's is `image` of `images`.
  void stores_of(const Region& packets, std::int32_t image, std::int32_t images,
                 std::vector<Stored>& stores) const;

  /// Calls visit(part, const Cell*) for the whole region in order; null where nothing was touched.
  template <class Visit>
  void inspect(const Region& where, Visit visit) const;

  /// The first pair of unordered accesses of one repetition, and of different ones.
  const std::optional<Race>& race() const { return race_; }
  const std::optional<Race>& hazard() const { return hazard_; }
  /// Two accesses were ordered only because the same threads do them, of regions that begin at
  /// different places: at another size other threads might.
  bool by_place() const { return by_place_; }
  /// Bytes that are used both as packets and as plain data, if there are any.
  std::optional<Region> mixed_use() const;

  /// The number that names a memory in ValueTable::unwritten, and back.
  std::int32_t number_of(const Region& where) const;
  Region memory_of(std::int32_t number) const;

 private:
  using Cells = std::map<std::int64_t, Cell>;  ///< by first byte; disjoint

  Cells& cells(const Region& where) { return cells_[index(number_of(where))]; }
  const Cells& cells(const Region& where) const { return cells_[index(number_of(where))]; }
  Cells::iterator split(Cells& cells, std::int64_t at);
  void fill_gaps(const Region& where);
  bool ordered(std::int32_t earlier, std::int32_t later, const View& view, std::int64_t begin,
               std::int64_t end, bool reads_only) const;
  void check_read(const Region& where, std::int64_t begin, const Cell& cell, std::int32_t record,
                  const View& view);
  void check_write(const Region& where, const Cell& cell, std::int32_t record, const View& view,
                   const Trail& trail);
  bool behind(const Trail& trail, std::int32_t reader, std::int32_t images) const;
  void check_writes(const Region& where, std::int32_t record, const View& view,
                    const std::vector<Piece>& pieces);
  void report(const Region& where, std::int64_t begin, std::int64_t end, std::int32_t earlier,
              std::int32_t later);
  void add_reader(Cell& cell, std::int32_t record) const;
  /// Calls visit(std::int32_t& record) for all that cells hold, and for those of each trail once.
  template <class Visit>
  void each_record(Visit visit);

  ValueTable& values_;
  std::int32_t buffers_ = 0;
  std::vector<Cells> cells_;
  std::vector<program::Access> layouts_;  ///< by number: the kind of packets that were stored
  std::vector<AccessRecord> records_;
  std::unordered_map<std::int32_t, Snapshot> packet_stores_;  ///< by record
  std::unordered_map<std::int32_t, Snapshot> fenced_;         ///< by record of a packet's store
  std::size_t many_ = 1 << 16;  ///< accesses after which it is worth to look which are forgotten
  std::optional<Race> race_;
  std::optional<Race> hazard_;
  mutable bool by_place_ = false;
};

template <class Visit>
void Memory::inspect(const Region& where, Visit visit) const {
  const Cells& all = cells(where);
  auto at = all.upper_bound(where.begin);
  if (at != all.begin()) --at;
  Region part = where;
  const auto visit_to = [&](std::int64_t end, const Cell* cell) {
    part.end = end;
    visit(std::as_const(part), cell);
    part.begin = end;
  };
  for (; at != all.end() && at->first < where.end; ++at) {
    const std::int64_t end = std::min(at->second.end, where.end);
    if (end <= part.begin) continue;
    if (at->first > part.begin) visit_to(at->first, nullptr);
    visit_to(end, &at->second);
  }
  if (part.begin < where.end) visit_to(where.end, nullptr);
}

}  // namespace hemiola::verify
