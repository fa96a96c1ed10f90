// The general lowering: a plan becomes movements and tiles with places in memory
// (lower/movements.cc, lower/rows.cc, lower/groups.cc, lower/tiles.cc), which passes improve
// (lower/fuse.cc, lower/flow.h), these become items of actors (lower/general.cc), whose
// dependencies become progress counters and whose items become operations (lower/actors.cc,
// lower/operands.cc) on units of memory (lower/cuts.cc). With a machine, movements that cross its
// NICs are made ones that NICs can do (lower/network.cc). Private to lower/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/inline_vector.h"
#include "plan/area.h"
#include "program/lower/lower.h"

namespace hemiola::program::general {

struct Symmetry;  // lower/symmetry.h

/// Whether any rank does.
inline bool computes(const plan::Plan& plan) {
  const auto any = [](const plan::Code& code) { return !code.computes.empty(); };
  return std::ranges::any_of(plan.codes, any);
}

/// Rows of memory that all of some places have at equal distances; units of area.h: bytes or
/// chunks.
struct Strip {
  InlineVector<std::int64_t, 2> offset, pitch;  ///< by place; of one row the pitch is the run
  std::int64_t run = 0, rows = 1;
  std::int64_t units() const { return run * rows; }
  std::int64_t end() const { return offset[0] + (rows - 1) * pitch[0] + run; }  ///< first place
  auto operator<=>(const Strip&) const = default;
};

/// Memory of a rank, or, with a group, of all its members, in the order in which it is moved.
struct Place {
  int rank = 0;
  std::int32_t group = -1;  ///< through the switch
  plan::Area area;          ///< at least what is touched
  std::vector<Strip> rows;  ///< each of one place; equal for equal memory in equal order
  bool packets = false;     ///< in the buffer of packets, which follows the tensors
  std::int64_t units() const;
};
/// Whether both are the same units in the same order.
bool same(const Place& a, const Place& b);

/// Adds rows behind others. They continue the last strip where they go on at its distances.
void append(std::vector<Strip>& strips, Strip rows);
/// Cuts places of equally many units into the longest strips, in order.
std::vector<Strip> strips_of(const std::vector<const Place*>& places);
/// The same of an area alone, whose rows need not be listed one by one.
std::vector<Strip> strips_of(const plan::Tensor& tensor, const plan::Area& area);
/// Place::rows of an area: of strips that are neighbours in memory the adjoining rows are one.
std::vector<Strip> rows_of(const plan::Tensor& tensor, const plan::Area& area);
/// Units [begin, begin + count) of Place::rows.
std::vector<Strip> part_of(const std::vector<Strip>& rows, std::int64_t begin, std::int64_t count);
/// One by one.
std::vector<plan::Segment> segments_of(const Place& place);

/// A movement by its place in Movements. Index -1: whatever was there before the start.
struct MovementId {
  int rank = 0;
  std::int32_t stream = 0;
  std::int64_t index = -1;
  auto operator<=>(const MovementId&) const = default;
};

/// A transfer of the plan, or a step of one; without places a meeting point only.
struct Movement {
  int rank = 0;
  std::int32_t stream = 0;
  std::vector<Place> sources;  ///< more than one: reduced
  std::vector<Place> destinations;
  /// The first destination is memory of its own that nobody reads: only there where a NIC needs it.
  bool staged = false;
  bool swaps = false;  ///< two sources, two destinations, each of one to that of the same number
  struct After : MovementId {
    bool loads_only = false;  ///< only what that one has read is overwritten: no fence is needed
  };
  std::vector<After> after;
  std::vector<std::pair<int, plan::Area>> computed;    ///< rank and what its tiles have written
  std::vector<std::pair<int, std::int32_t>> launches;  ///< rank and compute that is done
  std::string where;
  std::vector<Strip> strips;  ///< sources, then destinations
  std::int64_t level = -1;    ///< when it runs if every movement takes one step

  bool reduces() const { return sources.size() > 1 && !swaps; }
  /// Sources, then destinations.
  std::vector<const Place*> places() const;
  bool by_switch() const {
    return std::ranges::any_of(places(), [](const Place* place) { return place->group >= 0; });
  }
};
/// Whether one writes what the other reads or writes.
bool conflict(const Movement& a, const Movement& b);
using Movements = std::vector<std::vector<std::vector<Movement>>>;  ///< by rank, stream, order

inline Movement& at(Movements& movements, const MovementId& id) {
  return movements[index(id.rank)][index(id.stream)][index(id.index)];
}
inline const Movement& at(const Movements& movements, const MovementId& id) {
  return movements[index(id.rank)][index(id.stream)][index(id.index)];
}
/// visit(id, movement), by rank, stream and order. `movements` may be const.
template <class Movements, class Visit>
void each_movement(Movements& movements, Visit&& visit) {
  MovementId id;
  for (id.rank = 0; id.rank < std::ssize(movements); ++id.rank) {
    auto& streams = movements[index(id.rank)];
    for (id.stream = 0; id.stream < std::ssize(streams); ++id.stream) {
      auto& stream = streams[index(id.stream)];
      for (id.index = 0; id.index < std::ssize(stream); ++id.index)
        visit(std::as_const(id), stream[index(id.index)]);
    }
  }
}
/// visit(rank) of the ranks whose memory a place is.
template <class Visit>
void each_rank(const plan::Plan& plan, const Place& place, Visit&& visit) {
  if (place.group < 0) return visit(place.rank);
  for (const int rank : plan.groups[index(place.group)]) visit(rank);
}
/// Visits what movements write on the ranks below `period`: visit(rank, place, movement).
template <class Visit>
void each_written(const plan::Plan& plan, const Movements& movements, int period, Visit&& visit) {
  each_movement(movements, [&](const MovementId&, const Movement& movement) {
    for (const Place& place : movement.destinations)
      each_rank(plan, place, [&](int rank) {
        if (rank < period) visit(rank, place, movement);
      });
  });
}

/// Those that movements name in `after`.
std::set<MovementId> awaited_by_others(const Movements& movements);

/// Movements that are taken out, and which of the others is waited for in their place; index -1:
/// nobody waits.
using Gone = std::map<MovementId, MovementId>;
/// Takes them out, and puts each of the others into the stream that `stream_of` says, in the order
/// there is; `streams`: how many there are then, by rank. Without these two streams stay.
void rearrange(Movements& movements, const Gone& gone,
               const std::function<std::int32_t(const MovementId&)>& stream_of = {},
               const std::vector<std::size_t>& streams = {});

/// Transfers one by one; groups as stores and loads of every member, or through the switch;
/// collectives as exchanges between a meeting of all members and another. Behind the streams of a
/// code come those of its launches that wait for transfers (lower/launches.h).
Movements movements_of(const plan::Plan& plan, const LowerOptions& options);

/// Rewrites what copy engines do (lower/copies.cc): queues by peer, each a stream of its own, which
/// the plan gets as well; broadcasts and swaps. Failure for words that fit nothing in the plan.
void arrange_copies(plan::Plan& plan, const Program& program, const LowerOptions& options,
                    Movements& movements);

/// So many copies (0: any number) of a queue without a signal in between become one submission.
void batch_copies(Body& body, int batch);

/// Rewrites what crosses a NIC: pulls become pushes of whoever holds the data, and sums beyond a
/// NIC are made by their owner, through memory that is added to the plan as its last tensor. Every
/// rank gets two more streams: one that only posts whole messages, by one workgroup, and one that
/// adds. Movements have levels (tiles_of). Returns whether anything crossed.
bool through_network(plan::Plan& plan, Movements& movements, const machine::Machine& machine);
/// Gives every movement its strips. Packets are no rows.
void cut_into_strips(Movements& movements);

/// Joins neighbours in a stream where one reads what the one before wrote, and there is no need to
/// wait in between: reductions of several sources, and results that are passed on as they are made.
/// What nobody else reads is not written. Sources are reduced from the first to the last, in the
/// order of the plan. Needs levels, and leaves none; of plans that do not compute.
void fuse(const plan::Plan& plan, const LowerOptions& options, Movements& movements);

/// What is left of this in plans that compute: in streams that only touch memory of their own rank,
/// what adds to one destination is one reduction, if nobody is told of the sums in between. Sources
/// keep their order. Needs no levels.
void join_sums(Movements& movements);
/// Whether it is such a stream: all places are its own rank's, and something is added up.
bool adds_up_locally(const std::vector<Movement>& stream);

/// What a tile touches, and how far on the next one does, along each axis of its compute.
struct Touched {
  std::int32_t tensor = 0;
  std::vector<Strip> strips;        ///< of the first tile of a group
  std::vector<std::int64_t> apart;  ///< units of area.h
  std::vector<std::int64_t> steps;  ///< by strip: how far on the next step does; empty with one
};

/// Tiles of a compute kernel that wait for the same, that the same waits for, and that differ in
/// their place only: a box of them. Where they add up along the fastest axis, each takes several
/// steps there, at equal distances in memory.
struct TileGroup {
  std::int32_t compute = 0;
  std::vector<std::int32_t> counts;  ///< tiles along each axis of the compute; 1 of reduced ones
  std::vector<Touched> reads;        ///< without what it adds to
  std::int64_t steps = 1;
  std::vector<Touched> adds;    ///< what is added to, read with the first step; of the first group
                                ///< of its outputs only
  std::vector<Touched> writes;  ///< of the last step; not of groups that only add up
  std::vector<plan::Area> needed, made;  ///< all that its tiles read, and what they write or add to
  std::int64_t flop = 0;                 ///< of a step
  MatrixProduct product{};               ///< of kernel "gemm"; of a step
  /// Groups of the same outputs, which add up; tile i of each is of the same output, and runs on
  /// the same workgroup.
  std::int32_t outputs = 0;
  std::vector<const Movement*> after;
  std::vector<std::int32_t> after_groups;
  std::string where;  ///< of the first tile
  std::int64_t level = -1;
  std::int64_t wanted = INT64_MAX;  ///< the first level of a movement that takes what it makes

  std::int32_t tiles() const;
  /// How far tile number `tile`, the last axis fastest, is from the first one.
  std::int64_t distance(const Touched& touched, std::int32_t tile) const;
};
/// A tile of a group.
struct TileRef {
  std::int32_t group = 0, tile = 0;
};
struct RankTiles {
  std::vector<TileGroup> groups;  ///< by compute
  std::vector<TileRef> order;     ///< of execution
};
using Tiles = std::vector<RankTiles>;  ///< by rank

/// Groups of the ranks below the period, without what they wait for and without an order
/// (lower/groups.cc).
Tiles groups_of(const plan::Plan& plan, const Movements& movements, const Symmetry& symmetry);
/// Tiles of the ranks below the period, with what they wait for, and levels of everything. Ranks
/// beyond do their images in the same order. Failure: a plan that waits for itself.
Tiles tiles_of(const plan::Plan& plan, Movements& movements, const Symmetry& symmetry);

/// Whether all that overlaps in memory is cut alike, so that the same share of two movements is the
/// same bytes and workgroup w needs to know of workgroup w only.
bool is_cut_alike(const plan::Plan& plan, const Movements& movements);
/// Units that every row, offset and distance of a plan of elements is a multiple of; 1 in a plan of
/// chunks.
std::int64_t unit_of(const plan::Plan& plan, const Movements& movements, const Tiles& tiles,
                     const Symmetry& symmetry);
/// The one size and data type of a plan of elements whose chunk has `unit` bytes.
void fix_size(const plan::Plan& plan, Program& program, std::int64_t unit);

/// Failure for what this lowering does not do of a plan with these options.
void check_general(const plan::Plan& plan, const LowerOptions& options);

/// Whoever does items in order: a workgroup, or a queue of copies.
struct Actor {
  enum class Kind : std::uint8_t { communication, computation, engine } kind = Kind::communication;
  int rank = 0;
  std::int32_t stream = 0;
  std::int32_t slice = 0, slices = 1;  ///< its share of movements
  std::int32_t launch = -1;            ///< the compute that it is a part of (lower/launches.h)
  struct Item {
    enum class Kind : std::uint8_t { start, movement, tiles, end, done } kind = Kind::movement;
    const Movement* movement = nullptr;
    const TileGroup* group = nullptr;
    std::vector<std::int32_t> tiles{};  ///< of the group
    struct After {
      std::int32_t actor = 0, item = 0;  ///< any actor's image
      bool loads_only = false;           ///< as in Movement
    };
    std::vector<After> after{};
    bool joins = false;  ///< all actors of the stream get here first
  };
  std::vector<Item> items;
};

/// Operations and their operands as a rank's bodies have them: ranks and places as seen from it.
struct OperandWriter {
  const plan::Plan& plan;
  Protocol protocol = Protocol::simple;
  std::int64_t unit = 1;  ///< units of a chunk
  const Symmetry& symmetry;
  int rank = 0;

  /// Place `which` of a strip.
  Operand operand(const Place& place, const Strip& strip, std::size_t which) const;
  /// Adds operations of tiles of a group. What they differ in stands in the table of a loop around
  /// one of them, unless that is a single operation: an engine takes what follows an operation for
  /// another one only where its number differs.
  void add_tiles(const TileGroup& group, const std::vector<std::int32_t>& tiles,
                 std::vector<Op>& ops) const;

 private:
  /// A tile of a group; or, in a table, any tile, whose places are that much further.
  struct TileOf {
    const TileGroup& group;
    std::int32_t tile = 0;
    bool in_table = false;
  };
  void add_tile(const TileOf& tile, std::vector<Op>& ops) const;
  void add_steps(const TileOf& tile, std::int64_t begin, std::int64_t end,
                 std::vector<Op>& ops) const;
  struct Steps {
    std::int64_t first = 0, distance = 0;
  };
  /// The first step of a tile, or those that stand `distance` steps apart from there on, one in
  /// each iteration of the loop around them.
  void add_step(const TileOf& tile, Steps steps, bool writes, std::vector<Op>& ops) const;
  /// Op::places of a loop around `tiles` of a group: a column for each of its reads, adds, writes.
  std::vector<std::int64_t> places(const TileGroup& group,
                                   const std::vector<std::int32_t>& tiles) const;
  void append(std::vector<Operand>& operands, const TileOf& tile, const Touched& touched,
              std::int32_t column, Steps steps) const;
};

/// Bodies, semaphores, barriers, kernels and streams of the actors of the ranks below the period;
/// the image of actor a on a rank k periods further is number a + k * actors.size(). `unit`: units
/// of a chunk.
void write_actors(Program& program, const plan::Plan& plan, const LowerOptions& options,
                  const std::vector<Actor>& actors, std::int64_t unit, const Symmetry& symmetry);

}  // namespace hemiola::program::general
