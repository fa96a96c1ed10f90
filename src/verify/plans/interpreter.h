// Runs a plan symbolically, once, in one order that its dependencies allow.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/monitor.h"
#include "verify/plans/atoms.h"
#include "verify/plans/order.h"
#include "verify/values.h"
#include "verify/verify.h"

namespace hemiola::verify {

/// One atom of one rank.
struct PlanCell {
  Value value = kUndefined;  ///< until somebody writes it, unless it is resident
  Event writer;  ///< the last transfer or the last writing tile; actor -1: initial contents
  Event reader;  ///< the last one since then; actor -1: none
  std::unique_ptr<std::vector<Event>> readers;  ///< those before `reader`
};

class PlanInterpreter {
 public:
  enum class End : std::uint8_t { finished, stuck, wrong };

  PlanInterpreter(const Unrolled& unrolled, const Atoms& atoms);

  /// Interrupted when the monitor (which may be null) says so.
  End run(const Monitor* monitor);
  const std::optional<Finding>& fault() const { return fault_; }
  std::int64_t operations() const { return operations_; }

  /// After the end: chunks in transit that nobody forwarded.
  std::optional<Finding> left_in_transit() const;
  /// Why nothing moves any more.
  Finding explain_deadlock() const;
  /// Tensors that tiles read and nobody holds or computes: what belongs there is not said.
  const std::set<std::int32_t>& unknown_inputs() const { return unknown_inputs_; }
  /// Cells that got the value they had already.
  std::int64_t repeated() const { return repeated_; }
  const std::optional<Finding>& first_repeated() const { return first_repeated_; }

  const PlanCell& cell(int rank, std::int32_t atom) const { return cells_[cell_index(rank, atom)]; }
  /// One contribution from each rank that holds or computes the atom; undefined: none.
  Value owners(std::int32_t atom) const { return owners_[index(atom)]; }
  /// One contribution of atom 0 from each of several ranks.
  Value contributions(std::int32_t first, std::int32_t ranks) {
    return values_.contributions(first, ranks, 0);
  }
  /// What a cell should hold: what owners of an atom had, all together or one of them.
  struct Meaning {
    std::int32_t source = 0;  ///< atom
    bool reduced = false;
    std::int32_t holder = -1;  ///< this owner's; -1: anyone's
  };
  /// Of the atoms of an expectation, in order.
  std::vector<std::pair<std::int32_t, Meaning>> meanings(const plan::Expectation& expectation,
                                                         int rank) const;
  /// Whether it is that.
  bool is_right(Value value, const Meaning& meaning) const;

  // Words.
  std::string describe(int rank, std::int32_t atom) const;
  std::string describe(Value value) const;
  std::string describe(TransferId id) const;
  Witness witness(Event event, std::string text) const;

 private:
  struct Tile {
    int rank = 0;
    std::int32_t compute = 0;
    std::int64_t number = 0;
    std::int32_t launch = -1;  ///< index into launches_; -1: of the persistent kernel
    std::int32_t waiting = 0;  ///< cells that transfers have yet to write, and its launch
    bool done = false;
    std::vector<std::int32_t> reads, writes, accumulates, adds;  ///< atoms
  };
  /// A compute that is a kernel of its own. Among the actors of `order_` it has a start, before all
  /// its tiles, and an end, after them.
  struct Launch {
    int rank = 0;
    std::int32_t compute = 0;
    bool whole = false;           ///< waits as a launch, and is waited for as one
    std::int32_t waiting = 0;     ///< launches before it that are not done
    std::int32_t unfinished = 0;  ///< tiles
    bool started = false;
    std::vector<std::int32_t> tiles;
    std::vector<std::int32_t> before, behind;  ///< launches
    std::vector<TransferId> after;
    TransferId transfer{-1, 0};         ///< of `after`, the one that it waits for
    std::vector<std::int32_t> blocked;  ///< streams that wait for its end

    bool is_done() const { return started && unfinished == 0; }
  };
  /// A cell that tiles read or write.
  struct TileCell {
    std::vector<TransferId> arrivals;   ///< transfers that write it
    std::int32_t arriving = 0;          ///< those that have not yet
    std::vector<std::int32_t> readers;  ///< tiles
    std::vector<std::int32_t> writers;  ///< tiles
    std::int32_t writing = 0;           ///< those that have not yet
    std::vector<std::int32_t> wrote;    ///< tiles whose result it holds
    std::vector<std::int32_t> blocked;  ///< streams that wait for `writing` to be 0
  };
  struct AtomMovement {
    int rank = 0;
    Event event;
    std::vector<std::int32_t> destination;
    std::vector<std::pair<int, std::vector<std::int32_t>>> sources;
    std::vector<Value> values;  ///< on their way
  };
  struct StreamState {
    std::int32_t position = 0;  ///< transfers done
    bool arrived = false;       ///< at a meeting, and waits for the others
    // What it waits for: one of these.
    TransferId transfer{-1, 0};
    std::int64_t cell = -1;
    std::int32_t launch = -1;
    // Who waits for it.
    std::vector<TransferId>
        waiters;  ///< in `stream` who waits (see ready_), and for which transfer
    std::int32_t next_wake = INT32_MAX;
  };

  std::size_t cell_index(int rank, std::int32_t atom) const {
    return index(rank) * index(atoms_.count()) + index(atom);
  }
  Event event_of(std::int32_t tile) const { return {unrolled_.streams() + tile, 0}; }
  Event start_of(std::int32_t launch) const {
    return {unrolled_.streams() + static_cast<std::int32_t>(tiles_.size()) + 2 * launch, 0};
  }
  Event end_of(std::int32_t launch) const { return {start_of(launch).actor + 1, 0}; }
  /// Whether its tiles wait for the transfers that write what they read.
  bool waits_by_itself(const Tile& tile) const {
    return tile.launch < 0 || !launches_[index(tile.launch)].whole;
  }

  // plans/interpreter.cc
  void initialise();
  void advance(std::int32_t stream);
  bool may_start(TransferId id);
  bool all_written(const plan::Dependency& dependency, const Indices& at, TransferId id);
  void meet(std::int32_t meeting);
  void done(std::int32_t stream);
  void start_tile(std::int32_t tile);

  // plans/memory.cc
  void convert(TransferId id, AtomMovement& out) const;
  void perform(std::vector<AtomMovement>& movements, std::size_t count);
  void check_overlap(const AtomMovement& movement);
  void check_read(int rank, std::int32_t atom, Event now);
  void read(int rank, std::int32_t atom, Event now);
  void write(int rank, std::int32_t atom, Event now, Value value);
  void write_tile(int rank, std::int32_t atom, std::int32_t tile, plan::Use use);
  void check_sum(int rank, std::int32_t atom, std::int32_t tile);
  void forward(int rank, std::int32_t atom, Event now);
  void check_tile_input(int rank, std::int32_t atom, std::int32_t tile);
  void expect_order(Event before, bool before_writes, Event now, bool now_writes, int rank,
                    std::int32_t atom);
  void fail(std::string summary, std::vector<Witness> steps);

  // plans/tiles.cc
  void create_tiles();
  void find_arrivals();
  void find_owners();
  Value made_of(int rank, std::int32_t atom, Value own, const TileCell& cell);
  void find_meanings();

  // plans/launches.cc
  void create_launches();
  void start_launch(std::int32_t launch);
  void tile_done(std::int32_t launch, std::int32_t tile);
  bool launch_done(std::int32_t launch, std::int32_t stream);
  std::int32_t launch_of(int rank, std::int64_t compute) const {
    return launch_of_[index(rank)][index(compute)];
  }
  /// What a compute makes of an atom; of those that add, each something of its own.
  Value computed(std::int32_t atom, int rank, std::int32_t compute, bool adds);

  // plans/deadlock.cc
  struct Wait {
    std::int32_t actor = -1;  ///< who is waited for; -1: nobody can help
    std::string text;
  };
  Wait wait_of(std::int32_t actor) const;
  Wait wait_of_launch(std::int32_t launch) const;
  std::string name_of_compute(int rank, std::int32_t compute) const;

  const Unrolled& unrolled_;
  const plan::Plan& plan_;
  const Atoms& atoms_;
  Order order_;
  ValueTable values_;
  std::vector<PlanCell> cells_;
  std::vector<char> in_transit_;  ///< by atom
  std::vector<bool> reduced_tensors_;
  std::vector<Value> owners_;
  std::unordered_map<std::size_t, Meaning> meanings_;  ///< by cell: what is expected there
  std::vector<StreamState> streams_;
  std::vector<std::int32_t> arrived_;  ///< by meeting: members that came
  std::vector<Tile> tiles_;
  std::vector<Launch> launches_;
  std::vector<std::vector<std::int32_t>> launch_of_;  ///< by rank and compute; -1: none
  std::unordered_map<std::size_t, TileCell> tile_cells_;
  /// By (reading, writing stream): the last transfer of the latter that was forwarded.
  std::unordered_map<std::uint64_t, std::int32_t> forwarded_;
  std::deque<std::int32_t> ready_;  ///< streams, and from streams() on launches
  std::deque<std::int32_t> ready_tiles_;
  std::vector<AtomMovement> movements_;  ///< scratch
  std::set<std::int32_t> unknown_inputs_;
  std::optional<Finding> fault_;
  std::optional<Finding> first_repeated_;
  std::int64_t repeated_ = 0;
  std::int64_t operations_ = 0;
  const Monitor* monitor_ = nullptr;
};

}  // namespace hemiola::verify
