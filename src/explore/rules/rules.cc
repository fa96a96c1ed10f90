#include "explore/rules/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/embedded.h"
#include "core/part_call.h"
#include "explore/rules/closed_form.h"
#include "explore/rules/overlap_model.h"
#include "hemiola/parts/registry.h"
#include "plan/fabric.h"
#include "program/kernels/rccl_tuner.h"

namespace hemiola::explore {
namespace {

constexpr std::array<std::string_view, kFeatures> kNames{
    "ratio",       "op_to_byte",  "traffic",      "m_over_k", "m",     "n",    "k",    "waves",
    "block_waves", "chunk_share", "launch_share", "one_link", "first", "sums", "ranks"};

constexpr std::array<std::int64_t, 4> kDegrees{2, 4, 8, 16};
/// More steps may be faster again where those before were slower by no more: waves are whole.
constexpr double kWorse = 1.05;
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
    per_byte =
        std::max(per_byte, trip / static_cast<double>(model.cu_max_stores * model.line_size.count));
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
  const double latency = static_cast<double>((fabric.load(0) + model.hbm_latency).fs);
  const double rate = batch_of_workgroup(model) / std::max(1.0, latency);
  const double port = std::max(fs_per_byte(model.noc_cu_rate), fs_per_byte(model.noc_cu_out_rate));
  return port > 0 ? std::min(rate, 1 / port) : rate;
}

/// Of each area the tile that is the most square, the largest first.
std::array<Tile, 4> tiles_of_rules(const machine::GpuModel& model) {
  std::vector<Tile> tiles;
  for (const Tile& tile : model.gemm_tiles)
    if (tile.m <= 2 * tile.n && tile.n <= 2 * tile.m) tiles.push_back(tile);
  if (tiles.empty()) tiles.push_back({128, 128});
  std::ranges::stable_sort(tiles,
                           [](const Tile& a, const Tile& b) { return a.m * a.n > b.m * b.n; });
  tiles.erase(std::unique(tiles.begin(), tiles.end(),
                          [](const Tile& a, const Tile& b) { return a.m * a.n == b.m * b.n; }),
              tiles.end());
  std::array<Tile, 4> chosen{};
  for (std::size_t i = 0; i < chosen.size(); ++i) chosen[i] = tiles[std::min(i, tiles.size() - 1)];
  return chosen;
}

/// Whether one persistent kernel is a schedule of the operator.
bool has_kernel(const Operator& op, const RuleMachine& machine) {
  return op.kind == OperatorKind::ag_gemm || op.kind == OperatorKind::gemm_rs ||
         (op.kind == OperatorKind::gemm_ar && (machine.multicasts || machine.nodes > 1));
}

/// Full meshes of 4 and of 6 have no cycles through all nodes that use every link once (Tillson,
/// 1980): rings of a library leave one of a node's ways out there.
double ways_of_rings(double peers) {
  return peers == 3 || peers == 5 ? peers - 1 : peers;
}

}  // namespace

std::string_view name_of(Feature feature) {
  return kNames[index(feature)];
}

RuleMachine RuleMachine::of(const machine::Machine& machine, DataType type) {
  const machine::GpuModel& model = machine.model(0);
  plan::Fabric fabric(machine);
  const ClosedForm::Rates all = ClosedForm::rates(fabric, false);
  const ClosedForm::Rates shift = ClosedForm::rates(fabric, true);
  RuleMachine rule;
  const double peers = machine.ranks() - 1;
  rule.link_per_byte = all.lines;
  // What a library exchanges keeps in step.
  const double meeting = ClosedForm::meeting(machine);
  rule.one_link = peers * shift.port * meeting / std::max(all.port, 1e-9);
  rule.library_per_byte =
      all.lines / meeting * (rule.one_link > 1.5 ? peers / ways_of_rings(peers) : 1);
  rule.exchange_per_byte = rule.library_per_byte;
  const ClosedForm::Levels levels = ClosedForm::levels(fabric);
  const double copies = levels.copies();
  if (levels.groups > 1) {
    rule.nodes = levels.groups;
    rule.across_per_byte = levels.across.bursts;
    rule.across_chunk = static_cast<double>(levels.crossing.fs);
    rule.exchange_per_byte = all.bursts / meeting;  // NICs send packets of many lines
    // Rings through a node leave it by every NIC, with a part of all blocks but one.
    rule.library_per_byte = std::max(
        levels.inside.lines, levels.across.bursts / (levels.groups - 1) * peers / levels.inner);
  }
  const Time handover = fabric.handover(fabric.way(0, 1));
  const Time crossing = fabric.crossing(fabric.way(0, 1));
  rule.chunk = static_cast<double>(handover.fs);
  rule.around_switch = explore::around_switch(handover, crossing);
  // RCCL has no such lines within a node.
  constexpr double kShareOfData = 120.0 / 128;
  if (program::rccl_model(&machine) == nullptr)
    rule.flagged_per_byte = rule.library_per_byte / kShareOfData;
  rule.hop = static_cast<double>((crossing + 2 * fabric.load(0) + model.hbm_latency).fs);
  rule.gap = static_cast<double>(model.launch_stream_interval.fs);
  rule.multicasts = multicasts_to_all(machine);
  rule.pieces = PieceModel::of(model, type);
  const std::array<Tile, 4> tiles = tiles_of_rules(model);
  for (const bool cached : {false, true})
    for (std::size_t i = 0; i < tiles.size(); ++i)
      rule.tiles[cached ? 1 : 0][i] = rule.pieces.terms(tiles[i].m, tiles[i].n, cached);
  const double each = per_byte_of_workgroup(model, fabric);
  const double copying = 1 / copy_rate(model, fabric);
  for (std::size_t i = 0; i < 2; ++i) {
    const double half = i == 0 ? 1 : 2;
    const double moving = workgroups_of(model, peers, 2 / half);
    rule.moves[i] = {.per_byte = std::max(all.lines, each * peers / moving),
                     .chunk = rule.chunk,
                     .units = moving,
                     .copied = copying * peers / moving};
    // Half of them move and half add up.
    const double summing = workgroups_of(model, peers + 2, 8) / half;
    rule.sums[i] = {.per_byte = std::max(all.lines, each * 2 * (peers + 2) / summing),
                    .chunk = rule.chunk,
                    .units = summing,
                    .adding = 2 * rule.pieces.read_by_workgroup(false) / summing,
                    .copied = copying * 2 * (peers + 2) / summing};
  }
  rule.moves[2] = rule.moves[0];
  rule.sums[2] = rule.sums[0];
  for (auto* movers : {&rule.moves, &rule.sums}) {
    for (RuleMover& mover : *movers) {
      mover.shift = std::max(shift.lines, mover.per_byte / peers);
      // A stream goes across nodes, one inside; sums are one stream.
      const double streams = movers == &rule.moves ? 2 : 1;
      if (copies > 0)
        mover.inside = std::max(levels.inside.lines / copies, streams * each / mover.units);
    }
  }
  if (model.dma_engines == 0) return rule;
  // Bursts have fewer headers than lines.
  const double of_engine = ceil_div(peers, static_cast<double>(model.dma_engines));
  rule.moves[2] = {.per_byte = std::max(all.bursts, of_engine * fs_per_byte(model.dma_rate)),
                   .shift = std::max(shift.bursts, fs_per_byte(model.dma_rate)),
                   .inside = std::max(copies > 0 ? levels.inside.bursts / copies : 0,
                                      fs_per_byte(model.dma_rate)),
                   .chunk = rule.chunk + of_engine * static_cast<double>(model.dma_sync_latency.fs),
                   .engine = of_engine * fs_per_byte(model.dma_rate),
                   .row = of_engine * static_cast<double>(model.dma_row_time.fs),
                   .copied = fs_per_byte(model.dma_rate)};
  rule.sums[2] = rule.moves[2];
  rule.sums[2].units = kBesideEngines;
  rule.sums[2].adding = rule.pieces.read_by_workgroup(false) / kBesideEngines;
  return rule;
}

Features features_of(const Operator& op, const RuleMachine& machine) {
  const machine::GemmShape local = local_product(op);
  const OverlapCase of = OverlapCase::of(op, machine.pieces);
  const double m = static_cast<double>(local.m), n = static_cast<double>(local.n),
               k = static_cast<double>(local.k), bytes = size_of(op.type);
  const double traffic = bytes * (m * k + n * k + m * n);
  const auto& tiles = machine.tiles[of.cached ? 1 : 0];
  const double product = OverlapModel(machine.pieces, of, tiles).whole();
  const double moved = of.bytes * of.passes() * machine.link_per_byte;
  const auto waves = [&](double rows, double columns) {
    return ceil_div(rows, tiles[0].high) * ceil_div(columns, tiles[0].wide) / machine.pieces.units;
  };
  Features all{};
  const auto set = [&all](Feature feature, double value) { all[index(feature)] = value; };
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
  set(Feature::one_link, machine.one_link);
  set(Feature::first, communicates_first(op.kind) ? 1 : 0);
  set(Feature::sums, adds_up(op.kind) ? 1 : 0);
  set(Feature::ranks, op.ranks);
  return all;
}

namespace {

/// The closed form of an operator, asked family by family.
class Analysis {
 public:
  Analysis(const Operator& op, const RuleMachine& machine)
      : op_(op),
        machine_(machine),
        of_(OverlapCase::of(op, machine.pieces)),
        model_(machine.pieces, of_, machine.tiles[of_.cached ? 1 : 0]) {
    whole_ = model_.whole();
    double least = std::numeric_limits<double>::infinity();
    for (const RuleMover& mover : of_.sums ? machine.sums : machine.moves) {
      const Transfers all = transfers_of(mover);
      const double time = about(mover, all);
      if (time >= least) continue;
      least = time;
      mover_ = mover;
      all_ = all;
    }
    all_.beside = model_.beside(all_.chunk);
    own_ = model_.block(all_.places);
  }

  AnalyticTimes times() const {
    AnalyticTimes times;
    times.time.fill(std::numeric_limits<double>::infinity());
    times.degree.fill(1);
    times.time[kSerial] = serial();
    if (op_.kind != OperatorKind::gemm_ar) times.time[kShards] = shards();
    if (has_kernel(op_, machine_)) times.time[kKernel] = kernel();
    steps(Division::rows, kRows, times);
    steps(Division::columns, kColumns, times);
    return times;
  }

 private:
  // As families() has them; of rows and columns uniform and hetero, fused and unfused.
  static constexpr std::size_t kSerial = 0, kShards = 1, kKernel = 2, kRows = 3, kColumns = 7;
  static constexpr std::size_t kUnfused = 1, kHetero = 2;

  /// A step of a ring passes on what came with the step before it, chunks with a flag behind each
  /// or, where these are short, lines with flags in them (LL128).
  double serial() const {
    const bool exchanges = collective_of(op_.kind) == Collective::all_to_all;
    const double simple =
        of_.bytes * (exchanges ? machine_.exchange_per_byte : machine_.library_per_byte) +
        (of_.ranks - 1) * machine_.chunk;
    const double flagged =
        machine_.flagged_per_byte > 0 && !exchanges
            ? of_.bytes * machine_.flagged_per_byte + (of_.ranks - 1) * machine_.hop
            : simple;
    return of_.passes() * std::min(simple, flagged) + whole_ + machine_.gap;
  }

  /// All steps together.
  Transfers transfers_of(const RuleMover& mover) const {
    return {.chunk = of_.bytes * mover.per_byte,
            .sum = of_.bytes * std::max(of_.ranks * mover.adding,
                                        (of_.ranks + 1) * machine_.pieces.memory_of(of_.cached)),
            .copied = mover.copied,
            .places = std::max(1.0, machine_.pieces.units - mover.units)};
  }

  /// In a few steps: the longest of what goes on at the same time, and a part of the others.
  double about(const RuleMover& mover, const Transfers& all) const {
    constexpr double kSteps = 4;
    const double product = whole_ * machine_.pieces.units / all.places;
    const double moved = of_.passes() * (all.chunk + kSteps * mover.chunk);
    const double sums = of_.sums ? all.sum : 0;
    const double longest = std::max({product, moved, sums});
    return longest + (product + moved + sums - longest) / kSteps;
  }

  double kernel() const {
    if (of_.for_all && machine_.multicasts)
      return model_.multicast_kernel(machine_.pieces.units - kBesideSwitch, machine_.link_per_byte,
                                     machine_.around_switch);
    if (machine_.nodes > 1) return kernel_across_nodes();
    const double places = std::max(1.0, machine_.pieces.units - mover_.units);
    const double chunk = of_.bytes * mover_.shift + mover_.chunk;
    // Of one peer, as it comes, with the own sum so far.
    const double sum = of_.sums ? of_.bytes * std::max(2 * mover_.adding,
                                                       3 * machine_.pieces.memory_of(of_.cached))
                                : 0;
    return model_.kernel(places, chunk, sum);
  }

  /// Blocks go to one GPU of every other node, and from there to the others of it; or the sums of
  /// a node go to one GPU there. Engines add nothing up.
  double kernel_across_nodes() const {
    const double across =
        of_.bytes * machine_.across_per_byte + (machine_.nodes - 1) * machine_.across_chunk;
    double least = std::numeric_limits<double>::infinity();
    for (const RuleMover& mover : of_.sums ? machine_.sums : machine_.moves) {
      if (of_.sums && mover.engine > 0) continue;
      const double inside = of_.bytes * mover.inside + mover.chunk;
      const double places = std::max(1.0, machine_.pieces.units - mover.units);
      least = std::min(least, model_.kernel_across_nodes(places, machine_.nodes, across, inside));
    }
    return least;
  }

  double shards() const {
    const Steps steps{.family = families()[kShards], .degree = of_.ranks - 1};
    Transfers transfers = all_;
    transfers.chunk = of_.bytes * mover_.shift + mover_.chunk;
    transfers.sum *= 2 / of_.ranks;  // they are added one by one, as they come
    // Where transfers are much longer, as on a mesh, which has a link for each peer, tiles do not
    // matter.
    const double moved = (of_.ranks - 1) * transfers.chunk;
    if (transfers.chunk > 2 * own_) return moved + own_ + (of_.sums ? transfers.sum : 0);
    return model_.time(steps, transfers, model_.step(steps, transfers), own_);
  }

  Steps steps_of(std::size_t family, std::int64_t degree, bool copies) const {
    return {.family = families()[family],
            .degree = static_cast<double>(degree),
            .copies = copies,
            .streams = kStreams};
  }

  /// With the best of so many tiles from `tile` on, which is told.
  double ask(AnalyticTimes& times, std::size_t family, std::int64_t degree, bool copies,
             std::size_t& tile, std::size_t most = 99) const {
    const Steps steps = steps_of(family, degree, copies);
    Transfers transfers = all_;
    transfers.chunk *= steps.per_degree;
    if (steps.family.division == Division::columns)
      transfers.chunk = std::max(
          transfers.chunk, of_.bytes * steps.per_degree * mover_.engine + of_.rows * mover_.row);
    transfers.chunk += mover_.chunk;
    transfers.sum *= steps.per_degree;
    const OverlapModel::Step step = model_.step(steps, transfers, tile, most);
    tile = step.tile;
    const double time = model_.time(steps, transfers, step, own_);
    if (time < times.time[family]) {
      times.time[family] = time;
      times.degree[family] = degree;
    }
    return time;
  }

  /// All families of a division. Tiles and steps of the plainest one, uniform and fused, are nearly
  /// those of the others: these are asked with as many steps and fewer.
  void steps(Division division, std::size_t first, AnalyticTimes& times) const {
    const bool by_rows = division == Division::rows;
    const auto divided = static_cast<std::int64_t>(by_rows     ? of_.rows
                                                   : of_.first ? of_.depth
                                                               : of_.columns);
    // Copies join low chunks to tiles of a usual height.
    const bool may_copy = by_rows && of_.rows < 2 * machine_.tiles[0][0].high;
    std::array<std::size_t, kDegrees.size()> tiles{};
    std::size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < kDegrees.size(); ++i) {
      const std::int64_t degree = kDegrees[i];
      if (divided % degree != 0) break;
      // Smaller pieces have no larger tiles.
      tiles[i] = i == 0 ? 0 : tiles[i - 1];
      double found = ask(times, first, degree, false, tiles[i], i == 0 ? 99 : 2);
      if (may_copy) {
        std::size_t tile = 0;
        found = std::min(found, ask(times, first, degree, true, tile));
      }
      if (found > kWorse * least) break;
      if (found >= least) continue;
      least = found;
      best = i;
    }
    if (least == std::numeric_limits<double>::infinity()) return;
    const std::size_t half = best > 0 ? best - 1 : 0;
    for (std::size_t i = half; i <= best; ++i) {
      std::size_t tile = tiles[i];
      ask(times, first + kHetero, kDegrees[i], false, tile, 2);
      if (may_copy && !of_.sums) ask(times, first + kHetero, kDegrees[i], true, tile = 0);
    }
    // Pieces of one block are small, and have the tile that is best for one of them alone.
    Steps alone = steps_of(first + kUnfused, kDegrees[half], false);
    alone.streams = 1;
    std::size_t tile = model_.step(alone, all_, tiles[half], 3).tile;
    ask(times, first + kUnfused, kDegrees[half], false, tile, 1);
    ask(times, first + kHetero + kUnfused, kDegrees[half], false, tile, 1);
  }

  const Operator& op_;
  const RuleMachine& machine_;
  const OverlapCase of_;
  const OverlapModel model_;
  double whole_ = 0, own_ = 0;
  RuleMover mover_{};  ///< the best, by about()
  Transfers all_{};    ///< of all steps together
};

}  // namespace

AnalyticTimes analytic_times(const Operator& op, const RuleMachine& machine) {
  return Analysis(op, machine).times();
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
    for (const EmbeddedFile& file : embedded_files())
      if (file.path.substr(0, kFolder.size()) == kFolder)
        all.push_back(Rule::parse(file.content, std::string(file.path)));
    all.push_back(Rule::analytic());
    return all;
  }();
  return rules;
}

void register_parts(parts::Registry& registry) {
  for (const Rule& rule : shipped_rules()) {
    const bool is_analytic = rule.name() == "analytic";
    registry.add(ScheduleRule{
        .name = rule.name(),
        .description = is_analytic      ? "the family that the closed form says is the fastest"
                       : rule.is_tree() ? "a tree of thresholds of features"
                                        : "the closed form, with a factor for each family",
        .source = is_analytic ? "docs/explore.md, rules" : "data/rules/" + rule.name() + ".rule",
        .pick = [&rule](const Operator& op, const RuleMachine& machine) {
          return rule.pick(op, machine);
        }});
  }
}

std::vector<std::pair<std::string, Pick>> picks_of(const parts::Registry* parts, const Operator& op,
                                                   const RuleMachine& machine) {
  static const parts::Registry built_ins{register_parts};
  std::vector<std::pair<std::string, Pick>> picks;
  for (const ScheduleRule& rule : (parts != nullptr ? *parts : built_ins).rules()) {
    const Pick pick =
        call_part("rule '" + rule.name + "'", {}, [&] { return rule.pick(op, machine); });
    if (std::ranges::find(families(), pick.family) == families().end() || pick.degree < 1)
      throw Failure(fmt::format("rule '{}' picks '{}' in {} steps, which no schedule has",
                                rule.name, pick.family.text(), pick.degree));
    picks.emplace_back(rule.name, pick);
  }
  return picks;
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
  for (std::size_t i = 1; i < kFamilies; ++i)
    if (times.time[i] * factors_[i] < times.time[least] * factors_[least]) least = i;
  return {families()[least], times.degree[least]};
}

Pick Rule::pick(const Features& features) const {
  std::size_t at = 0;
  while (nodes_[at].feature != Feature::count) {
    const Node& node = nodes_[at];
    const bool below = features[index(node.feature)] < node.threshold;
    at = index(below ? node.below : node.above);
  }
  return nodes_[at].pick;
}

}  // namespace hemiola::explore
