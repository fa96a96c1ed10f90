// Runs a bound program symbolically, once, in one valid order: workgroups in turn, each until it
// blocks. A step of a workgroup is that of all its images (fold.h) at once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/monitor.h"
#include "program/semantics/occupancy.h"
#include "program/walk/cursor.h"
#include "verify/programs/fold.h"
#include "verify/programs/memory.h"
#include "verify/programs/semaphores.h"
#include "verify/values.h"

namespace hemiola::verify {

/// Memory that a copy reads or writes, in rows of one buffer from the first to the last.
struct Touched {
  std::vector<Region> rows;
  bool written = false;
  /// The first bytes that both have.
  std::optional<Region> common(const Touched& other) const;
};

/// One workgroup of one kernel launch, which is known by its index in Interpreter::workgroups.
struct Workgroup {
  Workgroup(const program::Bound& program, int rank, std::int32_t body)
      : rank(rank), body(body), cursor(program, rank, body) {}

  int rank = 0;
  std::int32_t body = 0;
  int number = 0;       ///< among the workgroups of its rank, for messages
  Actor in_clocks = 0;  ///< its actor in clocks, where those that learn from each other are near
  std::int32_t threads = 1;
  program::Occupancy occupancy;  ///< of its compute unit; with a machine
  std::int32_t parts = 1;        ///< of its block, from this one on
  std::int32_t grain = 16;       ///< data bytes that a thread moves at a time
  std::int32_t stream = 0;
  program::Cursor cursor;
  program::Primitive current;
  bool has_current = false;
  program::ComputeSteps tile;  ///< whose loads are `loads`, from `next_load` on
  std::vector<std::pair<program::Span, std::int64_t>> loads;
  std::size_t next_load = 0;
  bool copies = false;         ///< a queue of copies of the rank's copy engines
  bool in_batch = false;       ///< of these: the copy before was in the same submission
  std::vector<Touched> batch;  ///< what the copies of the present submission touch

  enum class State : std::uint8_t { unborn, ready, blocked, ended } state = State::unborn;
  std::int32_t compute_unit = -1;

  Clock clock;     ///< what happened before the current segment
  Clock with_own;  ///< ... and its own segments before that one, for `with_own_of` only
  Segment with_own_of = -1;
  Segment segment = 0;
  struct Lesson {  ///< learned by one thread (-1: unknown); by all after the next barrier
    std::int32_t thread = -1;
    Acquired acquired;
  };
  std::vector<Lesson> lessons;
  /// Without a barrier they would become as many as there are waits: those of a thread are joined.
  void join_lessons();
  struct OpenWait {  ///< a wait of one thread that has not ended yet
    std::int32_t thread = 0;
    program::SemaphoreId semaphore;
    Wait wait;
    std::int32_t op = 0;
  };
  std::vector<OpenWait> open_waits;
  std::vector<bool> signalled;              ///< of the current signal: semaphores already done
  Snapshot fenced;                          ///< at the last fence, or the start of the kernel
  Clock after_fence;                        ///< what all threads learn at the end of the kernel
  std::map<std::int32_t, Snapshot> posted;  ///< by queue: after this workgroup's last descriptor
  bool at_barrier = false;
};

/// Something that is wrong whatever the order.
struct Fault {
  Actor workgroup = 0;
  std::int32_t op = 0;
  std::string text;
};

class Interpreter {
 public:
  enum class End : std::uint8_t {
    finished,
    stuck,
    wrong,
    unfoldable  ///< images of an access do not do the same after all: begin again without a fold
  };

  /// All arguments outlive the interpreter.
  Interpreter(const program::Bound& program, Fold& fold, ValueTable& values, Memory& memory);

  /// Runs the program once more on all ranks. `wrong`: a race of the first repetition or a fault.
  /// Interrupted when the monitor (which may be null) says so.
  End run(const Monitor* monitor);

  std::int64_t operations() const { return operations_; }
  const std::optional<Fault>& fault() const { return fault_; }
  /// What happened before the end of a rank's last kernel.
  Clock end_of(int rank) const;
  /// ... before the end of all kernels. Posted copies that nothing waited for are not among it.
  Clock end_of_all() const;

  // For explanations.
  const program::Bound& program() const { return program_; }
  const Fold& fold() const { return fold_; }
  const std::vector<Workgroup>& workgroups() const { return workgroups_; }
  /// Whether a workgroup did it itself, not the proxy that it posted to.
  bool is_own(const AccessRecord& access) const {
    return workgroups_[index(access.workgroup)].in_clocks == access.actor;
  }
  const SemaphoreState& semaphore(program::SemaphoreId id) const {
    return semaphores_[number_of(id)];
  }
  std::int64_t repetition() const { return repetition_; }
  struct Barrier {
    std::vector<Actor> arrived;
  };
  const Barrier& barrier(int rank, std::int32_t id) const;
  /// Whether a workgroup cannot start before others end.
  bool waits_for_place(const Workgroup& workgroup) const;
  bool valid(program::SemaphoreId id) const;

 private:
  struct Stream {
    std::size_t position = 0;
    std::int32_t running = 0;  ///< workgroups of the current kernel that have not ended
    std::vector<std::vector<Actor>> launches;  ///< by item
    Clock clock;
    Clock kernel_end;
    bool waits_for_event = false;
  };
  struct ComputeUnit {
    program::Occupancy used;  ///< by resident workgroups
  };
  struct Rank {
    std::vector<Stream> streams;
    std::map<std::int32_t, Clock> events;
    std::deque<Actor> unborn;
    std::vector<ComputeUnit> compute_units;
    std::map<std::int32_t, Barrier> barriers;
  };
  /// What a proxy does for one rank towards one peer, in order.
  struct Queue {
    Actor actor = 0;
    Segment segment = 0;
    Clock clock;
  };
  struct Poller {
    std::int64_t byte = 0;
    Actor workgroup = 0;
  };

  // launch.cc: streams and places on compute units
  void create_workgroups();
  void create_semaphores();
  void number_in_clocks();
  void start_repetition();
  void advance(int rank, std::int32_t stream);
  bool step(int rank, Stream& stream, const program::StreamItem& item);
  void launch(int rank, Stream& stream);
  void dispatch(int rank);
  bool place(int rank, std::span<Workgroup> block);
  void end(Actor actor);
  bool all_streams_done() const;

  // interpreter.cc: control
  void advance_workgroup(Actor actor);
  static bool next(Workgroup& self);
  void find_stores();
  bool execute(Actor actor);
  bool settle(Actor actor);
  static bool waits(const Workgroup& self, std::int32_t thread);
  bool execute_wait(Workgroup& self, Actor actor);
  bool execute_signal(Workgroup& self, Actor actor);
  bool execute_barrier(Workgroup& self, Actor actor);
  void pass_barrier(Workgroup& self);
  void fence(Workgroup& self);
  void wake(std::vector<std::int32_t>& blocked);
  void wake(Actor actor);
  Snapshot snapshot(Workgroup& self, std::int32_t thread) const;
  void signal(program::SemaphoreId id, std::int64_t value, Signal signal);
  bool must_be_awaited(const Workgroup& self, std::int32_t op) const;
  /// Of the one that stands for it at its representative.
  std::size_t number_of(program::SemaphoreId id) const {
    return index(fold_.seat(id.rank).rank) * program_.semaphores().size() + index(id.index);
  }
  void fail(Actor workgroup, std::int32_t op, std::string text);

  // transfer.cc: data
  bool execute_move(Workgroup& self, Actor actor);
  bool execute_post(Workgroup& self, Actor actor);
  bool packets_there(Workgroup& self, Actor actor);
  bool is_alone_in_batch(Workgroup& self, Actor actor);
  void exchange(const Workgroup& self, const AccessRecord& access);
  bool spans_exist(Workgroup& self, Actor actor);
  void load(const program::Primitive& primitive, AccessRecord access, const Clock& clock);
  void store(const program::Primitive& primitive, AccessRecord access, const Clock& clock);
  void check_written(Actor actor);
  bool reads_resident(Actor actor);
  bool reduces_otherwise(const Workgroup& self, Actor actor);
  void made_by(int rank, const program::Primitive& primitive);
  void wake_pollers(const Region& stored);
  void add_to_sum(const std::vector<Piece>& pieces);
  struct Part {
    Region region;
    std::int64_t data = 0;   ///< of the span's data bytes, where it begins
    std::int32_t image = 0;  ///< of the region's rank: how far it was turned to get there
  };
  /// As the program has them, and at the representatives.
  std::vector<Part> parts(const program::Span& span, std::int64_t bytes) const;
  std::vector<Part> placed(const program::Span& span, std::int64_t bytes);
  View view(const Clock& clock, std::int32_t image) const { return {clock, image, fold_.images()}; }
  Queue& queue(int rank, int peer);

  const program::Bound& program_;
  Fold& fold_;
  ValueTable& values_;
  Memory& memory_;
  std::vector<Workgroup> workgroups_;  ///< of representatives
  std::vector<Rank> ranks_;
  std::vector<SemaphoreState> semaphores_;
  std::map<std::pair<int, int>, std::int32_t> queue_numbers_;
  std::vector<Queue> queues_;
  std::unordered_map<std::int32_t, std::vector<Poller>> pollers_;  ///< by number of memory
  std::deque<Actor> ready_;
  std::vector<Piece> sum_;                   ///< of the current transfer
  std::vector<Piece> pieces_;                ///< scratch
  std::vector<Memory::Stored> stores_seen_;  ///< scratch
  std::optional<Fault> fault_;
  std::vector<bool> stored_into_;  ///< by buffer: some operation does
  std::int64_t operations_ = 0;
  const Monitor* monitor_ = nullptr;
  std::int32_t repetition_ = -1;
  bool unfoldable_ = false;
};

}  // namespace hemiola::verify
