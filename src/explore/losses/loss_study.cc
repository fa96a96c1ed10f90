#include "explore/losses/loss_study.h"

#include <algorithm>

#include "plan/plan_json.h"

namespace hemiola::explore {
namespace {

using machine::GemmOptions;

/// What is left to be explained, cause by cause: each takes what was measured of it, as far as that
/// goes. Femtoseconds, none below zero.
class Explained {
 public:
  explicit Explained(std::int64_t fs) : left_(std::max<std::int64_t>(0, fs)) {}
  std::int64_t left() const { return left_; }
  std::int64_t take(double fs) {
    const std::int64_t taken =
        fs >= static_cast<double>(left_) ? left_ : static_cast<std::int64_t>(std::max(0.0, fs));
    left_ -= taken;
    return taken;
  }

 private:
  std::int64_t left_;
};

double ratio(Time a, Time b) {
  return b.fs == 0 ? 1 : static_cast<double>(a.fs) / static_cast<double>(b.fs);
}

/// Time with pieces as long as they are alone: nothing but data stands between them.
double without_contention(const Operator& op, const Schedule& schedule, double products,
                          double communication) {
  const std::int64_t steps = steps_of(op, schedule);
  const double own = schedule.family.has_own() ? products / op.ranks : 0;
  const Pipeline pipeline{.steps = steps,
                          .transfer = communication / static_cast<double>(steps),
                          .product = (products - own) / static_cast<double>(steps),
                          .own = own};
  return pipeline.time(communicates_first(op.kind));
}

}  // namespace

LossStudy::Alone LossStudy::alone(Trial& trial, const std::string& key, const Schedule& schedule,
                                  plan::Plan (*part_of)(const plan::Plan&),
                                  Time (KernelTimes::*kernels)() const) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  const plan::Plan plan = trial_.plan_of(schedule);
  KernelTimes times(plan);
  const sim::Result result = trial.run(schedule, part_of(plan), &times);
  const std::lock_guard lock(mutex_);
  return known_[key] = {result.time, (times.*kernels)()};
}

LossStudy::Alone LossStudy::products_of(const Schedule& schedule, Trial& trial) {
  Schedule pieces = schedule;
  pieces.pulls = pieces.prelaunch = false;
  if (pieces.family.division != Division::kernel) {  // whose programs leave units to these
    pieces.realization = {};
    pieces.workgroups = 0;
  }
  const std::string key = (&trial == &trial_ ? "products of " : "free memory, products of ") +
                          pieces.text() + std::to_string(pieces.own_tile.m) + "x" +
                          std::to_string(pieces.own_tile.n);
  return alone(trial, key, schedule, only_computes, &KernelTimes::computing);
}

LossStudy::Alone LossStudy::communication_of(const Schedule& schedule) {
  Schedule moves = schedule;
  moves.tile = moves.own_tile = {};
  moves.streams = 1;
  if (!moves.copies && communicates_first(op_.kind))
    moves.family.hetero = moves.family.fused = true;
  if (!moves.copies && adds_up(op_.kind)) moves.family.fused = true;
  return alone(trial_, "communication of " + moves.text(), schedule, only_transfers,
               &KernelTimes::moving);
}

void LossStudy::add(Candidate& candidate) {
  const Schedule& schedule = candidate.schedule;
  const Serial& serial = found_.serial;
  const Alone products = products_of(schedule, trial_), communication = communication_of(schedule);
  Losses losses{.dil_product = ratio(products.time, serial.product),
                .dil_communication = ratio(communication.time, serial.collective),
                .products = products.time,
                .communication = communication.time};
  if (schedule.family.division != Division::kernel && products.kernels.fs > 0)
    losses.cil_product = ratio(candidate.computing, products.kernels);
  if (communicates_first(op_.kind) && !schedule.copies && communication.kernels.fs > 0)
    losses.cil_communication = ratio(candidate.moving, communication.kernels);
  divide(candidate, products, communication, losses);
  candidate.losses = losses;
}

// By the plan's text, with its lowering: schedules can differ in what changes nothing.
Time LossStudy::on_free_memory(const Schedule& schedule) {
  plan::Plan plan = trial_.plan_of(schedule);
  const std::string key = "free memory, " + plan::write_plan(plan);
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second.time;
  }
  const Time time = free_memory_.run(schedule, std::move(plan), nullptr).time;
  const std::lock_guard lock(mutex_);
  known_[key] = {time, {}};
  return time;
}

Time LossStudy::memory_beyond(const Candidate& candidate, const Alone& products) {
  const Schedule& schedule = candidate.schedule;
  const Time whole = on_free_memory(schedule);
  const Time alone = products_of(schedule, free_memory_).time;
  const std::int64_t of_products = std::max<std::int64_t>(0, (products.time - alone).fs);
  return {candidate.fluid.fs - found_.software.fs - whole.fs - of_products};
}

// What is under way longest alone is critical. Its time beyond the bound is decomposition. What it
// takes longer beside the others is contention, and while it does not run it waits: exposed. Pieces
// can be faster together than alone (data that were just written are in the L2), so they count as
// far as the schedule's own time goes.
void LossStudy::divide(const Candidate& candidate, const Alone& products,
                       const Alone& communication, Losses& losses) {
  const Schedule& schedule = candidate.schedule;
  const auto part = [&losses](Loss loss) -> std::int64_t& { return losses.parts[index(loss)]; };
  const bool of_kernel = schedule.family.division == Division::kernel;
  const bool products_are_critical = products.time >= communication.time;
  const std::int64_t time = candidate.fluid.fs - found_.software.fs;
  const std::int64_t apart = std::min(time, std::max(products.time, communication.time).fs);

  Explained decomposed(apart - found_.ideal.time.fs);
  if (products_are_critical) {
    double launch = 0, clock = 0, last_wave = 0;
    for (const Launch& one : launches_of(op_, schedule)) {
      const GemmOptions piece{.split_k = 1, .tile = one.tile, .tile_cus = 1, .steady = true};
      const machine::GemmEstimate estimate = machine::estimate_gemm(model_, one.shape, piece);
      const double times = static_cast<double>(one.count);
      launch += times * static_cast<double>((estimate.launch + estimate.setup).fs);
      clock += times * static_cast<double>(estimate.throttled.fs);
      // Under the power limit the others are the faster for those that idle.
      if (estimate.throttled.fs == 0)
        last_wave += times * estimate.tail * static_cast<double>(estimate.body.fs);
    }
    part(Loss::launches) = decomposed.take(launch);
    part(Loss::last_wave) = decomposed.take(last_wave);
    // Where the bound is the power limit itself, that has all of it.
    const PowerLimit limit = PowerLimit::of(model_, local_flop(op_), op_.type);
    const double in_bound =
        std::max(0.0, static_cast<double>(found_.ideal.time.fs) - limit.sustained / limit.faster);
    part(Loss::clock) = decomposed.take(clock - in_bound);
    part(Loss::caches) = decomposed.left();
  } else {
    part(Loss::chunks) = decomposed.left();
  }

  Explained beyond(time - std::max(apart, std::min(time, found_.ideal.time.fs)));
  if (schedule.workgroups > 0) {
    const auto left =
        static_cast<double>(std::max<std::int64_t>(1, model_.cu_count - schedule.workgroups));
    const auto both = static_cast<double>(std::min(products.time, communication.time).fs);
    const double taken = both * (static_cast<double>(model_.cu_count) / left - 1);
    if (products_are_critical || of_kernel) part(Loss::units) = beyond.take(taken);
  }
  const auto longer = [](Time together, Time alone) {
    return static_cast<double>((together - alone).fs);
  };
  if (of_kernel) {  // whose tiles wait inside
    part(Loss::memory) = beyond.take(static_cast<double>(memory_beyond(candidate, products).fs));
    part(Loss::exposed) = beyond.left();
  } else if (products_are_critical) {
    part(Loss::memory) = beyond.take(longer(candidate.computing, products.kernels) -
                                     static_cast<double>(part(Loss::units)));
    part(Loss::exposed) = beyond.left();
  } else if (losses.cil_communication) {
    part(Loss::links) = beyond.take(longer(candidate.moving, communication.kernels));
    part(Loss::exposed) = beyond.left();
  } else {  // transfers that wait for products, which a pipeline without contention does as well
    const double pipeline = without_contention(op_, schedule, static_cast<double>(products.time.fs),
                                               static_cast<double>(communication.time.fs));
    part(Loss::exposed) = beyond.take(pipeline - static_cast<double>(apart));
    part(Loss::links) = beyond.left();
  }
  part(Loss::launches) += found_.software.fs;
}

}  // namespace hemiola::explore
