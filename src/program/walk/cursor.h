// The walk over a workgroup's operations, which yields primitives.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/data_type.h"
#include "program/bind/bound.h"
#include "program/semantics/primitive.h"

namespace hemiola::program {

/// Walks the operations of one workgroup and yields its primitives in order. A value: copying it
/// forks the walk; each wavefront of a simulation has one. Memory does not depend on the length of
/// the walk.
class Cursor {
 public:
  /// `bound` outlives the cursor. `rank` is one of the whole, and takes part in the frame.
  Cursor(const Bound& bound, int rank, std::int32_t body, std::int32_t frame = 0);

  /// The next primitive into `out` (its vectors are reused); false at the end of the body.
  bool next(Primitive& out);

  /// The same, but the steps of a tile come together, in `steps`, as one posted compute without
  /// operands; the stores of the last of them follow. `steps` is empty for any other primitive, and
  /// computes that differ from step to step in more than their place come one by one.
  /// With `pieces`, tiles of a table that store something come in runs, as many at once as so many
  /// pieces of the table have.
  bool next(Primitive& out, ComputeSteps& steps, std::int64_t pieces = 0);
  /// Passes over everything up to the next such steps, or the next whole run, which it takes; false
  /// at the end of the body. What semaphores and FIFOs count is lost by that.
  bool skip_to_steps(ComputeSteps& out);

  /// Between two iterations of a table that holds nothing but computes on own memory: how many are
  /// left; else 0.
  std::int64_t iterations_left();
  /// Passes over so many of them, fewer than are left.
  void skip_iterations(std::int64_t count) { indices_.loop[0] += count; }

  /// Starts the body again as the next repetition of the whole program: rotating buffers change
  /// parts, running totals of semaphores and FIFO steps go on.
  void repeat();

  /// For a frame of several calls instead: starts the body as that call in a repetition of the
  /// whole, with what earlier calls have left in `totals`, which outlives the walk ...
  void restart(std::int64_t repetition, const Totals& totals);
  /// ... and at its end leaves there what later ones go on from.
  void leave(Totals& totals) const;

  int rank() const { return rank_; }

  /// Where leave() puts how many slices went through a connection, at either end.
  std::int64_t sent_key(const ConnectionRef& to) const;
  std::int64_t received_key(const ConnectionRef& from) const;

 private:
  struct Loop {
    std::int32_t begin = 0;  ///< index of the first operation inside
    std::int64_t count = 0;
    std::int64_t unit = 0;  ///< piece loops: data bytes of a piece, else 0
    Pieces pieces = Pieces::of_chunk;
    const std::int64_t* places = nullptr;  ///< Op::places
    std::int64_t columns = 0;
  };
  /// A contiguous part of an operand: data bytes from the operand's start.
  struct Region {
    std::int64_t offset = 0;
    std::int64_t bytes = 0;
    std::int64_t piece = 0;  ///< how much of offset is the start of a piece
  };
  /// One end of a connection, for the slice that goes through it.
  struct End {
    const ConnectionRef* connection = nullptr;
    int peer = 0;
    bool network = false;           ///< behind a NIC
    bool pulled = false;            ///< the slot is at the sender, and the receiver loads it
    Access access = Access::plain;  ///< plain: announced by a tail
    std::int64_t step = 0;          ///< slices that went through it before
  };
  /// What a send or receive is at: its slices, all equally many for every region, and the ends of
  /// the present one (what data come through, then what they leave by).
  struct Transfer {
    std::int32_t op = -1;   ///< that the next three are known of, where no piece loop changes them
    Region first{};         ///< of the regions
    std::int64_t call = 0;  ///< data bytes of a call (Fifo::call), the last one of a region less
    std::int64_t per_call = 0;    ///< slices
    std::int64_t per_region = 0;  ///< slices
    std::int64_t slices = 0;      ///< of all regions
    Region slice{};
    std::size_t sources = 0;
    std::vector<End> ends{};
  };

  // cursor.cc: structure.
  void enter_loop(const Op& op);
  void leave_or_repeat_loop();
  std::int64_t& count_of(std::int64_t key);

  bool advance(Primitive& out, ComputeSteps* steps, std::int64_t pieces = 0);

  // walk/steps.cc
  bool take_steps(ComputeSteps& out);
  bool take_run(ComputeSteps& out, std::int64_t pieces);
  std::int32_t end_of_table() const;
  bool add_step(std::int32_t op, std::int64_t times, ComputeSteps& out);
  bool add_loop(std::int32_t loop, ComputeSteps& out);

  // walk/regions.cc: which bytes.
  std::int32_t piece_loop() const;
  std::int64_t regions(const Op& op, const Operand& operand) const;
  Region region(const Op& op, const Operand& operand, std::int64_t index) const;
  Span span(const Operand& operand, Region region, bool clears = false) const;
  std::int64_t chunk_of(const Operand& operand) const;

  // expand.cc: operations into primitives; false when the operation has no more.
  bool expand(const Op& op, Primitive& out);
  bool expand_wait(const Op& op, Primitive& out);
  bool expand_signal(const Op& op, Primitive& out);
  bool expand_dependency(const Op& op, Primitive& out);
  bool expand_pairs(const Op& op, Primitive& out);
  bool expand_swap(const Op& op, Primitive& out);
  bool expand_load(const Op& op, Primitive& out);
  bool expand_compare_swap(const Op& op, Primitive& out);
  bool expand_posts(const Op& op, Primitive& out);
  bool expand_move(const Op& op, Primitive& out);
  bool expand_compute(const Op& op, Primitive& out);
  bool expand_clear(const Op& op, Primitive& out);
  bool expand_signal_any(const Op& op, Primitive& out);
  bool behind_nic(const Op& op, std::int64_t peer) const;
  bool behind_nic(const Op& op, const Operand& operand) const {
    return behind_nic(op, operand.rank(indices_));
  }
  bool expand_read_put_packets(const Op& op, Primitive& out);
  bool once() { return stage_++ == 0; }
  ReduceOp reduction(const Op& op) const;
  SemaphoreId semaphore(const SemaphoreRef& ref) const;

  // walk/fifo.cc: sends and receives through connections.
  bool expand_connection(const Op& op, Primitive& out);
  void begin_transfer(const Op& op, const Operand& local);
  void begin_slice(const Op& op, const Operand& local);
  End end_of(const ConnectionRef& connection, bool incoming);
  void end_slice();
  std::span<const End> incoming() const { return {transfer_.ends.data(), transfer_.sources}; }
  std::span<const End> outgoing() const {
    return std::span(transfer_.ends).subspan(transfer_.sources);
  }
  bool fifo_stage(const Op& op, Primitive& out);
  bool fifo_wait(Primitive& out) const;
  void fifo_move(const Op& op, Primitive& out) const;
  bool fifo_credits(Primitive& out) const;
  bool fifo_remote_credit(const End& from, Primitive& out) const;
  bool fifo_tails(Primitive& out) const;
  bool fifo_post(const End& to, Primitive& out) const;
  bool crosses_network(int peer);
  SemaphoreId tail(const ConnectionRef& connection, int owner = 0) const;
  SemaphoreId credit(const ConnectionRef& connection, int owner = 0) const;
  Span slot(int owner, std::int32_t buffer, std::int64_t step, Access access) const;

  void rewind();
  /// Ranks of the frame as those of the whole.
  std::int32_t rank_of(std::int64_t own) const { return frame_->rank_of(own); }

  const Bound* bound_;
  const Frame* frame_;
  const Program* program_;
  const Body* body_;
  int rank_;         ///< of the whole
  Indices indices_;  ///< loop counters are the running iterations; the rank is the frame's
  const Totals* before_ = nullptr;  ///< what counts begin with
  std::int64_t iteration_ = 0;
  std::int32_t op_ = 0;
  std::int32_t stage_ = 0;  ///< progress inside the current operation's expansion
  std::int64_t part_ = 0;   ///< pair, region or FIFO slice inside the current operation
  std::int32_t depth_ = 0;
  bool posted_ = false;  ///< a descriptor of Channel::any that no flush has covered
  std::array<Loop, 2> loops_{};
  std::vector<std::pair<std::int64_t, std::int64_t>>
      counts_;  ///< running totals of the semaphores and FIFOs met
  Transfer transfer_{};
  std::array<std::pair<int, bool>, 4> networks_;  ///< peers met last, and whether behind a NIC
};

}  // namespace hemiola::program
