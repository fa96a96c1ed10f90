// Chains: rings and lines of ranks that forward what arrives, through connections.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "program/lower/parts.h"

namespace hemiola::program {
// NCCL 2.30: 8 slots per connection (NCCL_STEPS); step sizes of src/init.cc and
// src/include/device.h.
Fifo nccl_fifo(Protocol protocol) {
  switch (protocol) {
    case Protocol::simple:
      return {8, KiB(512)};
    case Protocol::ll:
      return {8, KiB(32)};  // 64 KiB of memory
    case Protocol::ll128:
      return {8, Bytes{576'000}};  // 600 KiB of memory: 15/16 data
  }
  return {};
}

namespace {

// As many channels as NCCL 2.30 takes on a DGX A100 or H100; threads of its src/graph/tuning.cc.
constexpr int kChannels = 24;

/// Writes the bodies of one stream of a rank that runs one code while its left neighbour runs
/// another.
class ChainWriter {
 public:
  ChainWriter(const plan::Plan& plan, const Program& program, int rank, std::int32_t stream,
              const ChainLink& link)
      : plan_(plan),
        program_(program),
        rank_(rank),
        link_(link),
        number_(stream),
        stream_(plan.stream(rank, stream)),
        outgoing_(runs_of(plan, stream_)) {
    if (link.left < 0) return;
    for (const Run& run : runs_of(plan, plan.stream(link.left, stream)))
      if (run.transfer->kind == plan::TransferKind::push) incoming_.push_back(run);
  }

  Body write(int channel, int channels, Bytes piece) {
    channel_ = channel;
    channels_ = channels;
    next_ = 0;
    taken_ = 0;
    Op loop{.kind = OpKind::loop};
    loop.unit = piece * channels;
    loop.unit_chunks = 1;
    body_.ops = {loop};
    for (std::size_t i = 0; i < outgoing_.size(); ++i) {
      const Run *copied = &outgoing_[i], *sent = i + 1 < outgoing_.size() ? copied + 1 : copied;
      if (copied->transfer->kind == plan::TransferKind::push) std::swap(copied, sent);
      if (keeps_and_sends(*copied, *sent)) {
        emit({}, {sent->transfer, 0}, 1, *sent, copied->transfer);
        ++i;
      } else {
        write_run(outgoing_[i]);
      }
    }
    while (next_ < incoming_.size()) receive();
    body_.ops.push_back({.kind = OpKind::end_loop});
    return std::move(body_);
  }

 private:
  /// `count` iterations of a run from `start` on.
  struct Part {
    const plan::Transfer* transfer = nullptr;
    std::int64_t start = 0;
  };

  [[noreturn]] void fail(const std::string& what, const Run& run) const {
    throw Failure(fmt::format("plan '{}' is not a chain that can be lowered: {}", plan_.name, what),
                  {.pointer = place_of(stream_, run)});
  }

  void write_run(const Run& run) {
    const plan::Transfer& transfer = *run.transfer;
    if (transfer.kind == plan::TransferKind::copy) return copy(run);
    if (transfer.after.empty()) return emit({}, {run.transfer, 0}, run.count, run);
    for (std::int64_t done = 0; done < run.count;) {
      check_dependency(run, done);
      const std::int64_t count = std::min(run.count - done, incoming_[next_].count - taken_);
      check_dependency(run, done + count - 1, count - 1);
      emit({incoming_[next_].transfer, taken_}, {run.transfer, done}, count, run);
      take(count);
      done += count;
    }
  }

  void take(std::int64_t count) {
    taken_ += count;
    if (taken_ == incoming_[next_].count) {
      ++next_;
      taken_ = 0;
    }
  }

  /// Iteration `i` of the run waits for the incoming transfer that is `ahead` after the next one,
  /// and passes on what it brought.
  void check_dependency(const Run& run, std::int64_t i, std::int64_t ahead = 0) const {
    if (next_ >= incoming_.size()) fail("it forwards more than arrives", run);
    const Run& from = incoming_[next_];
    const plan::Transfer& transfer = *run.transfer;
    const Indices at{.rank = rank_, .loop = {i, 0}};
    const plan::Dependency& dependency = transfer.after.front();
    if (transfer.after.size() != 1 || dependency.stream != number_ ||
        dependency.rank(at) != link_.left || dependency.transfer(at) != from.first + taken_ + ahead)
      fail("a transfer does not wait for just the next arrival from the left", run);
    const Indices there{.rank = link_.left, .loop = {taken_ + ahead, 0}};
    const plan::Region& arrived = from.transfer->destination;
    if (arrived.tensor != transfer.source.tensor || arrived.count() != transfer.source.count() ||
        arrived.first()(there) != transfer.source.first()(at))
      fail("a transfer does not pass on what it waits for", run);
  }

  void receive() {
    const Run& run = incoming_[next_];
    const std::int64_t count = run.count - taken_;
    emit({run.transfer, taken_}, {}, count, run);
    take(count);
  }

  /// A chunk that a rank keeps and sends is read once for both (NCCL's copySend).
  bool keeps_and_sends(const Run& copied, const Run& sent) const {
    const plan::Transfer &copy = *copied.transfer, &push = *sent.transfer;
    return copy.kind == plan::TransferKind::copy && push.kind == plan::TransferKind::push &&
           copied.count == 1 && sent.count == 1 && copy.after.empty() && push.after.empty() &&
           copy.source == push.source && !is_in_place(program_, copy);
  }

  void copy(const Run& run) {
    if (run.count != 1) fail("it copies in a loop", run);
    if (is_in_place(program_, *run.transfer)) return;
    Op op = data_op(OpKind::copy, run);
    op.src = {operand_at(run.transfer->source, own_rank())};
    op.dst = {operand_at(run.transfer->destination, own_rank())};
    body_.ops.push_back(std::move(op));
  }

  Op data_op(OpKind kind, const Run& run) const {
    Op op{.kind = kind};
    op.slice = channel_;
    op.slices = channels_;
    op.where = place_of(stream_, run);
    return op;
  }

  bool is_transit(const plan::Region& region) const {
    return plan_.tensors[index(region.tensor)].role == plan::Role::transit;
  }

  static OpKind kind_of(bool receives, bool sends, bool reduces, bool keeps) {
    if (!receives) return OpKind::send;
    if (!sends) return reduces ? OpKind::recv_reduce_copy : OpKind::recv;
    if (!reduces) return OpKind::recv_copy_send;
    return keeps ? OpKind::recv_reduce_copy_send : OpKind::recv_reduce_send;
  }

  /// One operation, in a loop if it stands for several: what comes in, what goes out, or both at
  /// once. `kept`: where what goes out and did not come in is copied to.
  void emit(const Part& in, const Part& out, std::int64_t count, const Run& run,
            const plan::Transfer* kept = nullptr) {
    const bool reduces = in.transfer != nullptr && in.transfer->reduce != ReduceOp::none;
    const bool keeps = in.transfer != nullptr && !is_transit(in.transfer->destination);
    Op op = data_op(kind_of(in.transfer != nullptr, out.transfer != nullptr, reduces, keeps), run);
    const auto local = [&](const plan::Region& region, const Part& part, bool from_left) {
      if (is_transit(region)) fail("a chunk in transit is used other than by forwarding it", run);
      Operand operand = operand_at(region, own_rank());
      if (from_left) operand.chunk = seen_from(operand.chunk, rank_ - link_.left, 0, plan_.ranks);
      operand.chunk = count > 1 ? from_iteration(operand.chunk, part.start, 1)
                                : at_iteration(operand.chunk, part.start);
      return operand;
    };
    if (in.transfer == nullptr) op.src = {local(out.transfer->source, out, false)};
    if (kept != nullptr) op.dst = {operand_at(kept->destination, own_rank())};
    if (reduces) op.src = {local(in.transfer->operand, in, true)};
    if (reduces) op.reduce = in.transfer->reduce;
    if (keeps) op.dst = {local(in.transfer->destination, in, true)};
    if (op.src.empty() && op.dst.empty()) fail("it forwards without touching its own memory", run);
    if (out.transfer != nullptr) op.send_to = connection(link_.right);
    if (in.transfer != nullptr) op.recv_from = connection(link_.left);
    if (count > 1) {
      Op loop{.kind = OpKind::loop};
      loop.count = count;
      body_.ops.push_back(std::move(loop));
    }
    body_.ops.push_back(std::move(op));
    if (count > 1) body_.ops.push_back({.kind = OpKind::end_loop});
  }

  ConnectionRef connection(int peer) const {
    const std::int64_t distance = (peer - rank_ + plan_.ranks) % plan_.ranks;
    return {neighbour(distance, plan_.ranks), channel_, channel_, channel_};
  }

  const plan::Plan& plan_;
  const Program& program_;
  std::int64_t rank_;
  ChainLink link_;
  std::int32_t number_;
  const plan::Stream& stream_;
  std::vector<Run> outgoing_;
  std::vector<Run> incoming_;
  std::size_t next_ = 0;    // incoming run ...
  std::int64_t taken_ = 0;  // ... and how many of it were used
  int channel_ = 0;
  int channels_ = 1;
  Body body_;
};

Bytes piece_of(const LowerOptions& options, const Fifo& fifo) {
  const Bytes piece = options.piece.count == 0 ? fifo.step : options.piece;
  const Bytes most = fifo.step * fifo.slots;
  if (piece.count < 16 || piece.count % 16 != 0 || piece > most) {
    throw Failure(fmt::format("a piece of {} does not fit the connections", to_string(piece)),
                  kOption,
                  fmt::format("with protocol {} it is a multiple of 16 B up to {}",
                              name_of(options.protocol), to_string(most)));
  }
  return piece;
}

}  // namespace

Program lower_chain(const plan::Plan& plan, const LowerOptions& options, Program program) {
  auto streams = static_cast<int>(plan.codes.front().streams.size());
  if (options.rings > 0) streams = std::min(streams, options.rings);
  // Equally many channels for every stream, so that their parts are equal.
  const int each = std::max(1, (options.workgroups > 0 ? options.workgroups : kChannels) / streams);
  const int channels = each * streams;
  program.fifo = nccl_fifo(options.protocol);
  const Bytes piece = piece_of(options, program.fifo);
  program.inbound = program.outbound = channels;

  const std::vector<ChainLinks> links = links_of_chain(plan);
  std::map<ChainRole, std::int32_t> roles;  // to program code
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const auto [found, is_new] = roles.try_emplace(role_of(plan, links, rank),
                                                   static_cast<std::int32_t>(program.codes.size()));
    if (is_new) {
      Kernel kernel{.name = plan.name,
                    .threads = options.threads > 0                   ? options.threads
                               : options.protocol == Protocol::ll128 ? 640
                                                                     : 512};
      for (int channel = 0; channel < channels; ++channel) {
        const int stream = channel / each;
        ChainWriter writer(plan, program, rank, stream, links[index(rank)][index(stream)]);
        kernel.bodies.push_back(static_cast<std::int32_t>(program.bodies.size()));
        program.bodies.push_back(writer.write(channel, channels, piece));
      }
      StreamItem launch{.kind = StreamItem::Kind::kernel,
                        .index = static_cast<std::int32_t>(program.kernels.size())};
      program.kernels.push_back(std::move(kernel));
      program.codes.push_back({{{launch}}});
    }
    program.code_of.push_back(found->second);
  }
  return program;
}

}  // namespace hemiola::program
