#include "explore/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/embedded.h"
#include "explore/closed_form.h"
#include "explore/overlap_model.h"
#include "plan/fabric.h"

namespace hemiola::explore {
namespace {

constexpr std::array<std::string_view, kFeatures> kNames{
    "ratio",       "op_to_byte",  "traffic",      "m_over_k", "m",     "n",    "k",    "waves",
    "block_waves", "chunk_share", "launch_share", "one_link", "first", "sums", "ranks"};

constexpr std::array<std::int64_t, 4> kDegrees{2, 4, 8, 16};
/// Launches that unfused products have at a time: what fills the waves of small ones.
constexpr double kStreams = 4;

double ceil_div(double a, double b) {
  return std::ceil(a / b);
}

/// What a workgroup that moves data reaches, in femtoseconds of a byte.
double per_byte_of_workgroup(const machine::GpuModel& model, plan::Fabric& fabric) {
  double per_byte = fs_per_byte(model.cu_peer_rate);
  if (model.cu_max_stores > 0) {
    const double trip = 2 * static_cast<double>(fabric.crossing(fabric.way(0, 1)).fs);
    per_byte = std::max(
        per_byte, trip / static_cast<double>(model.cu_max_stores * model.line_size.count));
  }
  return per_byte;
}

/// So many workgroups for each stream, where they leave half of the units to products.
double workgroups_of(const machine::GpuModel& model, double streams, double each) {
  while (each > 1 && 2 * streams * each > static_cast<double>(model.cu_count)) each /= 2;
  return streams * each;
}

/// Bytes per femtosecond that a workgroup copies in own memory: what it has under way per load.
double copy_rate(const machine::GpuModel& model, plan::Fabric& fabric) {
  constexpr double kBatch = 512 * 16;  ///< bytes that its threads load at a time
  const double latency = static_cast<double>((fabric.load(0) + model.hbm_latency).fs);
  const double rate = kBatch * static_cast<double>(model.cu_unroll) / std::max(1.0, latency);
  const double port = std::max(fs_per_byte(model.noc_cu_rate), fs_per_byte(model.noc_cu_out_rate));
  return port > 0 ? std::min(rate, 1 / port) : rate;
}

/// Of each area the tile that is the most square, the largest first.
std::array<Tile, 4> tiles_of_rules(const machine::GpuModel& model) {
  std::vector<Tile> tiles;
  for (const Tile& tile : model.gemm_tiles) {
    if (tile.m <= 2 * tile.n && tile.n <= 2 * tile.m) tiles.push_back(tile);
  }
  if (tiles.empty()) tiles.push_back({128, 128});
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const Tile& a, const Tile& b) { return a.m * a.n > b.m * b.n; });
  tiles.erase(std::unique(tiles.begin(), tiles.end(),
                          [](const Tile& a, const Tile& b) { return a.m * a.n == b.m * b.n; }),
              tiles.end());
  std::array<Tile, 4> chosen{};
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = tiles[std::min(i, tiles.size() - 1)];
  return chosen;
}

/// Whether one persistent kernel is a schedule of the operator without a switch that multicasts.
bool has_kernel(const Operator& op) {
  return op.kind == OperatorKind::ag_gemm || op.kind == OperatorKind::gemm_rs;
}

/// Full meshes of 4 and of 6 have no cycles through all nodes that use every link once (Tillson,
/// 1980): rings of a library leave one of a node's ways out there.
double ways_of_rings(double peers) {
  return peers == 3 || peers == 5 ? peers - 1 : peers;
}

}  // namespace

std::string_view name_of(Feature feature) {
  return kNames[static_cast<std::size_t>(feature)];
}

RuleMachine RuleMachine::of(const machine::Machine& machine, DataType type) {
  const machine::GpuModel& model = machine.model(0);
  plan::Fabric fabric(machine);
  const ClosedForm::Rates all = ClosedForm::rates(fabric, false);
  const ClosedForm::Rates shift = ClosedForm::rates(fabric, true);
  RuleMachine rule;
  const double peers = machine.ranks() - 1;
  rule.link_per_byte = all.lines;
  rule.shift_per_byte = shift.lines;
  const double one_link = peers * shift.lines / std::max(all.lines, 1e-9);
  rule.library_per_byte = all.lines * (one_link > 1.5 ? peers / ways_of_rings(peers) : 1);
  rule.chunk = static_cast<double>(fabric.handover(fabric.way(0, 1)).fs);
  rule.gap = static_cast<double>(model.launch_stream_interval.fs);
  rule.pieces = PieceModel::of(model, type);
  rule.tiles = tiles_of_rules(model);
  const double each = per_byte_of_workgroup(model, fabric);
  const double moving = workgroups_of(model, peers, 2);
  const double copying = 1 / copy_rate(model, fabric);
  rule.moves[0] = {.per_byte = std::max(all.lines, each * peers / moving),
                   .chunk = rule.chunk,
                   .units = moving,
                   .copied = copying / (moving / peers)};
  const double summing = workgroups_of(model, peers + 2, 8);
  rule.sums[0] = {.per_byte = std::max(all.lines, each * 2 * (peers + 2) / summing),
                  .chunk = rule.chunk,
                  .units = summing,
                  .adding = 2 * rule.pieces.read_by_workgroup(false) / summing,
                  .copied = copying / (summing / (peers + 2) / 2)};
  rule.moves[1] = rule.moves[0];
  rule.sums[1] = rule.sums[0];
  if (model.dma_engines == 0) return rule;
  const double of_engine = ceil_div(peers, static_cast<double>(model.dma_engines));
  constexpr double kBesideEngines = 16;  ///< workgroups that add up what engines brought
  rule.moves[1] = {
      .per_byte = std::max(all.bursts, of_engine * fs_per_byte(model.dma_rate)),
      .chunk = rule.chunk + of_engine * static_cast<double>(model.dma_sync_latency.fs)};
  rule.sums[1] = rule.moves[1];
  rule.sums[1].units = kBesideEngines;
  rule.sums[1].adding = rule.pieces.read_by_workgroup(false) / kBesideEngines;
  return rule;
}

Features features_of(const Operator& op, const RuleMachine& machine) {
  const machine::GemmShape local = local_product(op);
  const OverlapCase of = OverlapCase::of(op, machine.pieces);
  const double m = static_cast<double>(local.m), n = static_cast<double>(local.n),
               k = static_cast<double>(local.k), bytes = size_of(op.type);
  const double traffic = bytes * (m * k + n * k + m * n);
  const double product = OverlapModel(machine.pieces, of).whole(machine.tiles);
  const double moved = of.bytes * of.passes() * machine.link_per_byte;
  const Tile& tile = machine.tiles[0];
  const auto waves = [&](double rows, double columns) {
    return ceil_div(rows, tile.m) * ceil_div(columns, tile.n) / machine.pieces.units;
  };
  Features all{};
  const auto set = [&all](Feature feature, double value) {
    all[static_cast<std::size_t>(feature)] = value;
  };
  set(Feature::ratio, moved / product);
  set(Feature::op_to_byte, 2 * m * n * k / traffic);
  set(Feature::traffic, traffic / (1 << 20));
  set(Feature::m_over_k, m / k);
  set(Feature::m, m);
  set(Feature::n, n);
  set(Feature::k, k);
  set(Feature::waves, waves(m, n));
  set(Feature::block_waves, waves(of.rows, of.columns));
  set(Feature::chunk_share, machine.chunk / std::max(1.0, moved));
  set(Feature::launch_share, (machine.pieces.launch + machine.gap) / product);
  set(Feature::one_link, machine.shift_per_byte * (op.ranks - 1) / machine.link_per_byte);
  set(Feature::first, communicates_first(op.kind) ? 1 : 0);
  set(Feature::sums, adds_up(op.kind) ? 1 : 0);
  set(Feature::ranks, op.ranks);
  return all;
}

AnalyticTimes analytic_times(const Operator& op, const RuleMachine& machine) {
  const OverlapCase of = OverlapCase::of(op, machine.pieces);
  const OverlapModel model(machine.pieces, of);
  const std::array<RuleMover, 2>& movers = of.sums ? machine.sums : machine.moves;
  const std::array<double, 2> own{model.block(machine.pieces.units - movers[0].units, machine.tiles),
                                  model.block(machine.pieces.units - movers[1].units, machine.tiles)};
  const auto transfers = [&](const RuleMover& mover, double bytes) {
    return Transfers{.chunk = bytes * mover.per_byte + mover.chunk,
                     .sum = bytes * std::max(of.ranks * mover.adding,
                                             (of.ranks + 1) * machine.pieces.memory_of(of.cached)),
                     .copied = mover.copied,
                     .places = std::max(1.0, machine.pieces.units - mover.units)};
  };
  const auto one_by_one = [&](const RuleMover& mover) {
    return std::max(machine.shift_per_byte, mover.per_byte / (of.ranks - 1));
  };
  const double whole = model.whole(machine.tiles);
  AnalyticTimes times;
  times.time.fill(std::numeric_limits<double>::infinity());
  times.degree.fill(1);
  for (std::size_t f = 0; f < kFamilies; ++f) {
    const Family& family = families()[f];
    double& time = times.time[f];
    if (family.division == Division::serial) {
      // A step of a ring passes on what came with the step before it.
      time = of.passes() * (of.bytes * machine.library_per_byte + (of.ranks - 1) * machine.chunk) +
             whole + machine.gap;
    } else if (family.division == Division::kernel) {
      if (!has_kernel(op)) continue;
      for (const RuleMover& mover : movers) {
        const double moved = (of.ranks - 1) * (of.bytes * one_by_one(mover) + mover.chunk);
        const double product =
            whole * machine.pieces.units / (machine.pieces.units - mover.units);
        time = std::min(time, std::max(moved + product / of.ranks, product));
      }
    } else if (family.division == Division::shards) {
      for (std::size_t i = 0; i < movers.size(); ++i) {
        const RuleMover& mover = movers[i];
        Transfers moved = transfers(mover, of.bytes);
        moved.chunk = of.bytes * one_by_one(mover) + mover.chunk;
        moved.sum *= 2 / of.ranks;  // they are added one by one, as they come
        const Steps steps{.family = family, .degree = of.ranks - 1};
        time = std::min(time, model.time(steps, moved, machine.tiles, own[i]));
      }
    } else {
      const double divided = family.division == Division::rows ? of.rows
                             : of.first                        ? of.depth
                                                               : of.columns;
      const auto with = [&](std::size_t i, std::int64_t degree, bool copies) {
        const double d = static_cast<double>(degree);
        const Steps steps{.family = family, .degree = d, .copies = copies, .streams = kStreams};
        return model.time(steps, transfers(movers[i], of.bytes / d), machine.tiles, own[i]);
      };
      // Copies join low chunks to tiles of a usual height.
      const bool may_copy = family.division == Division::rows && family.fused &&
                            !(family.hetero && of.sums) && of.rows < 2 * machine.tiles[0].m;
      for (std::size_t i = 0; i < movers.size(); ++i) {
        double least = std::numeric_limits<double>::infinity();
        for (const std::int64_t degree : kDegrees) {
          if (std::fmod(divided, static_cast<double>(degree)) != 0) break;
          double found = with(i, degree, false);
          if (may_copy) found = std::min(found, with(i, degree, true));
          if (found >= least) break;  // more steps cost more than they hide
          least = found;
          if (found >= time) continue;
          time = found;
          times.degree[f] = degree;
        }
      }
    }
  }
  return times;
}

Family parse_family(std::string_view text, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const Family& family : families()) {
    names.push_back(family.text());
    if (names.back() == text) return family;
  }
  throw Failure(fmt::format("'{}' is not a family of schedules", text), where,
                fmt::format("there are: {}", fmt::join(names, ", ")));
}

const std::vector<Rule>& shipped_rules() {
  static const std::vector<Rule> rules = [] {
    constexpr std::string_view kFolder = "data/rules/";
    std::vector<Rule> all;
    for (const EmbeddedFile& file : embedded_files()) {
      if (file.path.substr(0, kFolder.size()) == kFolder)
        all.push_back(Rule::parse(file.content, std::string(file.path)));
    }
    all.push_back(Rule::analytic());
    return all;
  }();
  return rules;
}

Rule Rule::analytic() {
  Rule rule;
  rule.name_ = "analytic";
  rule.factors_.fill(1);
  return rule;
}

Pick Rule::pick(const Operator& op, const RuleMachine& machine) const {
  if (!nodes_.empty()) return pick(features_of(op, machine));
  const AnalyticTimes times = analytic_times(op, machine);
  std::size_t least = 0;
  for (std::size_t i = 1; i < kFamilies; ++i) {
    if (times.time[i] * factors_[i] < times.time[least] * factors_[least]) least = i;
  }
  return {families()[least], times.degree[least]};
}

Pick Rule::pick(const Features& features) const {
  std::size_t at = 0;
  while (nodes_[at].feature != Feature::count) {
    const Node& node = nodes_[at];
    const bool below = features[static_cast<std::size_t>(node.feature)] < node.threshold;
    at = static_cast<std::size_t>(below ? node.below : node.above);
  }
  return nodes_[at].pick;
}

}  // namespace hemiola::explore
