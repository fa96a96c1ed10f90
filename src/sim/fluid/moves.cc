// The fluid engine: moves are flows; packets arrive with them.

#include <algorithm>
#include <cmath>
#include <utility>

#include "program/semantics/costs.h"
#include "sim/fluid/fluid.h"

namespace hemiola::sim {
namespace {

using program::Access;
using program::Primitive;
using program::PrimitiveKind;
using program::Span;

std::int64_t memory_of(const Span& span, std::int64_t bytes) {
  return program::memory_size(bytes, span.access);
}

/// Wavefronts of a workgroup, and workgroups of a class, come apart where nothing joins them, as
/// random walkers do: those that were served first are ahead by so many times the geometric mean
/// of a move and of what slots hold (docs/fluid.md).
constexpr double kSpread = 1.5;

/// The lower of two limits, of which 0 is none.
void limit(std::int64_t& least, __int128 other) {
  const auto value =
      static_cast<std::int64_t>(std::clamp<__int128>(other, 1, std::int64_t{1} << 60));
  if (least == 0 || value < least) least = value;
}

/// Time that the ports of a compute unit, its issue and its arithmetic need at least, fs.
template <class Moved>
std::int64_t unit_time(const machine::GpuModel& model, const Moved& moved) {
  const std::int64_t time = issue_time(model, moved.loads, moved.stores, moved.in, moved.out);
  if (moved.sources <= 1) return time;
  return std::max(time, program::reduce_time(model, moved.type, moved.bytes, moved.sources).fs);
}

}  // namespace

// A workgroup that sends the same to all peers in turn finds it in its L1, or at least in the L2.
void Fluid::look_again(Walker& walker, const Primitive& primitive) const {
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const Span* const own = primitive.src.size() == 1 &&
                                  primitive.src.front().rank == walker.agent.rank &&
                                  primitive.src.front().access == Access::plain
                              ? &primitive.src.front()
                              : nullptr;
  const Span& recent = walker.recent;
  walker.again = Walker::Again::no;
  if (own != nullptr && walker.recent_bytes >= primitive.bytes && own->buffer == recent.buffer &&
      own->offset == recent.offset && own->run == recent.run && own->pitch == recent.pitch &&
      own->skip == recent.skip) {
    const bool fits = !own->bypass_l1 && !recent.bypass_l1 &&
                      walker.recent_bytes * walker.sharing <= model.l1_size.count;
    walker.again = fits ? Walker::Again::in_l1 : Walker::Again::in_l2;
  }
  walker.recent_bytes = own != nullptr ? primitive.bytes : 0;
  if (own != nullptr) walker.recent = *own;
}

std::int64_t Fluid::wave_of(const Walker& walker, const Primitive& primitive) const {
  return program::data_per_thread(primitive, walker.grain) *
         machine_.model(walker.agent.rank).cu_wavefront_size;
}

Fluid::LoadLatency Fluid::demands_of(const Walker& walker, const Primitive& primitive,
                                     bool operands) {
  demands_.clear();
  Latency longest;
  __int128 kept = 0;  // loads times latency
  std::int64_t loads = 0;
  const int rank = walker.agent.rank;
  const machine::GpuModel& model = machine_.model(rank);
  const std::int64_t total = primitive.bytes, members = walker.members;
  const std::int64_t wave = wave_of(walker, primitive);
  const Slices slices = slices_of(walker, primitive);
  const int repetition = ranks_[index(walker.rank_class)].repetition;
  for (const Span& span : primitive.src) {
    const std::int64_t bytes = memory_of(span, total);
    const Requests requests = requests_of(span, total, wave, model, slices);
    Latency latency;
    if (!operands && walker.again == Walker::Again::in_l1) {
      latency.add(Reason::l1, model.l1_latency.fs);
    } else if (span.rank < 0) {
      const Depth depth = ways_.depth_of(rank, span.buffer, true, repetition);
      ways_.over_group(rank, span.group, bytes, requests.count, true, depth, total, members,
                       demands_);
      latency = ways_.group(rank, span.group, true, depth);
    } else {
      const bool again = !operands && walker.again == Walker::Again::in_l2;
      const Depth depth =
          again ? Depth::l2 : ways_.depth_of(span.rank, span.buffer, true, repetition);
      if (operands && span.rank == rank)
        ways_.at_operands(span.rank, bytes, depth, total, members, demands_);
      else
        ways_.at_memory(span.rank, bytes, depth, total, members, demands_);
      if (span.rank != rank)
        ways_.over_links(span.rank, rank, requests.bytes, requests.count, 0, true, total, members,
                         demands_);
      latency = ways_.load(rank, span.rank, depth);
      // The threads that see the flags of LL128 lines load the lines again.
      if (span.access == Access::ll128) latency += latency;
    }
    kept += static_cast<__int128>(requests.count) * latency.fs;
    loads += requests.count;
    if (latency.fs > longest.fs) longest = latency;
  }
  for (const Span& span : primitive.dst) {
    const std::int64_t bytes = memory_of(span, total);
    const Requests requests = requests_of(span, total, wave, model, slices);
    if (span.rank < 0) {
      const Depth depth = ways_.depth_of(rank, span.buffer, false, repetition);
      ways_.over_group(rank, span.group, bytes, requests.count, false, depth, total, members,
                       demands_);
      continue;
    }
    const Depth depth =
        walker.results_stay ? Depth::l2 : ways_.depth_of(span.rank, span.buffer, false, repetition);
    ways_.at_memory(span.rank, bytes, depth, total, members, demands_);
    if (span.rank != rank)
      ways_.over_links(rank, span.rank, requests.bytes, requests.count, 0, false, total, members,
                       demands_);
  }
  if (walker.unit.resource >= 0) {
    const __int128 time = unit_time(model, moved_by(walker, primitive));
    demands_.push_back(
        {walker.unit.resource,
         static_cast<std::int64_t>((time * walker.sharing * members << kWeightBits) /
                                   (static_cast<__int128>(total) * walker.unit.blocks))});
  }
  return {longest, loads > 0 ? static_cast<std::int64_t>(kept / loads) : 0};
}

Fluid::Moved Fluid::moved_by(const Walker& walker, const Primitive& primitive) const {
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const std::int64_t wave = wave_of(walker, primitive);
  const Slices slices = slices_of(walker, primitive);
  Moved moved{
      .bytes = primitive.bytes, .sources = std::ssize(primitive.src), .type = primitive.type};
  for (const Span& span : primitive.src) {
    const std::int64_t bytes = memory_of(span, primitive.bytes);
    if (walker.again != Walker::Again::in_l1) moved.in += bytes;
    if (span.rank != walker.agent.rank) moved.from_peers += bytes;
    moved.loads += requests_of(span, primitive.bytes, wave, model, slices).count;
  }
  for (const Span& span : primitive.dst) {
    const std::int64_t bytes = memory_of(span, primitive.bytes);
    moved.out += bytes;
    if (span.rank != walker.agent.rank) moved.to_peers += bytes;
    moved.stores += requests_of(span, primitive.bytes, wave, model, slices).count;
  }
  return moved;
}

// What the compute unit lets through, shared with the workgroups that are on it.
std::int64_t Fluid::limit_of(const Walker& walker, const Moved& moved, std::int64_t load_fs) const {
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const __int128 total = moved.bytes;
  std::int64_t least = 0;
  const auto shared = [&](__int128 rate) { limit(least, rate / walker.sharing); };
  if (const std::int64_t time = unit_time(model, moved); time > 0) shared(total * kSecond / time);
  for (const std::int64_t bytes : {moved.from_peers, moved.to_peers})
    if (bytes > 0 && !model.cu_peer_rate.is_ideal())
      shared(total * model.cu_peer_rate.bytes_per_second / bytes);
  if (model.cu_max_outstanding > 0 && moved.loads > 0 && load_fs > 0)
    shared(total * kSecond * model.cu_max_outstanding /
           (static_cast<__int128>(load_fs) * moved.loads));
  return least;
}

// Stages: 0 not begun, 1 under way, 2 all loads are on their way back.
bool Fluid::move(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  if (walker.present.bytes == 0) return true;
  if (walker.stage == 2) return walker.leaves > 0 ? leave_behind(number) : end_move(number);
  if (!is_now(number)) return false;
  const Moment* begun = nullptr;
  if (!arrived(number, false, begun)) {
    walker.blocked = Blocked::packets;
    return false;
  }
  if (begun != nullptr && begun->time > walker.at.time) {
    walker.at = *begun;
    wake(number);
    return false;
  }
  if (!has_room(number)) return false;
  return begin_move(number);
}

/// Bytes of moves that may still be under way when the next one begins: what slots hold, and what
/// the wavefronts that were served first are ahead.
std::int64_t Fluid::ahead_of(const Walker& walker) const {
  const std::int64_t room = room_for(walker);
  if (room == INT64_MAX) return room;
  const double windows = static_cast<double>(walker.present.bytes) / static_cast<double>(room);
  return room + static_cast<std::int64_t>(kSpread * std::sqrt(windows) * static_cast<double>(room));
}

/// What moves have left behind fills slots, which become free as it goes: whether there are any
/// yet. Else the agent sleeps for as long as that takes at the present rates.
bool Fluid::has_room(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  if (walker.behind.empty()) return true;
  const std::int64_t room = ahead_of(walker);
  std::int64_t left = 0, rate = 0;
  for (const std::int32_t flow : walker.behind) {
    left += shares_.left(flow, now_);
    rate += shares_.rate(flow);
  }
  if (left <= room) return true;
  std::int64_t until = 1;  // they have just begun
  if (rate > 0)
    until += static_cast<std::int64_t>(static_cast<__int128>(left - room) * kSecond / rate);
  walker.at.add(shares_.reason(walker.behind.front()), now_ + until - walker.at.time);
  wake(number);
  return false;
}

/// True if the agent goes on meanwhile.
bool Fluid::begin_move(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  const Primitive& primitive = walker.present;
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  look_again(walker, primitive);
  walker.results_stay = stay_in_l2(walker, primitive);
  if (walker.results_stay) write_back(walker, primitive);
  const LoadLatency latency = demands_of(walker, primitive, false);
  walker.batch = latency.longest;
  const std::int64_t wave = wave_of(walker, primitive);
  const Slices slices = slices_of(walker, primitive);
  const std::int64_t window = wave * walker.movers * walker.unroll;
  if (primitive.src.size() > 1) {  // a wavefront's own share of the arithmetic
    const std::int64_t bytes = std::min(wave * walker.unroll, primitive.bytes);
    walker.batch.add(
        Reason::compute,
        program::reduce_time(model, primitive.type, bytes, std::ssize(primitive.src)).fs);
  }
  // Wavefronts go through their batches one after the other: the last has its latency at the end.
  walker.batches = (primitive.bytes + window - 1) / window;
  const Moved moved = moved_by(walker, primitive);
  const std::int64_t own = limit_of(walker, moved, latency.mean_fs);
  std::int64_t least = own;
  if (walker.batches > 1 && walker.batch.fs > 0) {
    // Wavefronts take turns at the unit's ports, so all have issued a batch before any waits.
    const std::int64_t period =
        walker.batch.fs +
        issue_time(model, moved.loads, moved.stores, moved.in, moved.out) / walker.batches;
    limit(least, static_cast<__int128>(primitive.bytes) * kSecond /
                     (static_cast<__int128>(period) * (walker.batches - 1)));
  }
  __int128 kept = 0;  // store slots times the time for which a store has its own
  for (const Span& span : primitive.dst) {
    const int rank = walker.agent.rank;
    const std::int64_t there_and_back =
        span.rank < 0 ? ways_.group(rank, span.group, false).fs
                      : ways_.store(rank, span.rank).fs + ways_.acknowledgement(rank, span.rank).fs;
    kept += static_cast<__int128>(requests_of(span, primitive.bytes, wave, model, slices).count) *
            there_and_back;
  }
  if (model.cu_max_stores > 0 && kept > 0)
    limit(least, static_cast<__int128>(primitive.bytes) * kSecond * model.cu_max_stores /
                     (kept * walker.sharing));
  walker.limit = least;
  walker.leaves = runs_ahead(walker) ? std::min(primitive.bytes, ahead_of(walker)) : 0;
  walker.began = walker.at.time;
  Moment first = walker.at;
  first.add(walker.batch);
  announce(walker.agent.rank, primitive, false, first);
  if (walker.leaves < primitive.bytes) {
    walker.stage = 1;
    walker.blocked = Blocked::flow;
    start_flow(FlowKind::move, number, 0, primitive.bytes - walker.leaves, least, Reason::issue,
               walker.at.spent, window_of(walker));
    return false;
  }
  leave_behind(number);
  // Its wavefronts go on once they have been through their own batches.
  std::int64_t busy = walker.batches * walker.batch.fs;
  if (own > 0)
    busy = std::max(
        busy, static_cast<std::int64_t>(static_cast<__int128>(primitive.bytes) * kSecond / own));
  walker.at.add(walker.batch, busy);
  return true;
}

/// The rest of a move goes on by itself; true.
bool Fluid::leave_behind(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  const Primitive& primitive = walker.present;
  const std::int64_t bytes = std::exchange(walker.leaves, 0);
  if (bytes < primitive.bytes) walker.batch = demands_of(walker, primitive, false).longest;
  const std::int32_t id = behind_.take();
  Behind& behind = behind_[index(id)];
  behind.agent = number;
  behind.primitive = primitive;
  behind.batch = walker.batch;
  behind.flow =
      start_flow(FlowKind::behind, id, 0, bytes, walker.limit, Reason::issue, walker.at.spent);
  walker.behind.push_back(behind.flow);
  return true;
}

// Nothing joins the wavefronts between two moves: those that are through with the first begin the
// second, whatever queues elsewhere.
bool Fluid::runs_ahead(Walker& walker) {
  const auto has_packets = [](const Primitive& primitive) {
    return std::ranges::any_of(primitive.src,
                               [](const Span& span) { return program::is_packet(span.access); });
  };
  if (has_packets(walker.present)) return false;
  const Primitive* next = peek(walker);
  return next != nullptr && next->kind == PrimitiveKind::move && !next->posted && next->bytes > 0 &&
         !has_packets(*next);
}

/// Bytes that the slots of its compute unit let it leave behind: what is far holds them long.
std::int64_t Fluid::room_for(const Walker& walker) const {
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  std::int64_t lines = INT64_MAX;
  const auto far = [&](const std::vector<Span>& spans) {
    return std::ranges::any_of(spans,
                               [&](const Span& span) { return span.rank != walker.agent.rank; });
  };
  if (model.cu_max_outstanding > 0 && far(walker.present.src)) lines = model.cu_max_outstanding;
  if (model.cu_max_stores > 0 && far(walker.present.dst))
    lines = std::min(lines, model.cu_max_stores);
  return lines == INT64_MAX ? lines : lines * model.line_size.count / walker.sharing;
}

void Fluid::moved_behind(std::int32_t id, const Attribution& spent, std::int64_t now) {
  const Behind& behind = behind_[index(id)];
  const std::int32_t number = behind.agent;
  Walker& walker = walkers_[index(number)];
  Moment last{now, spent};
  last.add(behind.batch);
  stored(walker, behind.primitive, last);
  announce(walker.agent.rank, behind.primitive, true, last);
  std::erase(walker.behind, behind.flow);
  behind_.give_back(id);
  if (walker.blocked != Blocked::room) return;
  walker.at.join(now, spent);
  advance(number);
}

// The flow is over: the last loads come back, the last stores go out.
bool Fluid::end_move(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  if (!walker.behind.empty()) {
    walker.blocked = Blocked::room;
    return false;
  }
  const Moment* whole = nullptr;
  if (!arrived(number, true, whole)) {
    walker.blocked = Blocked::packets;
    return false;
  }
  if (whole != nullptr && whole->time > walker.at.time) {
    walker.at = *whole;
    const std::int64_t interval = machine_.model(walker.agent.rank).sync_poll_interval.fs;
    walker.at.add(Reason::poll, (walker.batch.fs + interval) / 2);
  }
  walker.at.add(walker.batch);
  stored(walker, walker.present, walker.at);
  announce(walker.agent.rank, walker.present, true, walker.at);
  return true;
}

void Fluid::stored(Walker& walker, const Primitive& primitive, const Moment& issued) {
  for (const Span& span : primitive.dst) {
    Moment back = issued;
    if (span.rank < 0) {
      back.add(ways_.group(walker.agent.rank, span.group, false));
    } else {
      back.add(ways_.store(walker.agent.rank, span.rank));
      back.add(ways_.acknowledgement(walker.agent.rank, span.rank));
    }
    walker.acknowledged.join(back);
  }
}

// --- Packets.

// FIFOs of like connections are one; other memory is found by its address.
std::uint64_t Fluid::packet_space(const Span& span) const {
  const std::int32_t tail = program_.tail_of(span.buffer);
  if (tail >= 0) return static_cast<std::uint64_t>(fold_.semaphore_class({span.rank, tail}));
  return std::uint64_t{1} << 60 | static_cast<std::uint64_t>(span.rank) << 32 |
         static_cast<std::uint32_t>(span.buffer);
}

bool Fluid::arrived(std::int32_t number, bool whole, const Moment*& last) {
  const Primitive& primitive = walkers_[index(number)].present;
  for (const Span& span : primitive.src) {
    if (!program::is_packet(span.access) || span.rank < 0) continue;
    PacketSpace& space = packets_[packet_space(span)];
    const auto& ranges = space.by_flag[span.flag];
    std::int64_t reached = span.offset;
    const std::int64_t end = span.offset + memory_of(span, primitive.bytes);
    auto at = ranges.upper_bound(reached);
    if (at != ranges.begin()) --at;
    for (; at != ranges.end() && at->first <= reached && reached < end; ++at) {
      const Packets& packets = at->second;
      if (packets.end <= reached) continue;
      if (whole && packets.last.time < 0) break;
      const Moment& there = whole ? packets.last : packets.first;
      if (last == nullptr || there.time > last->time) last = &there;
      reached = packets.end;
    }
    if (reached >= end) continue;
    space.waiting.push_back(number);
    return false;
  }
  return true;
}

/// `issued`: the first (or last) stores are.
void Fluid::announce(int rank, const Primitive& primitive, bool whole, const Moment& issued) {
  for (const Span& span : primitive.dst) {
    if (!program::is_packet(span.access) || span.flag == 0) continue;
    const std::vector<int> one{span.rank};
    const std::vector<int>& targets = span.rank < 0 ? program_.groups()[index(span.group)] : one;
    for (const int target : targets) {
      Span there = span;
      there.rank = target;
      PacketSpace& space = packets_[packet_space(there)];
      Packets& packets = space.by_flag[span.flag][span.offset];
      packets.end = span.offset + memory_of(span, primitive.bytes);
      Moment& arrival = whole ? packets.last : packets.first;
      arrival = issued;
      arrival.add(span.rank < 0 ? ways_.group(rank, span.group, false) : ways_.store(rank, target));
      if (!whole) packets.last.time = -1;
      // Wavefronts that wait try again, after this agent is through.
      std::vector<std::int32_t> waiting;
      std::swap(waiting, space.waiting);
      for (const std::int32_t agent : waiting) push(now_, Kind::wake, agent, 1);
      while (space.by_flag.size() > 64) space.by_flag.erase(space.by_flag.begin());
    }
  }
}

}  // namespace hemiola::sim
