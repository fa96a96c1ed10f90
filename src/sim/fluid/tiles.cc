// The fluid engine: tiles. All steps of a tile are one flow of its operands, which its compute unit
// lets through no faster than it computes (docs/fluid.md, "Tiles").
#include <algorithm>

#include "sim/fluid/fluid.h"
#include "sim/model/compute_time.h"

namespace hemiola::sim {
namespace {

using program::ComputeSteps;
using program::Primitive;

/// What each byte of a flow takes of a resource that has `fs` for all of it.
std::int64_t weight_of(std::int64_t fs, std::int64_t bytes) {
  return static_cast<std::int64_t>((static_cast<__int128>(fs) << kWeightBits) / bytes);
}

}  // namespace

// Stages: 0 not begun, 1 its operands are under way, 2 all of them have been loaded.
bool Fluid::tile(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  if (walker.stage == 0) {
    if (!is_now(number)) return false;
    return begin_tile(number);
  }
  // The first operands come before anything is computed, or the last step after all have come.
  const std::int64_t tiles = walker.tile.tiles;
  walker.at.add(walker.batch, walker.batch.fs * tiles);
  walker.at.add(Reason::compute, walker.filling * tiles);
  walker.tiled = false;
  walker.tiles += index(tiles);
  if (tiles > 1) end_run(walker);
  return true;
}

/// What each tile of a run but the last adds to that: it joins its wavefronts between the operation
/// that computes and the one that stores. Then all store.
void Fluid::end_run(Walker& walker) {
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const std::int64_t more = walker.tile.tiles - 1;
  walker.at.add(Reason::barrier, model.sync_barrier_latency.fs * more);
  Primitive join;
  join.kind = program::PrimitiveKind::sync;
  join.op = walker.tile.parts.back().op;
  join.type = walker.present.type;
  walker.pending.push_back(join);
  for (const ComputeSteps::Write& write : walker.tile.writes) {
    Primitive& store = walker.pending.emplace_back();
    store.kind = program::PrimitiveKind::move;
    store.op = join.op;
    store.type = join.type;
    store.bytes = write.bytes * walker.tile.tiles;
    store.dst = {write.first};
  }
}

/// Until the tiles of a run are over, once their operands have come.
std::int64_t Fluid::rest_of_run(const Walker& walker) const {
  return walker.tile.tiles > 1 ? (walker.batch.fs + walker.filling) * walker.tile.tiles : 0;
}

/// What goes through its compute unit: all of its operands.
Fluid::Moved Fluid::moved_by_tile(const Walker& walker) const {
  const int rank = walker.agent.rank;
  const std::int64_t line = machine_.model(rank).line_size.count;
  Moved moved{.type = walker.present.type};
  for (const ComputeSteps::Read& read : walker.tile.reads) {
    const std::int64_t times = read.times * walker.tile.tiles;
    const std::int64_t bytes = program::memory_size(read.bytes, read.first.access) * times;
    moved.bytes += bytes;
    if (read.first.rank != rank) moved.from_peers += bytes;
    const std::int64_t row = read.first.run > 0 ? std::min(read.first.run, read.bytes) : read.bytes;
    moved.loads += (row + line - 1) / line * (read.bytes / std::max<std::int64_t>(1, row)) * times;
  }
  moved.in = moved.bytes;
  return moved;
}

/// From where its operands come; the latency of the load that takes longest, which a step has to
/// wait for, and the mean of all, for which they keep their slots.
Fluid::LoadLatency Fluid::demands_of_tile(const Walker& walker, const Moved& moved) {
  demands_.clear();
  const std::int64_t total = std::max<std::int64_t>(1, moved.bytes);
  const int rank = walker.agent.rank;
  const std::int64_t line = machine_.model(rank).line_size.count;
  const TileReuse::Missed missed =
      reuse_.missed(walker.number, walker.tiles, index(walker.tile.tiles),
                    ranks_[index(walker.rank_class)].repetition);
  Latency longest;
  __int128 kept = 0;  // bytes times latency
  const auto add = [&](std::int64_t bytes, const Latency& latency) {
    if (bytes <= 0) return;
    kept += static_cast<__int128>(bytes) * latency.fs;
    if (latency.fs > longest.fs) longest = latency;
  };
  for (const ComputeSteps::Read& read : walker.tile.reads) {
    const int owner = read.first.rank;
    if (owner == rank) continue;
    const std::int64_t bytes =
        program::memory_size(read.bytes, read.first.access) * read.times * walker.tile.tiles;
    ways_.at_memory(owner, bytes, Depth::l2, total, walker.members, demands_);
    ways_.over_links(owner, rank, bytes, (bytes + line - 1) / line, 0, true, total, walker.members,
                     demands_);
    add(bytes, ways_.load(rank, owner, Depth::l2));
  }
  if (const std::int64_t local = moved.bytes - moved.from_peers; local > 0) {
    ways_.at_operands(rank, local, Depth::l2, total, walker.members, demands_);
    const auto part = [&](std::int64_t share) {
      return static_cast<std::int64_t>(static_cast<__int128>(local) * share >> kWeightBits);
    };
    const std::int64_t cold = part(missed.cold), known = part(missed.all) - cold;
    if (known > 0) ways_.behind_l2(rank, known, Depth::cache, total, walker.members, demands_);
    if (cold > 0) ways_.behind_l2(rank, cold, Depth::memory, total, walker.members, demands_);
    const std::int64_t waits = part(missed.waits);
    add(local - waits, ways_.load(rank, rank, Depth::l2));
    add(waits, ways_.load(rank, rank, cold > 0 ? Depth::memory : Depth::cache));
  }
  return {longest, static_cast<std::int64_t>(kept / total)};
}

/// When the power limit lets a tile through that would take `time`: what idle times save may be
/// spent later, so only those that keep all units busy for long wait for it.
std::int64_t Fluid::through_power(Walker& walker, std::int64_t time, std::int64_t sustained) {
  RankState& rank = ranks_[index(walker.rank_class)];
  if (rank.tiles_of_products > 0) rank.power.goes_on_until(now_);
  ++rank.tiles_of_products;
  walker.draws_power = true;
  return rank.power.steps(now_, time, sustained,
                          machine_.model(walker.agent.rank).gemm_burst_time.fs);
}

/// Results of tiles, which the L2 takes: it writes them to memory while the next tiles compute, as
/// long as half of it has room for them.
bool Fluid::stay_in_l2(const Walker& walker, const Primitive& results) const {
  if (!walker.has_products || !results.src.empty() || results.dst.size() != 1 ||
      results.dst.front().rank != walker.agent.rank)
    return false;
  const std::int64_t l2 = machine_.model(walker.agent.rank).l2_size.count;
  return ranks_[index(walker.rank_class)].written_back + results.bytes * walker.per_rank <= l2 / 2;
}

void Fluid::write_back(const Walker& walker, const Primitive& results) {
  const program::Span& there = results.dst.front();
  RankState& state = ranks_[index(walker.rank_class)];
  if (ways_.depth_of(there.rank, there.buffer, false, state.repetition) == Depth::l2) return;
  demands_.clear();
  ways_.behind_l2(there.rank, results.bytes, Depth::cache, results.bytes, walker.members, demands_);
  const std::int64_t bytes = results.bytes * walker.per_rank;
  state.written_back += bytes;
  start_flow(FlowKind::write_back, walker.rank_class, static_cast<std::int32_t>(bytes),
             results.bytes, 0, Reason::hbm, {});
}

/// Blocks of products of all kernels are spread over the compute units: so many are on the fullest.
void Fluid::share_unit(Walker& walker) const {
  const std::int64_t all = machine_.model(walker.agent.rank).cu_count * kRoomOfUnit;
  const std::int64_t blocks = ranks_[index(walker.rank_class)].blocks_of_products;
  walker.sharing = std::clamp<std::int64_t>((blocks + all - 1) / all, 1, walker.most_sharing);
}

bool Fluid::begin_tile(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  if (walker.has_products) share_unit(walker);
  const auto& ops = program_.bodies()[index(walker.agent.body)].ops;
  const DataType type = walker.present.type;
  std::int64_t computing = 0, sustained = 0;
  program::PrimitiveFields step_of;
  for (const ComputeSteps::Part& part : walker.tile.parts) {
    const program::Op& op = ops[index(part.op)];
    step_of.flop = op.flop;
    step_of.product = op.product;
    step_of.duration = op.duration;
    const std::int64_t times = part.times * walker.tile.tiles;
    computing += compute_time(model, step_of, type).fs * times;
    sustained += sustained_time(model, step_of, type).fs * times;
  }
  const Moved moved = moved_by_tile(walker);
  const std::int64_t steps = walker.tile.steps * walker.tile.tiles;
  const LoadLatency latency = demands_of_tile(walker, moved);
  walker.batch = latency.longest;
  const std::int64_t step = computing / steps * walker.sharing;
  const auto loading_in = [&](std::int64_t load_fs) {  // of a step
    const std::int64_t own = limit_of(walker, moved, load_fs);
    return own > 0 ? static_cast<std::int64_t>(static_cast<__int128>(moved.bytes) * kSecond / own /
                                               steps)
                   : 0;
  };
  const std::int64_t loading = loading_in(latency.mean_fs);
  // A place for operands is free again when the step in it has been computed.
  const std::int64_t cycle = (model.sync_barrier_latency.fs + loading + walker.batch.fs + step) /
                             std::max<std::int64_t>(1, stages(walker));
  const std::int64_t period = std::max({step, loading, cycle, std::int64_t{1}});
  // Nobody has loaded anything for the first step.
  walker.filling = std::min(step, loading_in(latency.longest.fs));
  if (walker.tile.stored > 0) walker.filling += epilogue_time(model, step_of.product, type).fs;
  walker.stage = 1;
  if (moved.bytes == 0) {
    walker.filling = computing / walker.tile.tiles;
    walker.stage = 2;
    return tile(number);
  }
  if (computing > 0)
    demands_.push_back({matrix_units_[index(walker.rank_class)],
                        weight_of(computing * walker.per_rank, moved.bytes)});
  std::int64_t least = period * steps;
  bool computes = period == step;
  if (sustained > 0) {
    const std::int64_t time = through_power(walker, least, sustained * walker.per_rank) - now_;
    computes = computes || time > least;
    least = std::max(least, time);
  }
  const auto limit = static_cast<std::int64_t>(
      std::max<__int128>(1, static_cast<__int128>(moved.bytes) * kSecond / least));
  walker.blocked = Blocked::flow;
  start_flow(FlowKind::tile, number, 0, moved.bytes, limit,
             computes ? Reason::compute : Reason::issue, walker.at.spent);
  return false;
}

}  // namespace hemiola::sim
