// Sends and receives through connections: FIFOs of slots in the receiver's memory, with a tail that
// the sender advances and a head (credit) that the receiver advances.
#include <algorithm>

#include "program/walk/cursor.h"

namespace hemiola::program {
namespace {

bool sends(OpKind kind) {
  return kind != OpKind::recv && kind != OpKind::recv_reduce_copy;
}
bool receives(OpKind kind) {
  return kind != OpKind::send;
}

/// After `crediting` come the credits of every connection behind a NIC, one by one, then the tails
/// of those that are not, then those behind a NIC.
enum Stage : std::int32_t { waiting, before, moving, after, crediting };

}  // namespace

// Counters of a cursor: semaphores have keys >= 0, FIFO steps negative ones, by the semaphore that
// tells of them.
std::int64_t Cursor::sent_key(const ConnectionRef& to) const {
  return -1 - 2 * std::int64_t{credit(to).index};
}
std::int64_t Cursor::received_key(const ConnectionRef& from) const {
  return -2 - 2 * std::int64_t{tail(from).index};
}

/// Asking the machine takes a lock, and a workgroup has few peers.
bool Cursor::crosses_network(int peer) {
  auto& [known, network] = networks_[index(peer) % networks_.size()];
  if (known != peer) {
    network = bound_->crosses_network(rank(), peer);
    known = peer;
  }
  return network;
}

Cursor::End Cursor::end_of(const ConnectionRef& connection, bool incoming) {
  End end;
  end.connection = &connection;
  end.peer = rank_of(connection.peer(indices_));
  end.network = crosses_network(end.peer);
  // Flags inside lines do not survive a NIC: there every protocol uses the tail.
  if (program_->protocol != Protocol::simple && !end.network)
    end.access = program_->protocol == Protocol::ll ? Access::packet : Access::ll128;
  end.pulled = program_->fifo.pulls && end.access == Access::plain && !end.network;
  end.step = count_of(incoming ? received_key(connection) : sent_key(connection));
  return end;
}

Span Cursor::slot(int owner, std::int32_t buffer, std::int64_t step, Access access) const {
  const std::int64_t index = step % program_->fifo.slots;
  return {owner,
          frame_->buffer_of(buffer),
          index * program_->slot_bytes(),
          access,
          -1,
          access == Access::plain ? 0 : step + 1};
}

/// In the memory of the connection's receiver, which the frame's numbers are the same for.
SemaphoreId Cursor::tail(const ConnectionRef& connection, int owner) const {
  return {owner, frame_->first_semaphore + program_->tail_semaphore(connection.inbound)};
}
SemaphoreId Cursor::credit(const ConnectionRef& connection, int owner) const {
  return {owner, frame_->first_semaphore + program_->head_semaphore(connection.outbound)};
}

/// Every region takes the same number of slots, because all regions of an operation are equally
/// long.
void Cursor::begin_transfer(const Op& op, const Operand& local) {
  if (transfer_.op == op_) return;
  transfer_.op = piece_loop() < 0 ? op_ : -1;
  transfer_.first = region(op, local, 0);
  const Fifo& fifo = program_->fifo;
  const auto parts = [](std::int64_t bytes, std::int64_t each) {
    return (bytes + each - 1) / each;
  };
  const std::int64_t bytes = transfer_.first.bytes;
  const std::int64_t call = fifo.call_bytes(frame_->chunk_bytes);
  transfer_.call = call > 0 ? call : std::max<std::int64_t>(bytes, 1);
  transfer_.per_call =
      call > 0 ? fifo.slices : parts(bytes, fifo.slice_bytes(bytes, size_of(frame_->type)));
  transfer_.per_region = parts(bytes, transfer_.call) * transfer_.per_call;
  transfer_.slices = transfer_.per_region * regions(op, local);
}

void Cursor::begin_slice(const Op& op, const Operand& local) {
  const std::int64_t number = part_ / transfer_.per_region;
  const Region whole = number == 0 ? transfer_.first : region(op, local, number);
  const std::int64_t inside = part_ - number * transfer_.per_region;
  const std::int64_t call = inside / transfer_.per_call * transfer_.call;
  const std::int64_t bytes = std::min(transfer_.call, whole.bytes - call);
  const std::int64_t step = program_->fifo.slice_bytes(bytes, size_of(frame_->type));
  const std::int64_t begin = std::min(inside % transfer_.per_call * step, bytes);
  transfer_.slice = {whole.offset + call + begin, std::min(step, bytes - begin), whole.piece};
  std::vector<End>& ends = transfer_.ends;
  ends.clear();
  if (receives(op.kind)) {
    ends.push_back(end_of(op.recv_from, true));
    for (const ConnectionRef& from : op.more_from) ends.push_back(end_of(from, true));
  }
  transfer_.sources = ends.size();
  if (sends(op.kind)) {
    ends.push_back(end_of(op.send_to, false));
    for (const ConnectionRef& to : op.more_to) ends.push_back(end_of(to, false));
  }
}

void Cursor::end_slice() {
  for (const End& to : outgoing()) ++count_of(sent_key(*to.connection));
  for (const End& from : incoming()) ++count_of(received_key(*from.connection));
}

bool Cursor::expand_connection(const Op& op, Primitive& out) {
  const Operand& local = op.src.empty() ? op.dst.at(0) : op.src.front();
  if (part_ == 0 && stage_ == waiting) begin_transfer(op, local);
  for (; part_ < transfer_.slices; ++part_) {
    if (stage_ == waiting) begin_slice(op, local);
    const auto stages = static_cast<std::int32_t>(crediting + 2 + transfer_.ends.size());
    while (stage_ < stages)
      if (fifo_stage(op, out)) return true;
    end_slice();
    stage_ = waiting;
  }
  return false;
}

/// One stage of one slice; false when this stage has no primitive.
bool Cursor::fifo_stage(const Op& op, Primitive& out) {
  // Whether data that come in (or go out) through one of the connections are announced by a tail.
  const auto has_tail = [](std::span<const End> ends) {
    return std::ranges::any_of(ends, [](const End& end) { return end.access == Access::plain; });
  };
  const std::int32_t stage = stage_++;
  const bool is_empty = transfer_.slice.bytes == 0;  // of the last calls; posted like any other
  switch (stage) {
    case waiting:
      return fifo_wait(out);
    case before:
      if (is_empty || (!sends(op.kind) && !has_tail(incoming()))) return false;
      out.kind = PrimitiveKind::sync;
      out.movers = true;
      return true;
    case moving:
      if (!is_empty) fifo_move(op, out);
      return !is_empty;
    case after:
      out.kind = PrimitiveKind::sync;
      return receives(op.kind) || has_tail(outgoing());
    default:
      break;
  }
  const std::size_t sources = transfer_.sources;
  const auto step = index(stage - crediting);
  if (step == 0) return fifo_credits(out);
  if (step <= sources) return fifo_remote_credit(incoming()[step - 1], out);
  if (step == sources + 1) return fifo_tails(out);
  return fifo_post(outgoing()[step - sources - 2], out);
}

/// Without a fence: a credit orders loads that have returned, nothing else. One thread each.
bool Cursor::fifo_credits(Primitive& out) const {
  for (const End& from : incoming()) {
    if (from.network) continue;
    out.semaphores.push_back(credit(*from.connection, from.peer));
    out.values.push_back(1);
  }
  out.kind = PrimitiveKind::signal;
  return !out.semaphores.empty();
}

bool Cursor::fifo_remote_credit(const End& from, Primitive& out) const {
  if (!from.network) return false;
  out.semaphores.push_back(credit(*from.connection, from.peer));
  out.values.push_back(1);
  out.kind = PrimitiveKind::post;
  out.remote = out.release = true;
  return true;
}

/// The tail of the incoming slot, where it has one, and the credit for the outgoing slot, where it
/// is not one of the first.
bool Cursor::fifo_wait(Primitive& out) const {
  for (const End& from : incoming()) {
    if (from.access != Access::plain) continue;
    out.semaphores.push_back(tail(*from.connection, rank()));
    out.values.push_back(from.step + 1);
    out.acquire = true;
  }
  for (const End& to : outgoing()) {
    if (to.step < program_->fifo.slots) continue;
    out.semaphores.push_back(credit(*to.connection, rank()));
    out.values.push_back(to.step + 1 - program_->fifo.slots);
  }
  out.kind = PrimitiveKind::wait;
  return !out.semaphores.empty();
}

void Cursor::fifo_move(const Op& op, Primitive& out) const {
  const Region slice = transfer_.slice;
  out.kind = PrimitiveKind::move;
  out.bytes = slice.bytes;
  out.reduce = reduction(op);
  for (const End& from : incoming()) {
    out.src.push_back(from.pulled
                          ? slot(from.peer, program_->staging_buffer(from.connection->outbound),
                                 from.step, Access::plain)
                          : slot(rank(), program_->fifo_buffer(from.connection->inbound), from.step,
                                 from.access));
  }
  for (const Operand& local : op.src) out.src.push_back(span(local, slice));
  for (const End& to : outgoing()) {
    out.dst.push_back(
        to.network || to.pulled
            ? slot(rank(), program_->staging_buffer(to.connection->outbound), to.step,
                   Access::plain)
            : slot(to.peer, program_->fifo_buffer(to.connection->inbound), to.step, to.access));
  }
  for (const Operand& local : op.dst) out.dst.push_back(span(local, slice));
}

/// Advances the tails of receivers that load and store reach, after one fence for all.
bool Cursor::fifo_tails(Primitive& out) const {
  for (const End& to : outgoing()) {
    if (to.access != Access::plain || to.network) continue;
    out.semaphores.push_back(tail(*to.connection, to.peer));
    out.values.push_back(1);
  }
  out.kind = PrimitiveKind::signal;
  if (out.semaphores.empty()) return false;
  out.release = transfer_.slice.bytes > 0;  // nothing to order behind an empty slice
  return true;
}

/// Across a NIC the proxy copies the staged slot, then advances the tail.
bool Cursor::fifo_post(const End& to, Primitive& out) const {
  if (!to.network) return false;
  out.bytes = transfer_.slice.bytes;
  if (out.bytes > 0) {
    out.src.push_back(
        slot(rank(), program_->staging_buffer(to.connection->outbound), to.step, Access::plain));
    out.dst.push_back(
        slot(to.peer, program_->fifo_buffer(to.connection->inbound), to.step, Access::plain));
  }
  out.semaphores.push_back(tail(*to.connection, to.peer));
  out.values.push_back(1);
  out.kind = PrimitiveKind::post;
  out.remote = out.release = true;
  return true;
}

}  // namespace hemiola::program
