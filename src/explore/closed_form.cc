#include "explore/closed_form.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "machine/gemm_model.h"

namespace hemiola::explore {
namespace {

constexpr std::int64_t kProbe = 1 << 20;  ///< bytes by which rates are asked for

Time time_of(double fs) {
  return {static_cast<std::int64_t>(fs)};
}

std::int64_t tiles_of(const Launch& launch) {
  return ((launch.shape.m + launch.tile.m - 1) / launch.tile.m) *
         ((launch.shape.n + launch.tile.n - 1) / launch.tile.n);
}

double flop_of(const Launch& launch) {
  return 2.0 * static_cast<double>(launch.shape.m) * static_cast<double>(launch.shape.n) *
         static_cast<double>(launch.shape.k);
}

}  // namespace

double fs_per_byte(Rate rate) {
  return rate.is_ideal() ? 0 : 1e15 / static_cast<double>(rate.bytes_per_second);
}

double Pipeline::time(bool communicates_first) const {
  double moved = 0, computed = communicates_first ? own : 0, added = 0;
  for (std::int64_t i = 0; i < steps; ++i) {
    if (communicates_first) {
      moved += transfer;
      computed = std::max(computed, moved) + product;
    } else {
      computed += product;
      moved = std::max(moved, computed) + transfer;
      added = std::max(added, moved) + sum;
    }
  }
  return communicates_first ? computed : std::max(added, computed + own);
}

std::string_view name_of(ClosedForm::By by) {
  constexpr std::string_view kNames[] = {"products", "links", "all bytes and one product",
                                         "one chunk and all products"};
  return kNames[static_cast<std::size_t>(by)];
}

ClosedForm::ClosedForm(const Operator& op, const machine::Machine& machine, sim::Launch launch)
    : op_(op), model_(machine.model(0)), launch_(launch) {
  plan::Fabric fabric(machine);
  all_ = rates(fabric, false);
  shift_ = rates(fabric, true);
  crossing_ = fabric.handover(fabric.way(0, 1));
  crossing_of_line_ = fabric.crossing(fabric.way(0, 1));
  load_ = fabric.load(0);
}

ClosedForm::Rates ClosedForm::rates(plan::Fabric& fabric, bool one_by_one) {
  const int ranks = fabric.ranks();
  const auto busiest = [&](int first, int last) {
    std::map<std::int32_t, std::pair<double, double>> busy;  // by trunk: wire, with ports
    for (int from = 0; from < ranks; ++from) {
      for (int distance = first; distance <= last; ++distance) {
        const plan::Way& way = fabric.way(from, (from + distance) % ranks);
        for (const plan::Way::Use& use : way.uses) {
          auto& [wire, port] = busy[use.trunk];
          wire += static_cast<double>(fabric.wire(way, use, kProbe).fs);
          port += static_cast<double>(fabric.busy(way, use, kProbe).fs);
        }
      }
    }
    Rates rates;
    for (const auto& [trunk, times] : busy) {
      rates.wire = std::max(rates.wire, times.first / kProbe);
      rates.port = std::max(rates.port, times.second / kProbe);
    }
    return rates;
  };
  if (!one_by_one) return busiest(1, ranks - 1);
  Rates mean;
  for (int distance = 1; distance < ranks; ++distance) {
    const Rates one = busiest(distance, distance);
    mean.wire += one.wire / (ranks - 1);
    mean.port += one.port / (ranks - 1);
  }
  return mean;
}

Time ClosedForm::product_time(const Launch& launch, int cus) {
  const machine::GemmShape& shape = launch.shape;
  const auto key =
      std::tuple(shape.m, shape.n, shape.k, shape.accumulate, launch.tile.m, launch.tile.n, cus);
  const auto known = times_.find(key);
  if (known != times_.end()) return known->second;
  const Time time =
      machine::estimate_gemm(model_, shape, {.cus = cus, .split_k = 1, .tile = launch.tile}).time;
  return times_[key] = time;
}

Time ClosedForm::least_time(const Launch& launch, std::int64_t streams) const {
  const Time tile = machine::gemm_tile_time(model_, launch.tile, launch.shape.k, op_.type);
  const double spread =
      static_cast<double>(tiles_of(launch)) / static_cast<double>(model_.cu_count);
  // Launches of other streams fill the units that those of one leave idle.
  return time_of(static_cast<double>(tile.fs) *
                 std::max(1.0 / static_cast<double>(streams), spread));
}

ClosedForm::Bound ClosedForm::bound(const Schedule& schedule) {
  const std::vector<Launch> launches = launches_of(op_, schedule);
  double products = 0, flop = 0, of_own = 0;
  for (const Launch& launch : launches) {
    const double time = static_cast<double>(
        least_time(launch, launch.own ? 1 : schedule.streams).fs * launch.count);
    products += time;
    flop += flop_of(launch) * static_cast<double>(launch.count);
    if (launch.own) of_own = time;
  }
  // All compute units at the clock of short loads until the power limit holds.
  const double sustained =
      static_cast<double>(machine::gemm_sustained_time(
                              model_, static_cast<std::int64_t>(std::min(flop, 9e18)), op_.type)
                              .fs);
  const double faster = static_cast<double>(model_.gemm_clock.hertz) /
                        static_cast<double>(model_.gemm_sustained_clock.hertz);
  const double burst = static_cast<double>(model_.gemm_burst_time.fs);
  products = std::max(products, sustained - burst * (faster - 1));

  const Division division = schedule.family.division;
  const bool one_by_one = division == Division::shards;
  const auto steps = static_cast<double>(steps_of(op_, schedule));
  const double links = static_cast<double>(blocks_of(op_).bytes.count) *
                       (one_by_one ? shift_.wire * steps : all_.wire);
  Bound best{time_of(products), By::products};
  const auto offer = [&](double fs, By by) {
    if (time_of(fs) > best.time) best = {time_of(fs), by};
  };
  offer(links, By::links);
  if (division == Division::kernel) return best;  // its tiles begin and end when they like
  const double last = static_cast<double>(least_time(launches.back(), 1).fs);
  offer(links + last, By::links_product);
  offer(products + std::max(0.0, links / steps - of_own), By::chunk_products);
  return best;
}

Time ClosedForm::step_time(const Schedule& schedule, double bytes) const {
  const bool one_by_one = schedule.family.division == Division::shards;
  const double peers = one_by_one ? 1 : op_.ranks - 1;
  double fs = bytes * (one_by_one ? shift_.port : all_.port);
  if (schedule.workgroups == 0 && schedule.realization == "copy-engine") {
    const double engines = static_cast<double>(std::max<std::int64_t>(1, model_.dma_engines));
    const double each = std::ceil(peers / engines);
    fs = std::max(fs, each * bytes * fs_per_byte(model_.dma_rate));
    Time around = model_.dma_sync_latency;
    if (!schedule.prelaunch)
      around = around + model_.dma_control_latency + model_.dma_schedule_latency;
    fs += static_cast<double>(around.fs) * each;
  } else if (schedule.workgroups > 0) {
    // Streams share the workgroups evenly; each keeps so many lines under way.
    const double streams = one_by_one ? 1 : op_.ranks - 1 + (schedule.copies ? 2 : 1);
    const double moving = adds_up(op_.kind) ? schedule.workgroups / 2.0 : schedule.workgroups;
    const double each =
        std::max(1.0, std::floor(moving / (adds_up(op_.kind) ? streams - 1 : streams)));
    const double trip = 2 * static_cast<double>(crossing_of_line_.fs);
    const std::int64_t lines = schedule.pulls ? model_.cu_max_outstanding : model_.cu_max_stores;
    const double under_way = static_cast<double>(lines * model_.line_size.count);
    double per_byte = trip / under_way;
    if (schedule.pulls) per_byte = std::max(per_byte, fs_per_byte(model_.cu_peer_rate));
    fs = std::max(fs, bytes * per_byte / each);
  }
  return time_of(fs) + crossing_;
}

/// What the receivers of partial sums take to add those of a chunk of every rank.
Time ClosedForm::sum_time(const Schedule& schedule, double bytes) const {
  if (!adds_up(op_.kind)) return {};
  const double workgroups = schedule.workgroups > 0 ? schedule.workgroups / 2.0 : 16;
  const double latency = static_cast<double>((load_ + model_.hbm_latency).fs);
  const double under_way =
      static_cast<double>(model_.cu_max_outstanding * model_.line_size.count) * workgroups;
  const double moved = bytes * (op_.ranks + 1);
  return time_of(moved * std::max(latency / under_way, fs_per_byte(model_.hbm_rate)));
}

double ClosedForm::cost_of_copies(const Schedule& schedule) const {
  if (!schedule.copies) return 0;
  const Launch last = launches_of(op_, schedule).back();
  return 2.0 * static_cast<double>(last.shape.m * last.shape.n) * size_of(op_.type) *
         fs_per_byte(model_.hbm_rate);
}

Time ClosedForm::estimate(const Schedule& schedule) {
  const std::vector<Launch> launches = launches_of(op_, schedule);
  const auto units = static_cast<int>(model_.cu_count);
  const bool takes_units = schedule.workgroups > 0;
  const int cus = takes_units ? std::max(1, units - schedule.workgroups) : 0;
  const Time gap =
      launch_ == sim::Launch::graph ? model_.launch_graph_interval : model_.launch_stream_interval;
  const std::int64_t steps = steps_of(op_, schedule);
  Time own{}, of_steps{};
  for (Launch launch : launches) {
    if (launch.own) {
      own = product_time(launch, cus);
      continue;
    }
    const std::int64_t together = std::min(schedule.streams, launch.count);
    launch.shape.m *= together;
    const std::int64_t count = (launch.count + together - 1) / together;
    of_steps += (product_time(launch, cus) + gap) * count;
  }
  const bool one_by_one = schedule.family.division == Division::shards;
  const double bytes =
      static_cast<double>(blocks_of(op_).bytes.count) / static_cast<double>(one_by_one ? 1 : steps);
  Time chunk = step_time(schedule, bytes);
  if (op_.kind == OperatorKind::gemm_ar) chunk = chunk * 2;
  if (schedule.family.division == Division::kernel) {
    const Time first = {chunk.fs / (op_.ranks - 1)};
    return std::max(chunk, of_steps) + first;
  }
  const Pipeline pipeline{.steps = steps,
                          .transfer = static_cast<double>(chunk.fs),
                          .product = static_cast<double>(of_steps.fs / steps),
                          .own = static_cast<double>(own.fs),
                          .sum = static_cast<double>(sum_time(schedule, bytes).fs)};
  return time_of(pipeline.time(communicates_first(op_.kind))) + time_of(cost_of_copies(schedule));
}

}  // namespace hemiola::explore
