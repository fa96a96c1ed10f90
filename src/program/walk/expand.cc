// Operations into primitives. The table in docs/program.md is the definition; this is its code.
#include <algorithm>

#include "program/walk/cursor.h"

namespace hemiola::program {
namespace {

bool reduces(OpKind kind) {
  switch (kind) {
    case OpKind::reduce:
    case OpKind::reduce_send:
    case OpKind::read_reduce:
    case OpKind::read_reduce_send:
    case OpKind::reduce_packets:
    case OpKind::reduce_send_packets:
    case OpKind::reduce_copy_packets:
    case OpKind::reduce_copy_send_packets:
    case OpKind::group_load_reduce:
    case OpKind::group_load_reduce_store:
    case OpKind::recv_reduce_send:
    case OpKind::recv_reduce_copy:
    case OpKind::recv_reduce_copy_send:
      return true;
    default:
      return false;
  }
}

}  // namespace

ReduceOp Cursor::reduction(const Op& op) const {
  // What the switch loads of a group is always a sum.
  const bool through_switch = std::ranges::any_of(
      op.src, [](const Operand& source) { return source.access == Access::multicast; });
  if (!reduces(op.kind) && !through_switch) return ReduceOp::none;
  // An MSCCL++ plan names its reduction, and an MSCCL file may; everywhere else the caller of the
  // collective does.
  const bool states = program_->format == "mscclpp" || program_->format == "msccl";
  if (op.reduce != ReduceOp::none && states) return op.reduce;
  return frame_->op;
}

SemaphoreId Cursor::semaphore(const SemaphoreRef& ref) const {
  return {rank_of(ref.rank(indices_)), frame_->first_semaphore + ref.index};
}

bool Cursor::expand(const Op& op, Primitive& out) {
  switch (op.kind) {
    case OpKind::sync:
      out.kind = PrimitiveKind::sync;
      return once();
    case OpKind::barrier:
      out.kind = PrimitiveKind::barrier;
      out.barrier_id = frame_->first_barrier + op.barrier_id;
      out.workgroups = op.workgroups;
      out.release = out.acquire = true;
      out.system_scope = false;
      return once();
    case OpKind::flush:
      out.kind = PrimitiveKind::flush;
      if (op.channel == Channel::any && !posted_) return false;
      posted_ = false;
      return once();
    case OpKind::compute:
      return expand_compute(op, out);
    case OpKind::wait:
    case OpKind::relaxed_wait:
    case OpKind::sem_acquire:
      return expand_wait(op, out);
    case OpKind::signal:
    case OpKind::relaxed_signal:
    case OpKind::sem_release:
      return expand_signal(op, out);
    case OpKind::dep_wait:
      return once() && expand_dependency(op, out);
    case OpKind::compare_swap:
      return expand_compare_swap(op, out);
    case OpKind::dep_signal:
      if (op.channel == Channel::any) return expand_signal_any(op, out);
      return once() && expand_dependency(op, out);
    case OpKind::put:
    case OpKind::put_signal:
    case OpKind::put_signal_flush:
    case OpKind::put_packets:
      return op.channel == Channel::port ? expand_posts(op, out) : expand_pairs(op, out);
    case OpKind::get:
      return expand_pairs(op, out);
    case OpKind::swap:
      return expand_swap(op, out);
    case OpKind::load:
      return expand_load(op, out);
    case OpKind::clear:
      return once() && expand_clear(op, out);
    case OpKind::read_put_packets:
      return op.channel == Channel::port ? expand_read_put_packets(op, out) : expand_move(op, out);
    case OpKind::copy:
    case OpKind::copy_packets:
    case OpKind::unpack_packets:
    case OpKind::reduce:
    case OpKind::reduce_send:
    case OpKind::read_reduce:
    case OpKind::read_reduce_send:
    case OpKind::reduce_packets:
    case OpKind::reduce_send_packets:
    case OpKind::reduce_copy_packets:
    case OpKind::reduce_copy_send_packets:
    case OpKind::group_load_reduce:
    case OpKind::group_load_reduce_store:
    case OpKind::group_store:
    case OpKind::group_store_packets:
      return expand_move(op, out);
    case OpKind::send:
    case OpKind::recv:
    case OpKind::recv_copy_send:
    case OpKind::recv_reduce_send:
    case OpKind::recv_reduce_copy:
    case OpKind::recv_reduce_copy_send:
      return expand_connection(op, out);
    case OpKind::loop:
    case OpKind::end_loop:
      return false;
  }
  return false;
}

// Semaphores with one waiting workgroup are compared with a running total; shared ones are
// consumed. An operation that waits on both kinds gives two primitives.
bool Cursor::expand_wait(const Op& op, Primitive& out) {
  while (stage_ < 2) {
    const bool shared = stage_++ == 1;
    for (const SemaphoreRef& ref : op.semaphores) {
      if (program_->semaphores.at(index(ref.index)).shared != shared) continue;
      out.semaphores.push_back(semaphore(ref));
      out.values.push_back(shared ? 1 : ++count_of(out.semaphores.back().index));
    }
    if (out.semaphores.empty()) continue;
    out.kind = PrimitiveKind::wait;
    out.acquire = op.kind != OpKind::relaxed_wait;
    out.system_scope = op.kind != OpKind::sem_acquire;
    out.consume = shared;
    return true;
  }
  return false;
}

bool Cursor::expand_signal(const Op& op, Primitive& out) {
  if (op.channel == Channel::port) return expand_posts(op, out);
  if (op.channel == Channel::any) return expand_signal_any(op, out);
  if (!once() || op.semaphores.empty()) return false;
  out.kind = PrimitiveKind::signal;
  for (const SemaphoreRef& ref : op.semaphores) out.semaphores.push_back(semaphore(ref));
  out.values.assign(out.semaphores.size(), 1);
  out.release = op.kind != OpKind::relaxed_signal;
  out.system_scope = op.kind != OpKind::sem_release;
  return true;
}

bool Cursor::behind_nic(const Op& op, std::int64_t peer) const {
  return op.channel == Channel::any && bound_->crosses_network(rank(), rank_of(peer));
}

/// One signal to all whom stores reach, and a descriptor for each of the others.
bool Cursor::expand_signal_any(const Op& op, Primitive& out) {
  if (once()) {
    for (const SemaphoreRef& ref : op.semaphores)
      if (!behind_nic(op, ref.rank(indices_))) out.semaphores.push_back(semaphore(ref));
    out.kind = PrimitiveKind::signal;
    out.values.assign(out.semaphores.size(), 1);
    out.release = op.kind != OpKind::relaxed_signal && !op.relaxed;
    if (!out.semaphores.empty()) return true;
  }
  while (index(part_) < op.semaphores.size()) {
    const SemaphoreRef& ref = op.semaphores[index(part_++)];
    if (!behind_nic(op, ref.rank(indices_))) continue;
    out.kind = PrimitiveKind::post;
    out.release = out.remote = posted_ = true;
    out.semaphores = {semaphore(ref)};
    out.values = {1};
    return true;
  }
  return false;
}

bool Cursor::expand_dependency(const Op& op, Primitive& out) {
  const std::int64_t iterations = depth_ > 0 ? loops_[0].count : 1;
  const std::int64_t done = indices_.loop[0] + iteration_ * iterations;
  const bool waits = op.kind != OpKind::dep_signal;
  for (std::size_t s = 0; s < op.semaphores.size(); ++s) {
    const auto [target, count] =
        op.targets.empty() ? std::pair(op.target, op.count) : op.targets[s];
    out.semaphores.push_back(semaphore(op.semaphores[s]));
    out.values.push_back(waits ? done * count + target : 1);
  }
  out.kind = waits ? PrimitiveKind::wait : PrimitiveKind::signal;
  out.acquire = waits;
  out.release = !waits && !op.relaxed;
  out.system_scope = op.channel != Channel::none;
  return !out.semaphores.empty();
}

/// One move for each region of each pair src[i] -> dst[i].
bool Cursor::expand_pairs(const Op& op, Primitive& out) {
  while (true) {
    const std::int64_t per_pair = op.src.empty() ? 1 : regions(op, op.src.front());
    const auto pair = index(part_ / per_pair);
    if (pair >= op.src.size() || pair >= op.dst.size()) return false;
    const std::int64_t index = part_++ % per_pair;
    const Region from = region(op, op.src[pair], index);
    if (from.bytes == 0) continue;
    const bool far = behind_nic(op, op.dst[pair]);
    out.kind = far ? PrimitiveKind::post : PrimitiveKind::move;
    out.release = out.remote = far;
    posted_ = posted_ || far;
    out.batched = op.batched;
    out.bytes = from.bytes;
    out.src.push_back(span(op.src[pair], from));
    out.dst.push_back(span(op.dst[pair], region(op, op.dst[pair], index)));
    return true;
  }
}

/// One move for each region of the two places, both ways.
bool Cursor::expand_swap(const Op& op, Primitive& out) {
  const std::int64_t count = regions(op, op.src.front());
  while (part_ < count) {
    const std::int64_t index = part_++;
    out.bytes = region(op, op.src.front(), index).bytes;
    if (out.bytes == 0) continue;
    out.kind = PrimitiveKind::move;
    out.exchanges = true;
    out.batched = op.batched;
    for (const Operand& place : op.src) out.src.push_back(span(place, region(op, place, index)));
    for (const Operand& place : op.dst) out.dst.push_back(span(place, region(op, place, index)));
    return true;
  }
  return false;
}

/// A relaxed wait, then what the access that ended it added.
bool Cursor::expand_compare_swap(const Op& op, Primitive& out) {
  if (stage_ > 1 || !expand_dependency(op, out)) return false;
  const bool adds = stage_++ == 1;
  if (adds) {
    out.kind = PrimitiveKind::signal;
    out.values.assign(out.semaphores.size(), 1);
  }
  out.acquire = out.release = false;
  out.system_scope = out.swap = true;
  return true;
}

bool Cursor::expand_load(const Op& op, Primitive& out) {
  if (stage_ >= std::max<std::int64_t>(1, op.count)) return false;
  const std::int64_t number = stage_++;
  const Operand& source = op.src.front();
  const std::int64_t present = program_->buffers.at(index(source.buffer)).bytes.count;
  out.kind = PrimitiveKind::move;
  out.bytes = op.bytes.count;
  out.src.push_back({rank_of(source.rank(indices_)), frame_->buffer_of(source.buffer),
                     (op.slice * op.bytes.count + number * op.unit.count) % present});
  out.src.back().bypass_l1 = op.bypass_l1;
  return true;
}

bool Cursor::expand_clear(const Op& op, Primitive& out) {
  const Operand& operand = op.dst.front();
  const Region all = region(op, operand, 0);
  out.kind = PrimitiveKind::move;
  out.bytes = all.bytes;
  out.dst.push_back(span(operand, all, true));
  return out.bytes > 0;
}

/// Port channels: a descriptor for each region of each pair, or for each semaphore of a plain
/// signal. The last region of a pair carries its signal, and is posted even where it is empty.
bool Cursor::expand_posts(const Op& op, Primitive& out) {
  const bool signals = op.kind == OpKind::signal || op.kind == OpKind::relaxed_signal ||
                       op.kind == OpKind::put_signal || op.kind == OpKind::put_signal_flush;
  const std::size_t pairs = op.dst.empty() ? op.semaphores.size() : op.dst.size();
  const std::int64_t per_pair = op.dst.empty() ? 1 : regions(op, op.dst.front());
  while (index(part_ / per_pair) < pairs) {
    const auto pair = index(part_ / per_pair);
    const std::int64_t index = part_++ % per_pair;
    const bool signals_now = signals && index == per_pair - 1 && pair < op.semaphores.size();
    const Region to = op.dst.empty() ? Region{} : region(op, op.dst[pair], index);
    if (to.bytes == 0 && !signals_now) continue;
    out.kind = PrimitiveKind::post;
    out.release = true;
    if (program_->executed_by.threads_post) out.thread = static_cast<std::int32_t>(pair);
    out.bytes = to.bytes;
    if (to.bytes > 0) {
      // A broadcast (read_put_packets) posts its one source to every destination.
      const Operand& source = op.src.size() == 1 ? op.src.front() : op.src.at(pair);
      out.src.push_back(span(source, region(op, source, index)));
      out.dst.push_back(span(op.dst[pair], to));
      out.remote = bound_->crosses_network(rank(), out.dst.front().rank);
    }
    if (signals_now) {
      out.semaphores.push_back(semaphore(op.semaphores[pair]));
      out.values.push_back(1);
      out.remote = bound_->crosses_network(rank(), out.semaphores.front().rank);
    }
    return true;
  }
  if (op.kind != OpKind::put_signal_flush || !once()) return false;
  out.kind = PrimitiveKind::flush;
  return true;
}

/// One move of all sources into all destinations, for each region. Behind a NIC they get a copy of
/// the first destination, which is own memory, or of the one source.
bool Cursor::expand_move(const Op& op, Primitive& out) {
  if (op.src.empty()) return false;
  const std::int64_t count = regions(op, op.src.front());
  while (part_ < count) {
    const std::int64_t index = part_++;
    out.bytes = region(op, op.src.front(), index).bytes;
    if (out.bytes == 0) continue;
    out.kind = PrimitiveKind::move;
    out.reduce = reduction(op);
    out.batched = op.batched;
    for (const Operand& source : op.src) out.src.push_back(span(source, region(op, source, index)));
    const bool through_nic =
        std::ranges::any_of(op.dst, [&](const Operand& target) { return behind_nic(op, target); });
    for (const Operand& target : op.dst) {
      if (behind_nic(op, target) || (op.staged && !through_nic && &target == &op.dst.front()))
        continue;
      out.dst.push_back(span(target, region(op, target, index)));
    }
    return true;
  }
  if (op.channel != Channel::any) return false;
  const auto pairs = static_cast<std::int64_t>(op.dst.size()) * count;
  for (; part_ - count < pairs; ++part_) {
    const std::int64_t index = (part_ - count) % count;
    const Operand& target = op.dst[static_cast<std::size_t>((part_ - count) / count)];
    const Region to = region(op, target, index);
    if (!behind_nic(op, target) || to.bytes == 0) continue;
    if (once()) {  // what all threads wrote goes with the first descriptor
      out.kind = PrimitiveKind::sync;
      return true;
    }
    out.kind = PrimitiveKind::post;
    out.release = out.remote = posted_ = true;
    out.bytes = to.bytes;
    // Own memory that holds the data: the first destination, or the one source.
    const Operand& source = op.dst.front().rank(indices_) == indices_.rank || op.src.size() != 1
                                ? op.dst.front()
                                : op.src.front();
    out.src.push_back(span(source, region(op, source, index)));
    out.dst.push_back(span(target, to));
    ++part_;
    return true;
  }
  return false;
}

/// The sources are posted, then the compute that waits for them; after a sync the destinations are
/// stored. Loads into shared memory (cp.async, TMA) look into no L1.
bool Cursor::expand_compute(const Op& op, Primitive& out) {
  const auto sources = static_cast<std::int64_t>(op.src.size());
  const auto operands = sources + static_cast<std::int64_t>(op.dst.size());
  if (part_ == sources && stage_ == 0) {
    stage_ = 1;
    out.kind = PrimitiveKind::compute;
    out.flop = op.flop;
    out.product = op.product;
    out.bytes = op.bytes.count;
    out.duration = op.duration;
    out.posted = operands > 0;
    return true;
  }
  if (part_ == operands) return false;
  const bool loads = part_ < sources;
  if (!loads && stage_ == 1) {
    stage_ = 2;
    out.kind = PrimitiveKind::sync;
    return true;
  }
  const Operand& operand = loads ? op.src[index(part_)] : op.dst[index(part_ - sources)];
  ++part_;
  out.kind = PrimitiveKind::move;
  out.posted = loads;
  const Region all = region(op, operand, 0);
  out.bytes = all.bytes;
  (loads ? out.src : out.dst).push_back(span(operand, all));
  if (part_ == sources + 1 && op.values.m > 0) out.made = op.made(indices_) * frame_->chunk_bytes;
  return true;
}

/// Through a port: every thread polls the packets of the source, then the descriptors are posted.
bool Cursor::expand_read_put_packets(const Op& op, Primitive& out) {
  if (op.src.empty()) return false;
  if (stage_ == 0) {
    ++stage_;
    const Region from = region(op, op.src.front(), 0);
    if (from.bytes > 0) {
      out.kind = PrimitiveKind::move;
      out.bytes = from.bytes;
      out.src.push_back(span(op.src.front(), from));
      return true;
    }
  }
  if (stage_ == 1) {
    ++stage_;
    out.kind = PrimitiveKind::sync;
    return true;
  }
  return expand_posts(op, out);
}

}  // namespace hemiola::program
