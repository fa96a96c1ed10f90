#include "explore/losses/loss_study.h"

#include <algorithm>

#include "explore/trials/isolated.h"

namespace hemiola::explore {
namespace {

using machine::GemmOptions;

double ratio(Time a, Time b) {
  return b.fs == 0 ? 1 : static_cast<double>(a.fs) / static_cast<double>(b.fs);
}

/// The parts of what a product takes that smaller products have more of, in femtoseconds.
struct ProductParts {
  double launches = 0, last_wave = 0, clock = 0;
  void add(const machine::GemmEstimate& estimate, std::int64_t count, double sign) {
    const double times = sign * static_cast<double>(count);
    launches += times * static_cast<double>((estimate.launch + estimate.setup).fs);
    clock += times * static_cast<double>(estimate.throttled.fs);
    // Under the power limit the others are the faster for those that idle.
    if (estimate.throttled.fs == 0)
      last_wave += times * estimate.tail * static_cast<double>(estimate.body.fs);
  }
};

/// A gain makes a loss smaller, as far as both go.
void offset(double& gain, double& loss) {
  if (gain >= 0 || loss <= 0) return;
  const double both = std::min(-gain, loss);
  gain += both;
  loss -= both;
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

LossStudy::Alone LossStudy::alone(const std::string& key, const Schedule& schedule,
                                  plan::Plan (*part_of)(const plan::Plan&),
                                  Time (KernelTimes::*kernels)() const) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto known = known_.find(key); known != known_.end()) return known->second;
  }
  const plan::Plan plan = trial_.plan_of(schedule);
  KernelTimes times(plan);
  const sim::Result result = trial_.run(schedule, part_of(plan), &times);
  const std::lock_guard lock(mutex_);
  return known_[key] = {result.time, (times.*kernels)()};
}

LossStudy::Alone LossStudy::products_of(const Schedule& schedule) {
  Schedule pieces = schedule;
  pieces.pulls = pieces.prelaunch = false;
  if (pieces.family.division != Division::kernel) {  // whose programs leave units to these
    pieces.realization = {};
    pieces.workgroups = 0;
  }
  const std::string key = "products of " + pieces.text() + std::to_string(pieces.own_tile.m) + "x" +
                          std::to_string(pieces.own_tile.n);
  return alone(key, schedule, only_computes, &KernelTimes::computing);
}

LossStudy::Alone LossStudy::communication_of(const Schedule& schedule) {
  Schedule moves = schedule;
  moves.tile = moves.own_tile = {};
  moves.streams = 1;
  if (!moves.copies && communicates_first(op_.kind))
    moves.family.hetero = moves.family.fused = true;
  return alone("communication of " + moves.text(), schedule, only_transfers, &KernelTimes::moving);
}

void LossStudy::add(Candidate& candidate) {
  const Schedule& schedule = candidate.schedule;
  const Alone products = products_of(schedule), communication = communication_of(schedule);
  Losses losses{.dil_product = ratio(products.time, serial_.product),
                .dil_communication = ratio(communication.time, serial_.collective),
                .products = products.time,
                .communication = communication.time};
  if (schedule.family.division != Division::kernel && products.kernels.fs > 0)
    losses.cil_product = ratio(candidate.computing, products.kernels);
  if (communicates_first(op_.kind) && !schedule.copies && communication.kernels.fs > 0)
    losses.cil_communication = ratio(candidate.moving, communication.kernels);
  divide(candidate, products, communication, losses);
  candidate.losses = losses;
}

void LossStudy::divide(const Candidate& candidate, const Alone& products,
                       const Alone& communication, Losses& losses) const {
  const Schedule& schedule = candidate.schedule;
  const double p = static_cast<double>(products.time.fs);
  const double c = static_cast<double>(communication.time.fs);
  const double whole_p = static_cast<double>(serial_.product.fs);
  const double whole_c = static_cast<double>(serial_.collective.fs);
  const double ideal = std::max(whole_p, whole_c), decomposed = std::max(p, c);
  std::array<double, kLosses> parts{};
  const auto part = [&parts](Loss loss) -> double& {
    return parts[static_cast<std::size_t>(loss)];
  };
  if (p >= c) {
    ProductParts more;
    // Under the load of all, whose power limit no single launch escapes.
    const GemmOptions whole{.split_k = serial_.kernel.split_k,
                            .tile = serial_.kernel.tile,
                            .tile_cus = 1,
                            .steady = true};
    more.add(machine::estimate_gemm(model_, local_product(op_), whole), 1, -1);
    for (const Launch& launch : launches_of(op_, schedule)) {
      const GemmOptions piece{.split_k = 1, .tile = launch.tile, .tile_cus = 1, .steady = true};
      more.add(machine::estimate_gemm(model_, launch.shape, piece), launch.count, 1);
    }
    // Of products that are longer than the communication was: their share of what was added.
    const double share = p > whole_p ? (decomposed - ideal) / (p - whole_p) : 0;
    part(Loss::launches) = share * more.launches;
    part(Loss::last_wave) = share * more.last_wave;
    part(Loss::clock) = share * more.clock;
    part(Loss::caches) =
        decomposed - ideal - part(Loss::launches) - part(Loss::last_wave) - part(Loss::clock);
    // What the power limit would have taken anyway is not lost to idle units or to caches.
    offset(part(Loss::clock), part(Loss::last_wave));
    offset(part(Loss::clock), part(Loss::caches));
    offset(part(Loss::caches), part(Loss::last_wave));
  } else {
    part(Loss::chunks) = decomposed - ideal;
  }
  part(Loss::launches) += static_cast<double>(software_.fs);
  const double time = static_cast<double>((candidate.fluid - software_).fs);
  const double apart = schedule.family.division == Division::kernel
                           ? decomposed
                           : std::max(decomposed, without_contention(op_, schedule, p, c));
  part(Loss::exposed) = apart - decomposed;
  const double contention = time - apart;
  if (schedule.workgroups > 0) {
    const auto left =
        static_cast<double>(std::max<std::int64_t>(1, model_.cu_count - schedule.workgroups));
    // While both are under way.
    const double both = std::min(p, c);
    part(Loss::units) = std::clamp(both * (static_cast<double>(model_.cu_count) / left - 1), 0.0,
                                   std::max(0.0, contention));
  }
  const double rest = contention - part(Loss::units);
  const bool waits_for_links = losses.cil_communication && c > p;
  part(waits_for_links ? Loss::links : Loss::memory) = rest;
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < kLosses; ++i)
    sum += losses.parts[i] = static_cast<std::int64_t>(parts[i]);
  // To the femtosecond.
  losses.parts[static_cast<std::size_t>(Loss::memory)] +=
      candidate.fluid.fs - static_cast<std::int64_t>(ideal) - sum;
}

}  // namespace hemiola::explore
