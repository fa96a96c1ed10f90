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

/// The connections that data come through, then none.
std::size_t sources(const Op& op) {
  return receives(op.kind) ? 1 + op.more_from.size() : 0;
}
const ConnectionRef& source(const Op& op, std::size_t i) {
  return i == 0 ? op.recv_from : op.more_from[i - 1];
}
/// The connections that data leave by, then none.
std::size_t targets(const Op& op) {
  return sends(op.kind) ? 1 + op.more_to.size() : 0;
}
const ConnectionRef& target(const Op& op, std::size_t i) {
  return i == 0 ? op.send_to : op.more_to[i - 1];
}

/// After `crediting` come the credits of every connection behind a NIC, one by one, then the tails
/// of those that are not, then those behind a NIC.
enum Stage : std::int32_t { waiting, before, moving, after, crediting };

}  // namespace

Access Cursor::fifo_access(int from, int to) const {
  // Flags inside lines do not survive a NIC: there every protocol uses the tail.
  if (program_->protocol == Protocol::simple || program_->crosses_network(from, to))
    return Access::plain;
  return program_->protocol == Protocol::ll ? Access::packet : Access::ll128;
}

bool Cursor::pulled(int from, int to) const {
  return program_->pulls && fifo_access(from, to) == Access::plain &&
         !program_->crosses_network(from, to);
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
    const auto stages = static_cast<std::int32_t>(crediting + 2 + sources(op) + targets(op));
    while (stage_ < stages) {
      if (fifo_stage(op, slice, out)) return true;
    }
    for (std::size_t i = 0; i < targets(op); ++i) ++count_of(sent_key(target(op, i)));
    for (std::size_t i = 0; i < sources(op); ++i) ++count_of(received_key(source(op, i)));
    stage_ = waiting;
    ++part_;
  }
}

/// One stage of one slice; false when this stage has no primitive.
bool Cursor::fifo_stage(const Op& op, Region slice, Primitive& out) {
  const std::int32_t stage = stage_++;
  switch (stage) {
    case waiting:
      return fifo_wait(op, out);
    case before:
      out.kind = PrimitiveKind::sync;
      out.movers = true;
      return sends(op.kind) || has_tail(op, /*incoming=*/true);
    case moving:
      fifo_move(op, slice, out);
      return true;
    case after:
      out.kind = PrimitiveKind::sync;
      return receives(op.kind) || has_tail(op, /*incoming=*/false);
    default:
      break;
  }
  const auto step = static_cast<std::size_t>(stage - crediting);
  if (step == 0) return fifo_credits(op, out);
  if (step <= sources(op)) return fifo_remote_credit(source(op, step - 1), out);
  if (step == sources(op) + 1) return fifo_tails(op, out);
  return fifo_post(target(op, step - sources(op) - 2), slice, out);
}

int Cursor::peer_of(const ConnectionRef& connection) const {
  return static_cast<int>(connection.peer(indices_));
}

/// Whether data that come in (or go out) through one of the connections are announced by a tail.
bool Cursor::has_tail(const Op& op, bool incoming) const {
  for (std::size_t i = 0; i < (incoming ? sources(op) : targets(op)); ++i) {
    const int peer = peer_of(incoming ? source(op, i) : target(op, i));
    if (fifo_access(incoming ? peer : rank(), incoming ? rank() : peer) == Access::plain)
      return true;
  }
  return false;
}

/// Without a fence: a credit orders loads that have returned, nothing else. One thread each.
bool Cursor::fifo_credits(const Op& op, Primitive& out) {
  for (std::size_t i = 0; i < sources(op); ++i) {
    const int previous = peer_of(source(op, i));
    if (program_->crosses_network(rank(), previous)) continue;
    out.semaphores.push_back({previous, program_->head_semaphore(source(op, i).outbound)});
    out.values.push_back(1);
  }
  out.kind = PrimitiveKind::signal;
  return !out.semaphores.empty();
}

bool Cursor::fifo_remote_credit(const ConnectionRef& from, Primitive& out) {
  const int previous = peer_of(from);
  if (!program_->crosses_network(rank(), previous)) return false;
  out.semaphores.push_back({previous, program_->head_semaphore(from.outbound)});
  out.values.push_back(1);
  out.kind = PrimitiveKind::post;
  out.remote = out.release = true;
  return true;
}

/// The tail of the incoming slot, where it has one, and the credit for the outgoing slot, where it
/// is not one of the first.
bool Cursor::fifo_wait(const Op& op, Primitive& out) {
  for (std::size_t i = 0; i < sources(op); ++i) {
    const ConnectionRef& from = source(op, i);
    if (fifo_access(peer_of(from), rank()) != Access::plain) continue;
    out.semaphores.push_back({rank(), program_->tail_semaphore(from.inbound)});
    out.values.push_back(count_of(received_key(from)) + 1);
    out.acquire = true;
  }
  for (std::size_t i = 0; i < targets(op); ++i) {
    const ConnectionRef& to = target(op, i);
    const std::int64_t step = count_of(sent_key(to));
    if (step < program_->fifo.slots) continue;
    out.semaphores.push_back({rank(), program_->head_semaphore(to.outbound)});
    out.values.push_back(step + 1 - program_->fifo.slots);
  }
  out.kind = PrimitiveKind::wait;
  return !out.semaphores.empty();
}

void Cursor::fifo_move(const Op& op, Region slice, Primitive& out) {
  out.kind = PrimitiveKind::move;
  out.bytes = slice.bytes;
  out.reduce = reduction(op);
  for (std::size_t i = 0; i < sources(op); ++i) {
    const ConnectionRef& from = source(op, i);
    const int previous = peer_of(from);
    const std::int64_t step = count_of(received_key(from));
    out.src.push_back(
        pulled(previous, rank())
            ? slot(previous, program_->staging_buffer(from.outbound), step, Access::plain)
            : slot(rank(), program_->fifo_buffer(from.inbound), step,
                   fifo_access(previous, rank())));
  }
  for (const Operand& local : op.src) out.src.push_back(span(local, slice));
  for (std::size_t i = 0; i < targets(op); ++i) {
    const ConnectionRef& to = target(op, i);
    const int next = peer_of(to);
    const std::int64_t step = count_of(sent_key(to));
    out.dst.push_back(
        program_->crosses_network(rank(), next) || pulled(rank(), next)
            ? slot(rank(), program_->staging_buffer(to.outbound), step, Access::plain)
            : slot(next, program_->fifo_buffer(to.inbound), step, fifo_access(rank(), next)));
  }
  for (const Operand& local : op.dst) out.dst.push_back(span(local, slice));
}

/// Advances the tails of receivers that load and store reach, after one fence for all.
bool Cursor::fifo_tails(const Op& op, Primitive& out) {
  for (std::size_t i = 0; i < targets(op); ++i) {
    const int next = peer_of(target(op, i));
    const bool flags = fifo_access(rank(), next) != Access::plain;
    if (flags || program_->crosses_network(rank(), next)) continue;
    out.semaphores.push_back({next, program_->tail_semaphore(target(op, i).inbound)});
    out.values.push_back(1);
  }
  out.kind = PrimitiveKind::signal;
  out.release = !out.semaphores.empty();
  return out.release;
}

/// Across a NIC the proxy copies the staged slot, then advances the tail.
bool Cursor::fifo_post(const ConnectionRef& to, Region slice, Primitive& out) {
  const int next = peer_of(to);
  if (!program_->crosses_network(rank(), next)) return false;
  const std::int64_t step = count_of(sent_key(to));
  out.bytes = slice.bytes;
  out.src.push_back(slot(rank(), program_->staging_buffer(to.outbound), step, Access::plain));
  out.dst.push_back(slot(next, program_->fifo_buffer(to.inbound), step, Access::plain));
  out.semaphores.push_back({next, program_->tail_semaphore(to.inbound)});
  out.values.push_back(1);
  out.kind = PrimitiveKind::post;
  out.remote = out.release = true;
  return true;
}

}  // namespace hemiola::program
