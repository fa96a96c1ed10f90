#include "sim/device/computes.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "machine/devices/gemm_model.h"
#include "sim/device/host.h"
#include "sim/device/wavefronts.h"
#include "sim/model/compute_time.h"
#include "sim/sampled/sampling.h"

namespace hemiola::sim {
namespace {

using program::Primitive;

}  // namespace

Server& Computes::matrix_units(const Workgroup& group) {
  return device_.server(device_.fabric.gpu_base[index(group.rank)] +
                        device_.layout(group.rank).cu_alu + group.cu);
}

/// They take what comes in its order; when they are through with it.
std::int64_t Computes::use_matrix_units(const Workgroup& group, Time time, std::int64_t now) {
  if (time.fs <= 0) return now;
  Server& alu = matrix_units(group);
  alu.free = std::max(now, alu.free) + time.fs;
  alu.busy += time.fs;
  return alu.free;
}

// One that the wavefront waits for.
bool Computes::compute(std::int32_t id, const Primitive& primitive, std::int64_t now) {
  Wave& wave = device_.wave(id);
  if (wave.step == 1) return false;
  wave.step = 1;
  const Workgroup& group = device_.group(wave.workgroup);
  const Time time = compute_time(device_.model(group.rank), primitive, primitive.type);
  const std::int64_t end = use_matrix_units(group, time, now);
  if (end == now) return false;
  wave.spent.charge(Reason::compute, end - now);
  transport_.push(end, kWave, id, 0, wave.tag);
  wave.waiting = Waiting::compute;
  return true;
}

// --- Steps: operands are posted, then the compute that starts when the last of them is there.

ProductStep& Computes::product_step(Workgroup& group, std::int32_t number) {
  const std::size_t at = index(number - group.first_step);
  if (at >= group.steps.size()) group.steps.resize(at + 1);
  return group.steps[at];
}

void Computes::post_loads(std::int32_t id, const Step& step, std::int64_t now) {
  const Wave& wave = device_.wave(id);
  const Primitive& primitive = step.primitive;
  const Granularity grain = step.grain;
  for (std::int64_t begin = wave.index * grain.wave; begin < primitive.bytes; begin += grain.group)
    wavefronts_.request_memory(id, primitive.src.front(), begin,
                               std::min(begin + grain.wave, primitive.bytes), Intent::posted_load,
                               false, now);
}

void Computes::operand_loaded(std::int32_t id, const Request& request, std::int64_t now) {
  Workgroup& group = device_.group(id);
  ProductStep& step = product_step(group, request.epoch);
  if (--step.loads > 0) return;
  step.spent = request.spent;
  start_computes(id, now);
}

// A wavefront goes on while it has not posted more than the workgroup can hold.
bool Computes::post_compute(std::int32_t id, const Primitive& primitive, std::int64_t now) {
  Wave& wave = device_.wave(id);
  if (wave.step == 1) return false;
  wave.step = 1;
  Workgroup& group = device_.group(wave.workgroup);
  ProductStep& step = product_step(group, wave.product_step++);
  step.spent = wave.spent;
  if (++step.posted == group.movers) {
    if (device_.sampling != nullptr && &step == &group.steps.front())
      device_.sampling->steps.begin(wave.workgroup, now);
    const machine::GpuModel& model = device_.model(group.rank);
    step.time = compute_time(model, primitive, primitive.type);
    const program::Op& op = device_.op_of(group, primitive);
    if (!op.dst.empty()) step.time += epilogue_time(model, primitive.product, primitive.type);
    step.sustained = sustained_time(model, primitive, primitive.type);
    start_computes(wave.workgroup, now);
  }
  if (wave.product_step - group.first_step < stages(group)) return false;
  wave.waiting = Waiting::stage;
  return true;
}

std::int64_t Computes::stages(const Workgroup& group) const {
  const std::int32_t own = device_.code_of(group).stages;
  return own > 0 ? own : device_.model(group.rank).gemm_stages;
}

// In the order of the steps, whichever has its operands first: those that had them before waited
// for what the first of them waited for.
void Computes::start_computes(std::int32_t id, std::int64_t now) {
  Workgroup& group = device_.group(id);
  std::optional<LatencyBreakdown> until_now;
  for (ProductStep& step : group.steps) {
    if (step.started) continue;
    if (step.posted < group.movers || step.loads > 0) return;
    step.started = true;
    if (!until_now) until_now = step.spent;
    step.spent = *until_now;
    std::int64_t end =
        std::max({now + 1, use_matrix_units(group, step.time, now), limit_power(group, step, now)});
    if (device_.sampling != nullptr) end = device_.sampling->steps.end_of(id, now, end);
    step.spent.charge(Reason::compute, end - now);
    transport_.push(end, kComputed, id, 0, device_.wave(group.first_wave).tag);
  }
}

// As in the model of products, the steps of all workgroups do no more than the device sustains once
// a burst of them is over.
std::int64_t Computes::limit_power(const Workgroup& group, const ProductStep& step,
                                   std::int64_t now) {
  if (step.sustained.fs <= 0) return now;
  const std::int64_t through = device_.rank(group.rank)
                                   .power.step(now, step.time.fs, step.sustained.fs,
                                               device_.model(group.rank).gemm_burst_time.fs);
  if (through == now) return now;
  Server& alu = matrix_units(group);
  return alu.free = std::max(alu.free, through);
}

// The oldest step is through: its place is free, and those who waited for that or for all learn it.
void Computes::computed(std::int32_t id, std::int64_t now) {
  Workgroup& group = device_.group(id);
  const LatencyBreakdown spent = std::move(group.steps.front().spent);
  group.steps.pop_front();
  ++group.first_step;
  if (device_.sampling != nullptr) device_.sampling->end_step(id, now, !group.steps.empty());
  const std::int64_t latency = device_.model(group.rank).sync_barrier_latency.fs;
  for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
    Wave& wave = device_.wave(w);
    if (wave.waiting != Waiting::stage || wave.product_step - group.first_step >= stages(group))
      continue;
    wave.waiting = Waiting::running;
    wave.spent = spent;
    wave.spent.charge(Reason::barrier, latency);
    transport_.push(now + latency, kWave, w, 0, wave.tag);
  }
  if (!group.steps.empty()) return;
  if (group.finished == group.waves) host_.workgroup_done(id, spent, now);
  if (group.joining < 0) return;
  const std::int32_t last = std::exchange(group.joining, -1);
  device_.wave(last).spent = spent;
  wavefronts_.release_sync(last, *wavefronts_.step_of(device_.wave(last)), now);
}

}  // namespace hemiola::sim
