// Sends and receives through connections: FIFOs of slots in the receiver's memory, with a tail that
// the sender advances and a head (credit) that the receiver advances.
#include <algorithm>

#include "program/primitive.h"

namespace hemiola::program {
namespace {

bool sends(OpKind kind) {
  return kind != OpKind::recv && kind != OpKind::recv_reduce_copy;
}
bool receives(OpKind kind) {
  return kind != OpKind::send;
}

// Counters of a cursor: semaphores have keys >= 0, FIFO steps negative ones.
std::int64_t sent_key(const ConnectionRef& to) {
  return -1 - 2 * static_cast<std::int64_t>(to.outbound);
}
std::int64_t received_key(const ConnectionRef& from) {
  return -2 - 2 * static_cast<std::int64_t>(from.inbound);
}

enum Stage : std::int32_t { waiting, before, moving, after, crediting, posting, finished };

}  // namespace

Access Cursor::fifo_access(int from, int to) const {
  // Flags inside lines do not survive a NIC: there every protocol uses the tail.
  if (program_->protocol == Protocol::simple || program_->crosses_network(from, to))
    return Access::plain;
  return program_->protocol == Protocol::ll ? Access::packet : Access::ll128;
}

Span Cursor::slot(int owner, std::int32_t buffer, std::int64_t step, Access access) const {
  const std::int64_t index = step % program_->fifo.slots;
  return {owner,  buffer, index * program_->slot_bytes(),
          access, -1,     access == Access::plain ? 0 : step + 1};
}

bool Cursor::expand_connection(const Op& op, Primitive& out) {
  const Operand& local = op.src.empty() ? op.dst.at(0) : op.src.front();
  while (true) {
    // Every region takes the same number of slots, because all regions of an operation are equally
    // long.
    const Region first = region(op, local, 0);
    const std::int64_t step = program_->fifo.slice_bytes(first.bytes, size_of(program_->type));
    const std::int64_t per_region = (first.bytes + step - 1) / step;
    if (part_ >= per_region * regions(op, local)) return false;
    const Region whole = region(op, local, part_ / per_region);
    const std::int64_t begin = part_ % per_region * step;
    const Region slice{whole.offset + begin, std::min(step, whole.bytes - begin), whole.piece};
    while (stage_ < finished) {
      if (fifo_stage(op, slice, out)) return true;
    }
    if (sends(op.kind)) ++count_of(sent_key(op.send_to));
    if (receives(op.kind)) ++count_of(received_key(op.recv_from));
    stage_ = waiting;
    ++part_;
  }
}

/// One stage of one slice; false when this stage has no primitive.
bool Cursor::fifo_stage(const Op& op, Region slice, Primitive& out) {
  const int next = sends(op.kind) ? static_cast<int>(op.send_to.peer(indices_)) : rank();
  const int previous = receives(op.kind) ? static_cast<int>(op.recv_from.peer(indices_)) : rank();
  const bool flags_out = sends(op.kind) && fifo_access(rank(), next) != Access::plain;
  const bool tail_in = receives(op.kind) && fifo_access(previous, rank()) == Access::plain;
  switch (stage_++) {
    case waiting:
      return fifo_wait(op, out);
    case before:
      out.kind = PrimitiveKind::sync;
      out.movers = true;
      return sends(op.kind) || tail_in;
    case moving:
      fifo_move(op, slice, out);
      return true;
    case after:
      out.kind = PrimitiveKind::sync;
      return receives(op.kind) || !flags_out;
    case crediting:
      if (!receives(op.kind)) return false;
      out.semaphores.push_back({previous, program_->head_semaphore(op.recv_from.outbound)});
      out.values.push_back(1);
      out.remote = program_->crosses_network(rank(), previous);
      out.kind = out.remote ? PrimitiveKind::post : PrimitiveKind::signal;
      out.release = out.remote;
      return true;
    case posting:
      if (!sends(op.kind) || flags_out) return false;
      fifo_post(op, slice, out);
      return true;
    default:
      return false;
  }
}

/// The tail of the incoming slot, where it has one, and the credit for the outgoing slot, where it
/// is not one of the first.
bool Cursor::fifo_wait(const Op& op, Primitive& out) {
  if (receives(op.kind)) {
    const int previous = static_cast<int>(op.recv_from.peer(indices_));
    if (fifo_access(previous, rank()) == Access::plain) {
      out.semaphores.push_back({rank(), program_->tail_semaphore(op.recv_from.inbound)});
      out.values.push_back(count_of(received_key(op.recv_from)) + 1);
      out.acquire = true;
    }
  }
  if (sends(op.kind)) {
    const std::int64_t step = count_of(sent_key(op.send_to));
    if (step >= program_->fifo.slots) {
      out.semaphores.push_back({rank(), program_->head_semaphore(op.send_to.outbound)});
      out.values.push_back(step + 1 - program_->fifo.slots);
    }
  }
  out.kind = PrimitiveKind::wait;
  return !out.semaphores.empty();
}

void Cursor::fifo_move(const Op& op, Region slice, Primitive& out) {
  out.kind = PrimitiveKind::move;
  out.bytes = slice.bytes;
  out.reduce = reduction(op);
  if (receives(op.kind)) {
    const int previous = static_cast<int>(op.recv_from.peer(indices_));
    out.src.push_back(slot(rank(), program_->fifo_buffer(op.recv_from.inbound),
                           count_of(received_key(op.recv_from)), fifo_access(previous, rank())));
  }
  for (const Operand& source : op.src) out.src.push_back(span(source, slice));
  if (sends(op.kind)) {
    const int next = static_cast<int>(op.send_to.peer(indices_));
    const std::int64_t step = count_of(sent_key(op.send_to));
    out.dst.push_back(
        program_->crosses_network(rank(), next)
            ? slot(rank(), program_->staging_buffer(op.send_to.outbound), step, Access::plain)
            : slot(next, program_->fifo_buffer(op.send_to.inbound), step,
                   fifo_access(rank(), next)));
  }
  for (const Operand& target : op.dst) out.dst.push_back(span(target, slice));
}

/// Advances the receiver's tail; across a NIC the proxy first copies the staged slot.
void Cursor::fifo_post(const Op& op, Region slice, Primitive& out) {
  const int next = static_cast<int>(op.send_to.peer(indices_));
  out.remote = program_->crosses_network(rank(), next);
  out.kind = out.remote ? PrimitiveKind::post : PrimitiveKind::signal;
  out.release = true;
  if (out.remote) {
    const std::int64_t step = count_of(sent_key(op.send_to));
    out.bytes = slice.bytes;
    out.src.push_back(
        slot(rank(), program_->staging_buffer(op.send_to.outbound), step, Access::plain));
    out.dst.push_back(slot(next, program_->fifo_buffer(op.send_to.inbound), step, Access::plain));
  }
  out.semaphores.push_back({next, program_->tail_semaphore(op.send_to.inbound)});
  out.values.push_back(1);
}

}  // namespace hemiola::program
