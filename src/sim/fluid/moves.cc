// Moves are flows.

#include "sim/fluid/moves.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "program/semantics/costs.h"

namespace hemiola::sim::fluid {
namespace {

using program::Access;
using program::Primitive;
using program::PrimitiveKind;
using program::Span;

/// Wavefronts of a workgroup, and workgroups of a class, come apart where nothing joins them, as
/// random walkers do: those that were served first are ahead by so many times the geometric mean
/// of a move and of what slots hold (docs/fluid.md).
constexpr double kSpread = 1.5;

}  // namespace

Moves::Moves(Run& run, const Streams& streams, Traffic& traffic)
    : run_(run),
      streams_(streams),
      traffic_(traffic),
      packets_(run),
      written_back_(index(run.fold.rank_classes())) {}

// A workgroup that sends the same to all peers in turn finds it in its L1, or at least in the L2.
void Moves::look_again(Walker& walker, const Primitive& primitive) const {
  const machine::GpuModel& model = run_.model(walker);
  const Span* const own = primitive.src.size() == 1 &&
                                  primitive.src.front().rank == walker.agent.rank &&
                                  primitive.src.front().access == Access::plain
                              ? &primitive.src.front()
                              : nullptr;
  const Span& recent = walker.move.recent;
  walker.move.again = MoveState::Again::no;
  if (own != nullptr && walker.move.recent_bytes >= primitive.bytes &&
      own->buffer == recent.buffer && own->offset == recent.offset && own->run == recent.run &&
      own->pitch == recent.pitch && own->skip == recent.skip) {
    const bool fits = !own->bypass_l1 && !recent.bypass_l1 &&
                      walker.move.recent_bytes * walker.sharing <= model.l1_size.count;
    walker.move.again = fits ? MoveState::Again::in_l1 : MoveState::Again::in_l2;
  }
  walker.move.recent_bytes = own != nullptr ? primitive.bytes : 0;
  if (own != nullptr) walker.move.recent = *own;
}

// Stages: 0 not begun, 1 under way, 2 all loads are on their way back.
bool Moves::move(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  if (walker.place.present.bytes == 0) return true;
  if (walker.place.stage == 2)
    return walker.move.leaves > 0 ? leave_behind(number) : end_move(number);
  if (!run_.is_now(number)) return false;
  const Moment* begun = nullptr;
  if (!packets_.arrived(number, false, begun)) {
    walker.blocked = Blocked::packets;
    return false;
  }
  if (begun != nullptr && begun->time > walker.at.time) {
    walker.at = *begun;
    run_.wake(number);
    return false;
  }
  if (!has_room(number)) return false;
  return begin_move(number);
}

/// Bytes of moves that may still be under way when the next one begins: what slots hold, and what
/// the wavefronts that were served first are ahead.
std::int64_t Moves::ahead_of(const Walker& walker) const {
  const std::int64_t room = room_for(walker);
  if (room == INT64_MAX) return room;
  const double windows =
      static_cast<double>(walker.place.present.bytes) / static_cast<double>(room);
  return room + static_cast<std::int64_t>(kSpread * std::sqrt(windows) * static_cast<double>(room));
}

/// What moves have left behind fills slots, which become free as it goes: whether there are any
/// yet. Else the agent sleeps for as long as that takes at the present rates.
bool Moves::has_room(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  if (walker.move.behind.empty()) return true;
  const std::int64_t room = ahead_of(walker);
  std::int64_t left = 0, rate = 0;
  for (const std::int32_t flow : walker.move.behind) {
    left += run_.shares.left(flow, run_.now);
    rate += run_.shares.rate(flow);
  }
  if (left <= room) return true;
  std::int64_t until = 1;  // they have just begun
  if (rate > 0)
    until += static_cast<std::int64_t>(static_cast<__int128>(left - room) * kSecond / rate);
  walker.at.add(run_.shares.reason(walker.move.behind.front()), run_.now + until - walker.at.time);
  run_.wake(number);
  return false;
}

/// True if the agent goes on meanwhile.
bool Moves::begin_move(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  const Primitive& primitive = walker.place.present;
  const machine::GpuModel& model = run_.model(walker);
  look_again(walker, primitive);
  walker.move.results_stay = stay_in_l2(walker, primitive);
  if (walker.move.results_stay) write_back(walker, primitive);
  const LoadLatency latency = traffic_.demands_of(walker, primitive, false);
  walker.batch = latency.longest;
  const std::int64_t wave = traffic_.wave_of(walker, primitive);
  const Slices slices = traffic_.slices_of(walker, primitive);
  const std::int64_t window = wave * walker.movers * walker.unroll;
  if (primitive.src.size() > 1) {  // a wavefront's own share of the arithmetic
    const std::int64_t bytes = std::min(wave * walker.unroll, primitive.bytes);
    walker.batch.add(
        Reason::compute,
        program::reduce_time(model, primitive.type, bytes, std::ssize(primitive.src)).fs);
  }
  // Wavefronts go through their batches one after the other: the last has its latency at the end.
  walker.move.batches = (primitive.bytes + window - 1) / window;
  const Moved moved = traffic_.moved_by(walker, primitive);
  const std::int64_t own = traffic_.limit_of(walker, moved, latency.mean_fs);
  std::int64_t least = own;
  if (walker.move.batches > 1 && walker.batch.fs > 0) {
    // Wavefronts take turns at the unit's ports, so all have issued a batch before any waits.
    const std::int64_t period =
        walker.batch.fs +
        issue_time(model, moved.loads, moved.stores, moved.in, moved.out) / walker.move.batches;
    limit(least, static_cast<__int128>(primitive.bytes) * kSecond /
                     (static_cast<__int128>(period) * (walker.move.batches - 1)));
  }
  __int128 kept = 0;  // store slots times the time for which a store has its own
  for (const Span& span : primitive.dst) {
    const int rank = walker.agent.rank;
    const std::int64_t there_and_back =
        span.rank < 0
            ? run_.ways.group(rank, span.group, false).fs
            : run_.ways.store(rank, span.rank).fs + run_.ways.acknowledgement(rank, span.rank).fs;
    kept += static_cast<__int128>(requests_of(span, primitive.bytes, wave, model, slices).count) *
            there_and_back;
  }
  if (model.cu_max_stores > 0 && kept > 0)
    limit(least, static_cast<__int128>(primitive.bytes) * kSecond * model.cu_max_stores /
                     (kept * walker.sharing));
  walker.move.limit = least;
  walker.move.leaves = runs_ahead(walker) ? std::min(primitive.bytes, ahead_of(walker)) : 0;
  Moment first = walker.at;
  first.add(walker.batch);
  packets_.announce(walker.agent.rank, primitive, false, first);
  if (walker.move.leaves < primitive.bytes) {
    walker.place.stage = 1;
    walker.blocked = Blocked::flow;
    run_.start_flow(FlowKind::move, number, 0, primitive.bytes - walker.move.leaves, least,
                    Reason::issue, walker.at.spent, traffic_.window_of(walker));
    return false;
  }
  leave_behind(number);
  // Its wavefronts go on once they have been through their own batches.
  std::int64_t busy = walker.move.batches * walker.batch.fs;
  if (own > 0)
    busy = std::max(
        busy, static_cast<std::int64_t>(static_cast<__int128>(primitive.bytes) * kSecond / own));
  walker.at.add(walker.batch, busy);
  return true;
}

/// The rest of a move goes on by itself; true.
bool Moves::leave_behind(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  const Primitive& primitive = walker.place.present;
  const std::int64_t bytes = std::exchange(walker.move.leaves, 0);
  if (bytes < primitive.bytes) walker.batch = traffic_.demands_of(walker, primitive, false).longest;
  const std::int32_t id = behind_.take();
  Behind& behind = behind_[index(id)];
  behind.agent = number;
  behind.primitive = primitive;
  behind.batch = walker.batch;
  behind.flow = run_.start_flow(FlowKind::behind, id, 0, bytes, walker.move.limit, Reason::issue,
                                walker.at.spent);
  walker.move.behind.push_back(behind.flow);
  return true;
}

// Nothing joins the wavefronts between two moves: those that are through with the first begin the
// second, whatever queues elsewhere.
bool Moves::runs_ahead(Walker& walker) {
  const auto has_packets = [](const Primitive& primitive) {
    return std::ranges::any_of(primitive.src,
                               [](const Span& span) { return program::is_packet(span.access); });
  };
  if (has_packets(walker.place.present)) return false;
  const Primitive* next = walker.place.peek(walker.agent);
  return next != nullptr && next->kind == PrimitiveKind::move && !next->posted && next->bytes > 0 &&
         !has_packets(*next);
}

/// Bytes that the slots of its compute unit let it leave behind: what is far holds them long.
std::int64_t Moves::room_for(const Walker& walker) const {
  const machine::GpuModel& model = run_.model(walker);
  std::int64_t lines = INT64_MAX;
  const auto far = [&](const std::vector<Span>& spans) {
    return std::ranges::any_of(spans,
                               [&](const Span& span) { return span.rank != walker.agent.rank; });
  };
  if (model.cu_max_outstanding > 0 && far(walker.place.present.src))
    lines = model.cu_max_outstanding;
  if (model.cu_max_stores > 0 && far(walker.place.present.dst))
    lines = std::min(lines, model.cu_max_stores);
  return lines == INT64_MAX ? lines : lines * model.line_size.count / walker.sharing;
}

std::int32_t Moves::moved_behind(std::int32_t id, const Attribution& spent, std::int64_t now) {
  const Behind& behind = behind_[index(id)];
  const std::int32_t number = behind.agent;
  Walker& walker = run_.walkers[index(number)];
  Moment last{now, spent};
  last.add(behind.batch);
  stored(walker, behind.primitive, last);
  packets_.announce(walker.agent.rank, behind.primitive, true, last);
  std::erase(walker.move.behind, behind.flow);
  behind_.give_back(id);
  if (walker.blocked != Blocked::room) return -1;
  walker.at.join(now, spent);
  return number;
}

// The flow is over: the last loads come back, the last stores go out.
bool Moves::end_move(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  if (!walker.move.behind.empty()) {
    walker.blocked = Blocked::room;
    return false;
  }
  const Moment* whole = nullptr;
  if (!packets_.arrived(number, true, whole)) {
    walker.blocked = Blocked::packets;
    return false;
  }
  if (whole != nullptr && whole->time > walker.at.time) {
    walker.at = *whole;
    const std::int64_t interval = run_.model(walker).sync_poll_interval.fs;
    walker.at.add(Reason::poll, (walker.batch.fs + interval) / 2);
  }
  walker.at.add(walker.batch);
  stored(walker, walker.place.present, walker.at);
  packets_.announce(walker.agent.rank, walker.place.present, true, walker.at);
  return true;
}

void Moves::stored(Walker& walker, const Primitive& primitive, const Moment& issued) {
  for (const Span& span : primitive.dst) {
    Moment back = issued;
    if (span.rank < 0) {
      back.add(run_.ways.group(walker.agent.rank, span.group, false));
    } else {
      back.add(run_.ways.store(walker.agent.rank, span.rank));
      back.add(run_.ways.acknowledgement(walker.agent.rank, span.rank));
    }
    walker.acknowledged.join(back);
  }
}

// --- Results of products.

/// Results of tiles, which the L2 takes: it writes them to memory while the next tiles compute, as
/// long as half of it has room for them.
bool Moves::stay_in_l2(const Walker& walker, const Primitive& results) const {
  if (!walker.has_products || !results.src.empty() || results.dst.size() != 1 ||
      results.dst.front().rank != walker.agent.rank)
    return false;
  const std::int64_t l2 = run_.model(walker).l2_size.count;
  return written_back_[index(walker.rank_class)] + results.bytes * walker.per_rank <= l2 / 2;
}

void Moves::write_back(const Walker& walker, const Primitive& results) {
  const program::Span& there = results.dst.front();
  const int repetition = streams_.repetition(walker.rank_class);
  if (run_.ways.depth_of(there.rank, there.buffer, false, repetition) == Depth::l2) return;
  run_.demands.clear();
  run_.ways.behind_l2(there.rank, results.bytes, Depth::cache, results.bytes, walker.members,
                      run_.demands);
  const std::int64_t bytes = results.bytes * walker.per_rank;
  written_back_[index(walker.rank_class)] += bytes;
  run_.start_flow(FlowKind::write_back, walker.rank_class, static_cast<std::int32_t>(bytes),
                  results.bytes, 0, Reason::hbm, {});
}

}  // namespace hemiola::sim::fluid
