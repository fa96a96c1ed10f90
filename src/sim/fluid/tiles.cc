// Tiles: all steps of a tile are one flow of its operands.

#include <algorithm>
#include <utility>

#include "sim/fluid/computes.h"
#include "sim/model/compute_time.h"

namespace hemiola::sim::fluid {
namespace {

using program::ComputeSteps;
using program::Primitive;

/// What each byte of a flow takes of a resource that has `fs` for all of it.
std::int64_t weight_of(std::int64_t fs, std::int64_t bytes) {
  return static_cast<std::int64_t>((static_cast<__int128>(fs) << kWeightBits) / bytes);
}

/// Until the tiles of a run are over, once their operands have come.
std::int64_t rest_of_run(const Walker& walker) {
  const std::int64_t tiles = walker.place.tile.tiles;
  return tiles > 1 ? (walker.batch.fs + walker.filling) * tiles : 0;
}

}  // namespace

Tiles::Tiles(Run& run, const Streams& streams, Traffic& traffic, MatrixUnits& units)
    : run_(run),
      streams_(streams),
      traffic_(traffic),
      units_(units),
      reuse_(run.machine, run.program, run.fold, run.ways.footprint()) {}

// Stages: 0 not begun, 1 its operands are under way, 2 all of them have been loaded.
bool Tiles::tile(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  if (walker.place.stage == 0) {
    if (!run_.is_now(number)) return false;
    return begin_tile(number);
  }
  // The first operands come before anything is computed, or the last step after all have come.
  const std::int64_t tiles = walker.place.tile.tiles;
  walker.at.add(walker.batch, walker.batch.fs * tiles);
  walker.at.add(Reason::compute, walker.filling * tiles);
  walker.place.tiled = false;
  walker.place.tiles += index(tiles);
  if (tiles > 1) end_run(walker);
  return true;
}

/// What each tile of a run but the last adds to that: it joins its wavefronts between the operation
/// that computes and the one that stores. Then all store.
void Tiles::end_run(Walker& walker) const {
  const machine::GpuModel& model = run_.model(walker);
  const std::int64_t more = walker.place.tile.tiles - 1;
  walker.at.add(Reason::barrier, model.sync_barrier_latency.fs * more);
  Primitive join;
  join.kind = program::PrimitiveKind::sync;
  join.op = walker.place.tile.parts.back().op;
  join.type = walker.place.present.type;
  walker.place.pending.push_back(join);
  for (const ComputeSteps::Write& write : walker.place.tile.writes) {
    Primitive& store = walker.place.pending.emplace_back();
    store.kind = program::PrimitiveKind::move;
    store.op = join.op;
    store.type = join.type;
    store.bytes = write.bytes * walker.place.tile.tiles;
    store.dst = {write.first};
  }
}

void Tiles::loaded(Walker& walker, std::int64_t now) {
  if (std::exchange(walker.draws_power, false)) units_.tile_over(walker, now + rest_of_run(walker));
}

/// What goes through its compute unit: all of its operands.
Moved Tiles::moved_by(const Walker& walker) const {
  const int rank = walker.agent.rank;
  const std::int64_t line = run_.machine.model(rank).line_size.count;
  Moved moved{.type = walker.place.present.type};
  for (const ComputeSteps::Read& read : walker.place.tile.reads) {
    const std::int64_t times = read.times * walker.place.tile.tiles;
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
LoadLatency Tiles::demands_of(const Walker& walker, const Moved& moved) {
  run_.demands.clear();
  const std::int64_t total = std::max<std::int64_t>(1, moved.bytes);
  const int rank = walker.agent.rank;
  const std::int64_t line = run_.machine.model(rank).line_size.count;
  const TileReuse::Missed missed =
      reuse_.missed(walker.number, walker.place.tiles, index(walker.place.tile.tiles),
                    streams_.repetition(walker.rank_class));
  Latency longest;
  __int128 kept = 0;  // bytes times latency
  const auto add = [&](std::int64_t bytes, const Latency& latency) {
    if (bytes <= 0) return;
    kept += static_cast<__int128>(bytes) * latency.fs;
    if (latency.fs > longest.fs) longest = latency;
  };
  for (const ComputeSteps::Read& read : walker.place.tile.reads) {
    const int owner = read.first.rank;
    if (owner == rank) continue;
    const std::int64_t bytes =
        program::memory_size(read.bytes, read.first.access) * read.times * walker.place.tile.tiles;
    run_.ways.at_memory(owner, bytes, Depth::l2, total, walker.members, run_.demands);
    run_.ways.over_links(owner, rank, bytes, (bytes + line - 1) / line, 0, true, total,
                         walker.members, run_.demands);
    add(bytes, run_.ways.load(rank, owner, Depth::l2));
  }
  if (const std::int64_t local = moved.bytes - moved.from_peers; local > 0) {
    run_.ways.at_operands(rank, local, Depth::l2, total, walker.members, run_.demands);
    const auto part = [&](std::int64_t share) {
      return static_cast<std::int64_t>(static_cast<__int128>(local) * share >> kWeightBits);
    };
    const std::int64_t cold = part(missed.cold), known = part(missed.all) - cold;
    if (known > 0)
      run_.ways.behind_l2(rank, known, Depth::cache, total, walker.members, run_.demands);
    if (cold > 0)
      run_.ways.behind_l2(rank, cold, Depth::memory, total, walker.members, run_.demands);
    const std::int64_t waits = part(missed.waits);
    add(local - waits, run_.ways.load(rank, rank, Depth::l2));
    add(waits, run_.ways.load(rank, rank, cold > 0 ? Depth::memory : Depth::cache));
  }
  return {longest, static_cast<std::int64_t>(kept / total)};
}

bool Tiles::begin_tile(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  const machine::GpuModel& model = run_.model(walker);
  if (walker.has_products) streams_.share_unit(walker);
  const auto& ops = run_.program.bodies()[index(walker.agent.body)].ops;
  const DataType type = walker.place.present.type;
  std::int64_t computing = 0, sustained = 0;
  program::PrimitiveFields step_of;
  for (const ComputeSteps::Part& part : walker.place.tile.parts) {
    const program::Op& op = ops[index(part.op)];
    step_of.flop = op.flop;
    step_of.product = op.product;
    step_of.duration = op.duration;
    const std::int64_t times = part.times * walker.place.tile.tiles;
    computing += compute_time(model, step_of, type).fs * times;
    sustained += sustained_time(model, step_of, type).fs * times;
  }
  const Moved moved = moved_by(walker);
  const std::int64_t steps = walker.place.tile.steps * walker.place.tile.tiles;
  const LoadLatency latency = demands_of(walker, moved);
  walker.batch = latency.longest;
  const std::int64_t step = computing / steps * walker.sharing;
  const auto loading_in = [&](std::int64_t load_fs) {  // of a step
    const std::int64_t own = traffic_.limit_of(walker, moved, load_fs);
    return own > 0 ? static_cast<std::int64_t>(static_cast<__int128>(moved.bytes) * kSecond / own /
                                               steps)
                   : 0;
  };
  const std::int64_t loading = loading_in(latency.mean_fs);
  // A place for operands is free again when the step in it has been computed.
  const std::int64_t cycle = (model.sync_barrier_latency.fs + loading + walker.batch.fs + step) /
                             std::max<std::int64_t>(1, units_.stages(walker));
  const std::int64_t period = std::max({step, loading, cycle, std::int64_t{1}});
  // Nobody has loaded anything for the first step.
  walker.filling = std::min(step, loading_in(latency.longest.fs));
  if (walker.place.tile.stored > 0)
    walker.filling += epilogue_time(model, step_of.product, type).fs;
  walker.place.stage = 1;
  if (moved.bytes == 0) {
    walker.filling = computing / walker.place.tile.tiles;
    walker.place.stage = 2;
    return tile(number);
  }
  if (computing > 0)
    run_.demands.push_back(
        {units_.resource(walker.rank_class), weight_of(computing * walker.per_rank, moved.bytes)});
  std::int64_t least = period * steps;
  bool computes = period == step;
  if (sustained > 0) {
    const std::int64_t time =
        units_.tile_through(walker, least, sustained * walker.per_rank, run_.now) - run_.now;
    computes = computes || time > least;
    least = std::max(least, time);
  }
  const auto limit = static_cast<std::int64_t>(
      std::max<__int128>(1, static_cast<__int128>(moved.bytes) * kSecond / least));
  walker.blocked = Blocked::flow;
  run_.start_flow(FlowKind::tile, number, 0, moved.bytes, limit,
                  computes ? Reason::compute : Reason::issue, walker.at.spent);
  return false;
}

}  // namespace hemiola::sim::fluid
