// The fluid engine: computes, and steps whose operands are loaded ahead (cores_compute.cc).

#include <algorithm>

#include "machine/devices/gemm_model.h"
#include "sim/fluid/fluid.h"
#include "sim/model/compute_time.h"

namespace hemiola::sim {
namespace {

using program::Primitive;

}  // namespace

/// The matrix units of its CU take what comes in its order; when they are through with it.
std::int64_t Fluid::use_units(Walker& walker, std::int64_t time, std::int64_t now) {
  if (time <= 0) return now;
  std::int64_t& free = ranks_[index(walker.rank_class)].units_free[index(walker.cu)];
  return free = std::max(now, free) + time;
}

std::int64_t Fluid::stages(const Walker& walker) const {
  const std::int32_t own = program_.kernels()[index(walker.agent.kernel)].stages;
  return own > 0 ? own : machine_.model(walker.agent.rank).gemm_stages;
}

bool Fluid::compute(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  if (walker.stage == 1) return true;
  if (!is_now(number)) return false;
  const Primitive& primitive = walker.present;
  const machine::GpuModel& model = machine_.model(walker.agent.rank);
  const Time time = compute_time(model, primitive, primitive.type);
  if (!primitive.posted) {
    const std::int64_t end = use_units(walker, time.fs, walker.at.time);
    walker.at.add(Reason::compute, end - walker.at.time);
    return true;
  }
  walker.stage = 1;
  ProductStep& step = open_step(walker);
  const program::Op& op = program_.bodies()[index(walker.agent.body)].ops[index(primitive.op)];
  step.time = time.fs;
  if (!op.dst.empty()) step.time += epilogue_time(model, primitive.product, primitive.type).fs;
  step.sustained = sustained_time(model, primitive, primitive.type).fs;
  step.posted = true;
  step.ready.join(walker.at);
  start_computes(number, now_);
  if (std::ssize(walker.steps) < stages(walker)) return true;
  walker.blocked = Blocked::steps;
  return false;
}

Fluid::ProductStep& Fluid::open_step(Walker& walker) {
  if (walker.steps.empty() || walker.steps.back().posted) walker.steps.emplace_back();
  return walker.steps.back();
}

void Fluid::post_operand(std::int32_t number) {
  Walker& walker = walkers_[index(number)];
  const Primitive& primitive = walker.present;
  if (primitive.bytes == 0) return;
  ProductStep& step = open_step(walker);
  ++step.flows;
  const std::int32_t ordinal =
      walker.first_step + static_cast<std::int32_t>(walker.steps.size()) - 1;
  walker.again = Walker::Again::no;
  walker.recent_bytes = 0;
  const LoadLatency latency = demands_of(walker, primitive, true);
  walker.batch = latency.longest;
  start_flow(FlowKind::operand, number, ordinal, primitive.bytes,
             limit_of(walker, moved_by(walker, primitive), latency.mean_fs), Reason::issue,
             walker.at.spent);
}

void Fluid::operand_loaded(std::int32_t number, std::int32_t ordinal, const Attribution& spent,
                           std::int64_t now) {
  Walker& walker = walkers_[index(number)];
  ProductStep& step = walker.steps[index(ordinal - walker.first_step)];
  Moment there{now, spent};
  there.add(walker.batch);
  step.ready.join(there);
  if (--step.flows == 0) start_computes(number, now);
}

/// In the order of the steps.
void Fluid::start_computes(std::int32_t number, std::int64_t now) {
  Walker& walker = walkers_[index(number)];
  for (ProductStep& step : walker.steps) {
    if (step.started) continue;
    if (!step.posted || step.flows > 0) return;
    step.started = true;
    const std::int64_t begin = std::max(now, step.ready.time);
    const std::int64_t end = std::max(
        {begin + 1, use_units(walker, step.time, begin), limit_power(walker, step, begin)});
    // It may have had its operands before an earlier step let it go on.
    step.ready.add(Reason::compute, end - step.ready.time);
    push(end, Kind::computed, number);
  }
}

std::int64_t Fluid::limit_power(Walker& walker, const ProductStep& step, std::int64_t now) {
  if (step.sustained <= 0) return now;
  RankState& rank = ranks_[index(walker.rank_class)];
  const std::int64_t through =
      rank.power.step(now, step.time, step.sustained * walker.per_rank,
                      machine_.model(walker.agent.rank).gemm_burst_time.fs);
  if (through == now) return now;
  std::int64_t& free = rank.units_free[index(walker.cu)];
  return free = std::max(free, through);
}

void Fluid::computed(std::int32_t number, std::int64_t now) {
  Walker& walker = walkers_[index(number)];
  const Attribution spent = walker.steps.front().ready.spent;
  walker.steps.pop_front();
  ++walker.first_step;
  if (walker.blocked != Blocked::steps) return;
  const bool computes = walker.loaded && walker.present.kind == program::PrimitiveKind::compute;
  if (computes ? std::ssize(walker.steps) >= stages(walker) : !walker.steps.empty()) return;
  walker.at.join(now, spent);
  if (computes)
    walker.at.add(Reason::barrier, machine_.model(walker.agent.rank).sync_barrier_latency.fs);
  advance(number);
}

}  // namespace hemiola::sim
