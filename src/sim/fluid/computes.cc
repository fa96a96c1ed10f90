// Computes, and steps whose operands are loaded ahead (computes.cc).

#include "sim/fluid/computes.h"

#include <algorithm>

#include "machine/devices/gemm_model.h"
#include "sim/model/compute_time.h"

namespace hemiola::sim::fluid {
namespace {

using program::Primitive;

}  // namespace

MatrixUnits::MatrixUnits(Run& run) : run_(run) {
  for (std::int32_t c = 0; c < run.fold.rank_classes(); ++c) {
    const std::int64_t units = run.machine.model(run.fold.first_rank(c)).cu_count;
    Device& device = devices_.emplace_back();
    device.free.assign(index(units), 0);
    device.resource = run.shares.add_resource({units * kSecond}, Reason::compute);
  }
}

std::int64_t MatrixUnits::use(const Walker& walker, std::int64_t time, std::int64_t now) {
  if (time <= 0) return now;
  std::int64_t& free = devices_[index(walker.rank_class)].free[index(walker.cu)];
  return free = std::max(now, free) + time;
}

std::int64_t MatrixUnits::step_through(const Walker& walker, std::int64_t time,
                                       std::int64_t sustained, std::int64_t now) {
  if (sustained <= 0) return now;
  Device& device = devices_[index(walker.rank_class)];
  const std::int64_t through = device.power.step(now, time, sustained * walker.per_rank,
                                                 run_.model(walker).gemm_burst_time.fs);
  if (through == now) return now;
  std::int64_t& free = device.free[index(walker.cu)];
  return free = std::max(free, through);
}

// What idle times save may be spent later, so only those that keep all units busy for long wait for
// the limit.
std::int64_t MatrixUnits::tile_through(Walker& walker, std::int64_t time, std::int64_t sustained,
                                       std::int64_t now) {
  Device& device = devices_[index(walker.rank_class)];
  if (device.tiles > 0) device.power.goes_on_until(now);
  ++device.tiles;
  walker.draws_power = true;
  return device.power.steps(now, time, sustained, run_.model(walker).gemm_burst_time.fs);
}

void MatrixUnits::tile_over(const Walker& walker, std::int64_t until) {
  Device& device = devices_[index(walker.rank_class)];
  --device.tiles;
  device.power.goes_on_until(until);
}

std::int64_t MatrixUnits::stages(const Walker& walker) const {
  const std::int32_t own = run_.program.kernels()[index(walker.agent.kernel)].stages;
  return own > 0 ? own : run_.model(walker).gemm_stages;
}

Computes::Computes(Run& run, Traffic& traffic, MatrixUnits& units)
    : run_(run), traffic_(traffic), units_(units), products_(run.walkers.size()) {}

bool Computes::compute(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  if (walker.place.stage == 1) return true;
  if (!run_.is_now(number)) return false;
  const Primitive& primitive = walker.place.present;
  const machine::GpuModel& model = run_.model(walker);
  const Time time = compute_time(model, primitive, primitive.type);
  if (!primitive.posted) {
    const std::int64_t end = units_.use(walker, time.fs, walker.at.time);
    walker.at.add(Reason::compute, end - walker.at.time);
    return true;
  }
  walker.place.stage = 1;
  Product& product = products_[index(number)];
  Step& step = product.open();
  const program::Op& op = run_.op_of(walker, primitive);
  step.time = time.fs;
  if (!op.dst.empty()) step.time += epilogue_time(model, primitive.product, primitive.type).fs;
  step.sustained = sustained_time(model, primitive, primitive.type).fs;
  step.posted = true;
  step.ready.join(walker.at);
  start(number, run_.now);
  if (std::ssize(product.steps) < units_.stages(walker)) return true;
  walker.blocked = Blocked::steps;
  return false;
}

Computes::Step& Computes::Product::open() {
  if (steps.empty() || steps.back().posted) steps.emplace_back();
  return steps.back();
}

void Computes::post_operand(std::int32_t number) {
  Walker& walker = run_.walkers[index(number)];
  const Primitive& primitive = walker.place.present;
  if (primitive.bytes == 0) return;
  Product& product = products_[index(number)];
  Step& step = product.open();
  ++step.flows;
  const std::int32_t ordinal = product.first + static_cast<std::int32_t>(product.steps.size()) - 1;
  walker.move.again = MoveState::Again::no;
  walker.move.recent_bytes = 0;
  const LoadLatency latency = traffic_.demands_of(walker, primitive, true);
  walker.batch = latency.longest;
  run_.start_flow(FlowKind::operand, number, ordinal, primitive.bytes,
                  traffic_.limit_of(walker, traffic_.moved_by(walker, primitive), latency.mean_fs),
                  Reason::issue, walker.at.spent);
}

void Computes::operand_loaded(std::int32_t number, std::int32_t ordinal, const Attribution& spent,
                              std::int64_t now) {
  Walker& walker = run_.walkers[index(number)];
  Product& product = products_[index(number)];
  Step& step = product.steps[index(ordinal - product.first)];
  Moment there{now, spent};
  there.add(walker.batch);
  step.ready.join(there);
  if (--step.flows == 0) start(number, now);
}

/// In the order of the steps.
void Computes::start(std::int32_t number, std::int64_t now) {
  Walker& walker = run_.walkers[index(number)];
  for (Step& step : products_[index(number)].steps) {
    if (step.started) continue;
    if (!step.posted || step.flows > 0) return;
    step.started = true;
    const std::int64_t begin = std::max(now, step.ready.time);
    const std::int64_t end =
        std::max({begin + 1, units_.use(walker, step.time, begin),
                  units_.step_through(walker, step.time, step.sustained, begin)});
    // It may have had its operands before an earlier step let it go on.
    step.ready.add(Reason::compute, end - step.ready.time);
    run_.events.push(end, EventKind::computed, number);
  }
}

bool Computes::computed(std::int32_t number, std::int64_t now) {
  Walker& walker = run_.walkers[index(number)];
  Product& product = products_[index(number)];
  const Attribution spent = product.steps.front().ready.spent;
  product.steps.pop_front();
  ++product.first;
  if (walker.blocked != Blocked::steps) return false;
  const bool computes =
      walker.place.loaded && walker.place.present.kind == program::PrimitiveKind::compute;
  if (computes ? std::ssize(product.steps) >= units_.stages(walker) : !product.steps.empty())
    return false;
  walker.at.join(now, spent);
  if (computes) walker.at.add(Reason::barrier, run_.model(walker).sync_barrier_latency.fs);
  return true;
}

}  // namespace hemiola::sim::fluid
