// Exchanges: every rank pushes to, pulls from and reduces over its peers, with loads and stores.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "program/lower/parts.h"

namespace hemiola::program {
namespace {

// vLLM custom_all_reduce.cuh: at most 36 workgroups of 512 threads.
constexpr int kExchangeWorkgroups = 36;
constexpr int kExchangeThreads = 512;
constexpr int kMaxThreads = 1024;

/// What one or a few operations do: runs of the stream, fused where kernels fuse them.
struct ExchangeStep {
  Run run;                      ///< copy, push or pull; the own contribution of a reduction
  std::vector<Run> terms = {};  ///< reduction: what is added
  std::vector<Run> send = {};   ///< reduction: one push of its result to all peers, or nothing
  bool reduces() const { return !terms.empty(); }
};

bool accumulates_into(const Run& run, const plan::Region& region) {
  return run.transfer->reduce != ReduceOp::none && run.transfer->destination == region &&
         run.transfer->operand == region && run.transfer->kind != plan::TransferKind::push;
}

/// Joins "copy own, accumulate the others" into one reduction, and a push of its result to it.
std::vector<ExchangeStep> steps_of(const std::vector<Run>& runs) {
  std::vector<ExchangeStep> steps;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    ExchangeStep step{.run = runs[i]};
    const plan::Region& result = runs[i].transfer->destination;
    if (runs[i].transfer->kind == plan::TransferKind::copy && runs[i].count == 1)
      while (i + 1 < runs.size() && accumulates_into(runs[i + 1], result))
        step.terms.push_back(runs[++i]);
    if (step.reduces() && i + 1 < runs.size()) {
      const plan::Transfer& next = *runs[i + 1].transfer;
      if (next.kind == plan::TransferKind::push && next.source == result && next.after.empty())
        step.send.push_back(runs[++i]);
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

/// Pushed chunks on their way as packets: slot i of `buffer` belongs to iteration i of the push.
struct Staging {
  Run run;
  std::int32_t buffer = 0;
};

/// Writes the body of one workgroup; the same for all ranks.
class ExchangeWriter {
 public:
  ExchangeWriter(const plan::Plan& plan, const LowerOptions& options, Program& program)
      : plan_(plan),
        program_(program),
        stream_(plan.codes.front().streams.front()),
        steps_(steps_of(runs_of(plan, stream_))),
        packets_(options.protocol == Protocol::ll),
        barrier_(options.barrier.value_or(!packets_)) {
    check_steps();
    prepare_buffers();
  }

  Body write(int workgroup, int workgroups) {
    workgroup_ = workgroup;
    workgroups_ = workgroups;
    body_ = {};
    staged_ = {};
    rounds_ = 0;
    dirty_ = false;
    peers_read_ = false;
    if (barrier_) {
      synchronise(OpKind::relaxed_signal);
      synchronise(OpKind::relaxed_wait);
      sync();
    }
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      more_pushes_ = i + 1 < steps_.size() && only_pushes(steps_[i + 1]);
      write_step(steps_[i]);
    }
    finish();
    return std::move(body_);
  }

 private:
  [[noreturn]] void fail(const std::string& what, const std::string& hint, const Run& run) const {
    throw Failure(fmt::format("plan '{}' {}", plan_.name, what),
                  {.pointer = place_of(stream_, run)}, hint);
  }

  bool is_scratch(std::int32_t tensor) const {
    return plan_.tensors[index(tensor)].role == plan::Role::scratch;
  }
  bool holds_packets(std::int32_t buffer) const { return program_.buffers[index(buffer)].packets; }

  /// Whether nothing stands between a push before the step and the step's own.
  static bool only_pushes(const ExchangeStep& step) {
    const plan::Transfer& transfer = *step.run.transfer;
    return !step.reduces() && transfer.kind == plan::TransferKind::push && transfer.after.empty();
  }

  /// Every run of a step, in order.
  template <class Visit>
  static void each_run(const ExchangeStep& step, Visit&& visit) {
    visit(step.run);
    for (const Run& term : step.terms) visit(term);
    for (const Run& send : step.send) visit(send);
  }

  void check_steps() const {
    for (const ExchangeStep& step : steps_) {
      each_run(step, [&](const Run& run) {
        if (packets_ && run.transfer->kind == plan::TransferKind::pull)
          fail("pulls, and packets can only be pushed",
               "choose transfer=push and gather=push, or protocol=simple", run);
      });
    }
  }

  /// Scratch of an exchange that starts without a barrier alternates between two halves: a peer may
  /// be one repetition ahead, and not more, because every repetition waits for all peers.
  void prepare_buffers() {
    for (std::size_t i = 0; i < plan_.tensors.size(); ++i)
      if (is_scratch(static_cast<std::int32_t>(i))) program_.buffers[i].rotation = barrier_ ? 1 : 2;
    if (!packets_) return;
    for (const ExchangeStep& step : steps_) {
      each_run(step, [&](const Run& run) {
        if (run.transfer->kind != plan::TransferKind::push) return;
        const std::int32_t tensor = run.transfer->destination.tensor;
        if (is_scratch(tensor)) {
          program_.buffers[index(tensor)].packets = true;
          return;
        }
        stagings_.push_back({run, static_cast<std::int32_t>(program_.buffers.size())});
        program_.buffers.push_back({.name = fmt::format("packets {}", stagings_.size() - 1),
                                    .chunks = {run.count * run.transfer->destination.count()},
                                    .packets = true,
                                    .rotation = 2});
      });
    }
  }

  // Synchronisation: semaphore d - 1 of a workgroup is signalled by its counterpart on rank (own -
  // d).

  std::int32_t semaphore(std::int64_t distance) const {
    return static_cast<std::int32_t>(workgroup_ * (plan_.ranks - 1) + distance - 1);
  }

  /// Packets need loads and stores all the way; the rest may go through a NIC.
  Channel channel() const { return packets_ ? Channel::memory : Channel::any; }

  void synchronise(OpKind kind) {
    const bool signals = kind == OpKind::signal || kind == OpKind::relaxed_signal;
    Op op{.kind = kind, .channel = channel()};
    for (std::int64_t distance = 1; distance < plan_.ranks; ++distance) {
      op.semaphores.push_back(
          {signals ? neighbour(distance, plan_.ranks) : own_rank(), semaphore(distance)});
    }
    body_.ops.push_back(std::move(op));
  }

  void sync() { body_.ops.push_back({.kind = OpKind::sync}); }

  void signal() {
    sync();
    synchronise(OpKind::signal);
    ++rounds_;
    dirty_ = false;
    peers_read_ = false;
  }

  /// Makes what peers wrote before their last signal visible here.
  void await_peers() {
    if (dirty_) signal();
    for (; rounds_ > 0; --rounds_) synchronise(OpKind::wait);
  }

  void finish() {
    unpack();
    if (packets_) return;
    for (; rounds_ > 0; --rounds_) synchronise(OpKind::wait);
    if (peers_read_) {  // nobody leaves while a peer still reads its buffers
      sync();
      synchronise(OpKind::relaxed_signal);
      synchronise(OpKind::relaxed_wait);
    }
  }

  void satisfy_dependencies(const ExchangeStep& step) {
    bool depends = false;
    each_run(step, [&](const Run& run) { depends = depends || !run.transfer->after.empty(); });
    if (!depends) return;
    if (packets_) return unpack();
    await_peers();
    sync();
  }

  // Data.

  Op data_op(OpKind kind, const Run& run, Channel channel = Channel::none) const {
    Op op{.kind = kind, .channel = channel};
    op.slice = workgroup_;
    op.slices = workgroups_;
    op.where = place_of(stream_, run);
    return op;
  }

  /// An operand as it stands in the program: packets where its buffer holds them.
  Operand operand(const plan::Region& region, const Affine& rank) const {
    Operand made = operand_at(region, rank);
    if (holds_packets(made.buffer)) made.access = Access::packet;
    return made;
  }

  Operand source_of(const Run& run) const {
    const plan::Transfer& transfer = *run.transfer;
    return operand(transfer.source,
                   transfer.kind == plan::TransferKind::pull ? transfer.peer : own_rank());
  }

  Operand destination_of(const Run& run) const {
    const plan::Transfer& transfer = *run.transfer;
    const bool push = transfer.kind == plan::TransferKind::push;
    for (const Staging& staging : stagings_)
      if (staging.run.transfer == &transfer && push) return slot(staging, transfer.peer);
    return operand(transfer.destination, push ? transfer.peer : own_rank());
  }

  static Operand slot(const Staging& staging, const Affine& rank) {
    const std::int64_t chunks = staging.run.transfer->destination.count();
    return {.rank = rank,
            .buffer = staging.buffer,
            .chunk = {.loop = {chunks, 0}},
            .chunks = chunks,
            .access = Access::packet};
  }

  static Operand fixed(Operand operand, std::int64_t iteration) {
    operand.rank = at_iteration(operand.rank, iteration);
    operand.chunk = at_iteration(operand.chunk, iteration);
    return operand;
  }

  /// All iterations of an operand, one after the other.
  static void append_all(std::vector<Operand>& to, const Operand& operand, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to.push_back(fixed(operand, i));
  }

  /// One source, one destination, `count` times.
  void write_loop(Op op, const Operand& source, const Operand& destination, std::int64_t count) {
    if (count == 1) {
      op.src = {fixed(source, 0)};
      op.dst = {fixed(destination, 0)};
      body_.ops.push_back(std::move(op));
      return;
    }
    Op loop{.kind = OpKind::loop};
    loop.count = count;
    op.src = {source};
    op.dst = {destination};
    body_.ops.push_back(std::move(loop));
    body_.ops.push_back(std::move(op));
    body_.ops.push_back({.kind = OpKind::end_loop});
  }

  void write_step(const ExchangeStep& step) {
    satisfy_dependencies(step);
    step.reduces() ? reduce(step) : move(step.run);
  }

  /// A copy, a push or a pull: collectives are refused before.
  void move(const Run& run) {
    const bool pushes = run.transfer->kind == plan::TransferKind::push;
    const bool pulls = run.transfer->kind == plan::TransferKind::pull;
    const bool copies = !pushes && !pulls;
    if (copies && run.count == 1 && is_in_place(program_, *run.transfer)) return;
    const Operand source = source_of(run);
    const OpKind kind = kind_of({.pulls = pulls,
                                 .pushes = pushes,
                                 .arrives = copies && source.access == Access::packet,
                                 .leaves = pushes && packets_});
    write_loop(data_op(kind, run, copies ? Channel::none : channel()), source, destination_of(run),
               run.count);
    if (pushes) return sent(run);
    note_reads(run);
    dirty_ = true;
  }

  /// Peers learn of pushed chunks as soon as a group of pushes is done; of packets they learn by
  /// themselves.
  void sent(const Run& run) {
    if (!packets_) {
      dirty_ = true;
      if (!more_pushes_) signal();
      return;
    }
    for (const Staging& staging : stagings_)
      if (staging.run.transfer == run.transfer) staged_.push_back(staging);
  }

  void note_reads(const Run& run) {
    const bool remote = run.transfer->kind == plan::TransferKind::pull;
    peers_read_ = peers_read_ || (remote && !is_scratch(run.transfer->source.tensor));
  }

  void reduce(const ExchangeStep& step) {
    const bool remote = step.terms.front().transfer->kind == plan::TransferKind::pull;
    const bool sends = !step.send.empty();
    const OpKind kind =
        kind_of({.reduces = true,
                 .pulls = remote,
                 .pushes = sends,
                 .arrives = source_of(step.terms.front()).access == Access::packet});
    Op op = data_op(kind, step.run, remote || sends ? channel() : Channel::none);
    op.reduce = step.terms.front().transfer->reduce;
    op.src = {source_of(step.run)};
    op.dst = {destination_of(step.run)};
    for (const Run& term : step.terms) {
      append_all(op.src, source_of(term), term.count);
      note_reads(term);
    }
    for (const Run& send : step.send) append_all(op.dst, destination_of(send), send.count);
    body_.ops.push_back(std::move(op));
    dirty_ = true;
    for (const Run& send : step.send) sent(send);
  }

  /// Takes arrived packets out of their slots to where the plan wants them.
  void unpack() {
    for (const Staging& staging : staged_) {
      const plan::Transfer& transfer = *staging.run.transfer;
      // Slot i was filled by the rank to which this one is peer number i.
      Operand to = operand_at(transfer.destination, own_rank());
      to.chunk = seen_from(to.chunk, transfer.peer.constant, transfer.peer.loop[0], plan_.ranks);
      write_loop(data_op(OpKind::unpack_packets, staging.run), slot(staging, own_rank()), to,
                 staging.run.count);
    }
    staged_.clear();
  }

  const plan::Plan& plan_;
  Program& program_;
  const plan::Stream& stream_;
  std::vector<ExchangeStep> steps_;
  bool packets_;
  bool barrier_;
  std::vector<Staging> stagings_;

  int workgroup_ = 0;
  int workgroups_ = 1;
  Body body_;
  std::vector<Staging> staged_;  // pushed, not yet unpacked by the receiver
  int rounds_ = 0;               // of signals whose counterparts were not awaited
  bool more_pushes_ = false;     // the next step goes on pushing
  bool dirty_ = false;           // something was written since the last signal
  bool peers_read_ = false;      // callers' buffers of peers were read since the last signal
};

void check_exchange(const plan::Plan& plan, const LowerOptions& options, int threads) {
  if (options.protocol == Protocol::ll128) {
    throw Failure(fmt::format("'{}' has no connections, which protocol ll128 needs", plan.name),
                  kOption, "choose protocol simple or ll, or a ring");
  }
  if (options.piece.count != 0) {
    throw Failure(fmt::format("'{}' does not move data in pieces", plan.name), kOption,
                  "leave piece out, or choose a ring");
  }
  if (plan.ranks - 1 > threads) {
    throw Failure(fmt::format("a barrier among {} ranks needs {} threads per workgroup, not {}",
                              plan.ranks, plan.ranks - 1, threads),
                  kOption, "each thread signals one peer; a ring has no such limit");
  }
}

/// Whether all transfers that a step waits for belong to steps before it.
bool waits_for_earlier_steps(const ExchangeStep& step, int ranks) {
  bool earlier = true;
  const auto note = [&](const Run& run) {
    for (const plan::Dependency& after : run.transfer->after) {
      // Without a modulus the largest number is found at an end of both ranges.
      const bool ends = after.transfer.modulus == 0;
      const std::int64_t by_rank = ends ? std::max(1, ranks - 1) : 1;
      const std::int64_t by_iteration = ends ? std::max<std::int64_t>(1, run.count - 1) : 1;
      for (std::int64_t rank = 0; rank < ranks; rank += by_rank)
        for (std::int64_t i = 0; i < run.count; i += by_iteration)
          earlier = earlier && after.transfer({.rank = rank, .loop = {i, 0}}) < step.run.first;
    }
  };
  note(step.run);
  std::for_each(step.terms.begin(), step.terms.end(), note);
  std::for_each(step.send.begin(), step.send.end(), note);
  return earlier;
}

}  // namespace

// Peers are waited for between steps, never inside one.
bool has_exchange_steps(const plan::Plan& plan, const plan::Stream& stream) {
  const std::vector<ExchangeStep> steps = steps_of(runs_of(plan, stream));
  return std::ranges::all_of(steps, [&](const ExchangeStep& step) {
    if (!waits_for_earlier_steps(step, plan.ranks)) return false;
    if (step.terms.empty()) return step.run.transfer->reduce == ReduceOp::none;
    const plan::TransferKind kind = step.terms.front().transfer->kind;
    return std::ranges::all_of(step.terms,
                               [&](const Run& term) { return term.transfer->kind == kind; });
  });
}

Program lower_exchange(const plan::Plan& plan, const LowerOptions& options, Program program) {
  const int workgroups = options.workgroups > 0 ? options.workgroups : kExchangeWorkgroups;
  const int threads = options.threads > 0
                          ? options.threads
                          : std::clamp((plan.ranks + 30) / 32 * 32, kExchangeThreads, kMaxThreads);
  check_exchange(plan, options, threads);
  Kernel kernel{.name = plan.name, .threads = threads};
  ExchangeWriter writer(plan, options, program);
  for (int workgroup = 0; workgroup < workgroups; ++workgroup) {
    kernel.bodies.push_back(workgroup);
    program.bodies.push_back(writer.write(workgroup, workgroups));
    for (int distance = 1; distance < plan.ranks; ++distance) {
      program.semaphores.push_back(
          {.name = fmt::format("workgroup {}, from {} before", workgroup, distance)});
    }
  }
  program.kernels = {std::move(kernel)};
  program.codes = {{{{StreamItem{.kind = StreamItem::Kind::kernel, .index = 0}}}}};
  program.code_of.assign(index(plan.ranks), 0);
  return program;
}

}  // namespace hemiola::program
