#include "explore/rules/closed_form.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <tuple>

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

/// Whether what moves goes to one peer after the other, and not to all at once.
bool goes_to_one_by_one(const Schedule& schedule) {
  return schedule.family.division == Division::shards ||
         schedule.family.division == Division::kernel;
}

}  // namespace

PowerLimit PowerLimit::of(const machine::GpuModel& model, double flop, DataType type) {
  const Time sustained =
      machine::gemm_sustained_time(model, static_cast<std::int64_t>(std::min(flop, 9e18)), type);
  return {static_cast<double>(sustained.fs),
          static_cast<double>(model.gemm_clock.hertz) /
              static_cast<double>(model.gemm_sustained_clock.hertz)};
}

double batch_of_workgroup(const machine::GpuModel& model) {
  constexpr double kThreads = 512, kAccess = 16;
  return kThreads * kAccess * static_cast<double>(model.cu_unroll);
}

double around_switch(Time handover, Time crossing) {
  return static_cast<double>((2 * handover + 2 * crossing).fs);
}

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
  return kNames[index(by)];
}

ClosedForm::ClosedForm(const Operator& op, const machine::Machine& machine)
    : op_(op),
      model_(machine.model(0)),
      pieces_(PieceModel::of(model_, op.type)),
      case_(OverlapCase::of(op, pieces_)) {
  plan::Fabric fabric(machine);
  all_ = rates(fabric, false);
  shift_ = rates(fabric, true);
  levels_ = levels(fabric);
  crossing_ = fabric.handover(fabric.way(0, 1));
  crossing_of_line_ = fabric.crossing(fabric.way(0, 1));
  latency_ = fabric.load(0) + model_.hbm_latency;
}

namespace {

/// What every rank sends: to whom, and how many blocks.
using Peers = std::function<void(int from, const std::function<void(int to, double blocks)>& send)>;

ClosedForm::Rates busiest_of(plan::Fabric& fabric, const Peers& peers) {
  const int ranks = fabric.ranks();
  const machine::Machine& machine = fabric.machine();
  const machine::GpuModel& model = machine.model(0);
  const auto kind_of = [&](std::int32_t trunk) -> const machine::LinkClass& {
    return machine.link_classes[index(fabric.trunks()[index(trunk)].link_class)];
  };
  // The other direction of a trunk, which acknowledgements take.
  std::map<std::tuple<machine::NodeId, machine::NodeId, std::int32_t>, std::int32_t> numbers;
  for (std::size_t t = 0; t < fabric.trunks().size(); ++t) {
    const plan::Trunk& trunk = fabric.trunks()[t];
    numbers[{trunk.from, trunk.to, trunk.link_class}] = static_cast<std::int32_t>(t);
  }
  const auto reverse_of = [&](std::int32_t number) {
    const plan::Trunk& trunk = fabric.trunks()[index(number)];
    const auto found = numbers.find({trunk.to, trunk.from, trunk.link_class});
    return found == numbers.end() ? number : found->second;
  };
  const std::int64_t line = model.line_size.count;
  const std::int64_t burst = std::max<std::int64_t>(line, model.dma_burst.count);
  struct Busy {
    double wire = 0, port = 0;     ///< of data
    double lines = 0, bursts = 0;  ///< and of acknowledgements
  };
  std::map<std::int32_t, Busy> busy;  // by trunk
  for (int from = 0; from < ranks; ++from) {
    peers(from, [&](int to, double blocks) {
      const plan::Way& way = fabric.way(from, to);
      for (const plan::Way::Use& use : way.uses) {
        const double wire = blocks * static_cast<double>(fabric.wire(way, use, kProbe).fs) / kProbe;
        Busy& there = busy[use.trunk];
        there.port += blocks * static_cast<double>(fabric.busy(way, use, kProbe).fs) / kProbe;
        const machine::LinkClass& kind = kind_of(use.trunk);
        const double raw = wire * kProbe / static_cast<double>(kind.wire_bytes(kProbe));
        const auto of = [&](std::int64_t bytes, std::int64_t unit) {
          return raw * static_cast<double>(bytes) / static_cast<double>(unit);
        };
        const double of_burst = of(kind.wire_bytes(burst, model.dma_max_payload.count), burst);
        there.wire += std::min(wire, of_burst);  // larger packets have fewer headers
        there.lines += of(kind.wire_bytes(line), line);
        there.bursts += of_burst;
        Busy& back = busy[reverse_of(use.trunk)];
        back.lines += of(kind.wire_bytes(0), line);
        back.bursts += of(kind.wire_bytes(0), burst);
      }
    });
  }
  ClosedForm::Rates rates;
  for (const auto& [trunk, times] : busy) {
    rates.wire = std::max(rates.wire, times.wire);
    rates.port = std::max(rates.port, times.port);
    rates.lines = std::max({rates.lines, times.port, times.lines});
    rates.bursts = std::max({rates.bursts, times.port, times.bursts});
  }
  return rates;
}

}  // namespace

ClosedForm::Levels ClosedForm::levels(plan::Fabric& fabric) {
  const int ranks = fabric.ranks();
  const auto inner = static_cast<int>(ranks_of_node(fabric.machine()));
  if (inner == 0) return {};
  const double groups = ranks / inner;
  return {.across = busiest_of(fabric,
                               [&](int from, const auto& send) {
                                 for (int d = inner; d < ranks; d += inner)
                                   send((from + d) % ranks, 1);
                               }),
          .inside = busiest_of(fabric,
                               [&](int from, const auto& send) {
                                 const int first = from / inner * inner;
                                 for (int to = first; to < first + inner; ++to)
                                   if (to != from) send(to, groups);
                               }),
          .groups = groups,
          .inner = static_cast<double>(inner),
          .crossing = fabric.handover(fabric.way(0, inner))};
}

double ClosedForm::meeting(const machine::Machine& machine) {
  const auto inner = static_cast<double>(ranks_of_node(machine));
  return inner > 0 ? 1 / (1 - std::pow(1 - 1 / inner, inner)) : 1;
}

ClosedForm::Rates ClosedForm::rates(plan::Fabric& fabric, bool one_by_one) {
  const int ranks = fabric.ranks();
  const auto busiest = [&](int first, int last) {
    return busiest_of(fabric, [&](int from, const auto& send) {
      for (int distance = first; distance <= last; ++distance) send((from + distance) % ranks, 1);
    });
  };
  if (!one_by_one) {
    Rates all = busiest(1, ranks - 1);
    const double meeting = ClosedForm::meeting(fabric.machine());
    for (double* rate : {&all.port, &all.lines, &all.bursts}) *rate *= meeting;
    return all;
  }
  Rates mean;
  for (int distance = 1; distance < ranks; ++distance) {
    const Rates one = busiest(distance, distance);
    mean.wire += one.wire / (ranks - 1);
    mean.port += one.port / (ranks - 1);
    mean.lines += one.lines / (ranks - 1);
    mean.bursts += one.bursts / (ranks - 1);
  }
  return mean;
}

Time ClosedForm::least_time(const Launch& launch, std::int64_t streams) const {
  const Time tile = machine::gemm_tile_time(model_, launch.tile, launch.shape.k, op_.type);
  const double spread =
      static_cast<double>(tiles_of(launch)) / static_cast<double>(model_.cu_count);
  // Launches of other streams fill the units that those of one leave idle.
  return time_of(static_cast<double>(tile.fs) *
                 std::max(1.0 / static_cast<double>(streams), spread));
}

double ClosedForm::products_bound(const Schedule& schedule,
                                  const std::vector<Launch>& launches) const {
  double products = 0, flop = 0;
  for (const Launch& launch : launches) {
    products += static_cast<double>(least_time(launch, launch.own ? 1 : schedule.streams).fs *
                                    launch.count);
    flop += flop_of(launch.shape) * static_cast<double>(launch.count);
  }
  // All compute units at the clock of short loads until the power limit holds.
  const PowerLimit limit = PowerLimit::of(model_, flop, op_.type);
  const double burst = static_cast<double>(model_.gemm_burst_time.fs);
  return std::max(products, limit.sustained - burst * (limit.faster - 1));
}

double ClosedForm::links_bound(const Schedule& schedule) const {
  const bool one_by_one = schedule.family.division == Division::shards;
  // Links of a node and those between nodes are others: what counts is the busiest of either.
  const double all =
      schedule.inner > 0
          ? std::max(levels_.across.wire, levels_.inside.wire)
          : (one_by_one ? shift_.wire * static_cast<double>(steps_of(op_, schedule)) : all_.wire);
  // Sums that everybody gets go to who adds them up and back, except through a switch that does.
  const bool and_back =
      op_.kind == OperatorKind::gemm_ar && schedule.realization != "multicast" && op_.ranks > 1;
  return static_cast<double>(blocks_of(op_).bytes.count) * all * (and_back ? 2 : 1);
}

ClosedForm::Bound ClosedForm::bound(const Schedule& schedule) {
  const std::vector<Launch> launches = launches_of(op_, schedule);
  const double products = products_bound(schedule, launches), links = links_bound(schedule);
  Bound best{time_of(products), By::products};
  const auto offer = [&](double fs, By by) {
    if (time_of(fs) > best.time) best = {time_of(fs), by};
  };
  offer(links, By::links);
  if (schedule.family.division == Division::kernel)
    return best;  // its tiles begin and end when they like
  double of_own = 0;
  for (const Launch& launch : launches)
    if (launch.own) of_own = static_cast<double>(least_time(launch, 1).fs * launch.count);
  const double last = static_cast<double>(least_time(launches.back(), 1).fs);
  offer(links + last, By::links_product);
  const auto steps = static_cast<double>(steps_of(op_, schedule));
  offer(products + std::max(0.0, links / steps - of_own), By::chunk_products);
  return best;
}

ClosedForm::Bound ClosedForm::least_bound(const std::vector<Schedule>& schedules) {
  std::optional<Bound> least;
  for (const Schedule& schedule : schedules) {
    const Bound one = bound(schedule);
    if (!least || one.time < least->time) least = one;
  }
  return least.value_or(Bound{});
}

/// Under max-min fair shares a workgroup that moves data gets no more of a full L2 than one that
/// computes.
double ClosedForm::fair_share(const Schedule& schedule) const {
  const double m = schedule.tile.m, n = schedule.tile.n, step = 128;
  const double compute = 2 * m * n * step / pieces_.element;
  const double loads = pieces_.units * (m + n) * step * pieces_.l2;
  const bool is_full = loads > std::max(compute * pieces_.flop + pieces_.loop,
                                        pieces_.units * compute * pieces_.power);
  return is_full ? pieces_.units * pieces_.l2 : 0;
}

Time ClosedForm::step_time(const Schedule& schedule, double bytes) const {
  return step_time(schedule, bytes, goes_to_one_by_one(schedule) ? shift_ : all_);
}

/// Of one block to one rank of the own node.
double ClosedForm::inside_time(const Schedule& schedule, double bytes) const {
  const double copies = levels_.copies();
  const Rates one{.wire = levels_.inside.wire / copies,
                  .port = levels_.inside.port / copies,
                  .lines = levels_.inside.lines / copies,
                  .bursts = levels_.inside.bursts / copies};
  return static_cast<double>(step_time(schedule, bytes, one).fs);
}

Time ClosedForm::step_time(const Schedule& schedule, double bytes, const Rates& rates) const {
  const bool one_by_one = goes_to_one_by_one(schedule);
  const double peers = one_by_one ? 1 : op_.ranks - 1;
  const bool by_engine = schedule.workgroups == 0 && schedule.realization == "copy-engine";
  double fs = bytes * (by_engine ? rates.bursts : rates.lines);
  if (by_engine) {
    const double engines = static_cast<double>(std::max<std::int64_t>(1, model_.dma_engines));
    const double each = std::ceil(peers / engines);
    // Steps by columns move rows that do not follow each other.
    const double rows = schedule.family.division == Division::columns ? case_.rows : 0;
    fs = std::max(fs, each * (bytes * fs_per_byte(model_.dma_rate) +
                              rows * static_cast<double>(model_.dma_row_time.fs)));
    Time around = model_.dma_sync_latency;
    if (!schedule.prelaunch)
      around = around + model_.dma_control_latency + model_.dma_schedule_latency;
    fs += static_cast<double>(around.fs) * each;
  } else if (schedule.workgroups > 0) {
    // Streams share the workgroups evenly; each keeps so many lines under way.
    // Sums are formed by the other half of them, in a stream of its own; over nodes as they come.
    const bool sums = adds_up(op_.kind) && schedule.inner == 0;
    const double streams = one_by_one ? (schedule.inner > 0 && !schedule.pulls ? 2 : 1)
                                      : op_.ranks - 1 + (schedule.copies ? 2 : 1) - (sums ? 1 : 0);
    const double moving = sums ? schedule.workgroups / 2.0 : schedule.workgroups;
    const double each = std::max(1.0, std::floor(moving / streams));
    const double trip = 2 * static_cast<double>(crossing_of_line_.fs);
    const std::int64_t lines = schedule.pulls ? model_.cu_max_outstanding : model_.cu_max_stores;
    const double under_way = static_cast<double>(lines * model_.line_size.count);
    // Its threads load a batch and wait for it, from a peer or from own memory.
    const double batch = batch_of_workgroup(model_);
    const double loaded = schedule.pulls ? trip : static_cast<double>(latency_.fs);
    double per_byte = std::max({trip / under_way, loaded / batch, fair_share(schedule)});
    if (schedule.pulls) per_byte = std::max(per_byte, fs_per_byte(model_.cu_peer_rate));
    fs = std::max(fs, bytes * per_byte / each);
  }
  return time_of(fs) + crossing_;
}

/// Compute units that workgroups take which move data. What engines bring is added up by some.
std::int64_t ClosedForm::units_beside(const Schedule& schedule) const {
  return adds_up(op_.kind) && schedule.workgroups == 0 ? kBesideEngines : schedule.workgroups;
}

/// What the receivers of partial sums take to add those of a chunk of every rank.
Time ClosedForm::sum_time(const Schedule& schedule, double bytes) const {
  if (!adds_up(op_.kind)) return {};
  const double workgroups = schedule.workgroups > 0 ? schedule.workgroups / 2.0 : kBesideEngines;
  // Whole shards are added one by one, as they come.
  const double read = goes_to_one_by_one(schedule) ? 2 : op_.ranks;
  return time_of(bytes * std::max(read * pieces_.read_by_workgroup(case_.cached) / workgroups,
                                  (read + 1) * pieces_.memory_of(case_.cached)));
}

/// A stream of copies has its share of the workgroups, or a copy engine.
double ClosedForm::copied_per_byte(const Schedule& schedule) const {
  if (!schedule.copies) return 0;
  if (schedule.workgroups == 0) return fs_per_byte(model_.dma_rate);
  const double each =
      std::max(1.0, std::floor(static_cast<double>(schedule.workgroups) / (op_.ranks + 1)) /
                        (adds_up(op_.kind) ? 2 : 1));
  return std::max({static_cast<double>(latency_.fs) / batch_of_workgroup(model_),
                   fs_per_byte(model_.noc_cu_rate), fs_per_byte(model_.noc_cu_out_rate)}) /
         each;
}

Time ClosedForm::estimate(const Schedule& schedule) {
  const Division division = schedule.family.division;
  const std::int64_t steps = steps_of(op_, schedule);
  const bool one_by_one = division == Division::shards;
  const double bytes =
      static_cast<double>(blocks_of(op_).bytes.count) / static_cast<double>(one_by_one ? 1 : steps);
  Transfers transfers{.chunk = static_cast<double>(step_time(schedule, bytes).fs),
                      .sum = static_cast<double>(sum_time(schedule, bytes).fs),
                      .copied = copied_per_byte(schedule),
                      .places = static_cast<double>(
                          std::max<std::int64_t>(1, model_.cu_count - units_beside(schedule)))};
  const auto model_with = [&](const Tile& tile, std::array<TileTerms, 1>& terms) {
    terms = {pieces_.terms(tile.m, tile.n, case_.cached)};
    return OverlapModel(pieces_, case_, terms);
  };
  std::array<TileTerms, 1> terms{}, own_terms{};
  const OverlapModel model = model_with(schedule.tile, terms);
  if (division == Division::kernel) {
    const double places = transfers.places;
    if (schedule.realization == "multicast" && adds_up(op_.kind))
      return time_of(
          model.multicast_kernel(places, all_.wire, around_switch(crossing_, crossing_of_line_)));
    if (schedule.inner > 0) {
      const double across = bytes * levels_.across.bursts +
                            (levels_.groups - 1) * static_cast<double>(levels_.crossing.fs);
      return time_of(
          model.kernel_across_nodes(places, levels_.groups, across, inside_time(schedule, bytes)));
    }
    return time_of(
        model.kernel(places, transfers.chunk, transfers.sum, schedule.realization == "co-located"));
  }
  const Steps of{.family = schedule.family,
                 .degree = static_cast<double>(steps),
                 .copies = schedule.copies,
                 .streams = static_cast<double>(schedule.streams)};
  transfers.beside = model.beside(transfers.chunk * of.degree);
  const double own = schedule.family.has_own()
                         ? model_with(schedule.own_tile, own_terms).block(transfers.places)
                         : 0;
  return time_of(model.time(of, transfers, model.step(of, transfers), own));
}

}  // namespace hemiola::explore
