#include "explore/rules.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/embedded.h"
#include "explore/closed_form.h"
#include "machine/gemm_model.h"

namespace hemiola::explore {
namespace {

constexpr std::array<std::string_view, kFeatures> kNames{
    "ratio",       "op_to_byte",  "traffic",      "m_over_k", "m",     "n",    "k",    "waves",
    "block_waves", "chunk_share", "launch_share", "one_link", "first", "sums", "ranks"};

double ceil_div(double a, double b) {
  return std::ceil(a / b);
}

/// A product of `blocks` times rows x columns x depth.
double product_time(const RuleMachine& machine, double bytes, double blocks, double rows,
                    double columns, double depth, bool adds) {
  double best = 0;
  const double steps = depth * bytes / 128;
  for (const Tile& tile : machine.tiles) {
    if (tile.m == 0) break;
    const double tm = std::min<double>(tile.m, rows), tn = std::min<double>(tile.n, columns);
    const double tiles = blocks * ceil_div(rows, tm) * ceil_div(columns, tn);
    const double waves = std::ceil(tiles / machine.units);
    const double compute = 2 * tm * tn * depth / machine.flop_rate + steps * machine.step;
    const double load =
        steps * (tm + tn) * 128 * std::min(tiles, machine.units) * machine.l2_per_byte;
    const double store = tm * tn * bytes * machine.store_per_byte * (adds ? 2 : 1);
    const double time = waves * (std::max(compute, load) + store);
    if (best == 0 || time < best) best = time;
  }
  const double flop = 2 * blocks * rows * columns * depth;
  const double memory =
      bytes * (blocks * rows * depth + columns * depth + blocks * rows * columns * (adds ? 2 : 1)) *
      machine.hbm_per_byte;
  return std::max({best, flop / machine.sustained, memory}) + machine.launch;
}

/// As blocks_of(), for arithmetic.
struct RuleBlock {
  double rows, columns, depth;
  double bytes;  ///< that one rank sends to one other: in an all-reduce twice, sums and results
};

RuleBlock block_of(const Operator& op) {
  const Blocks blocks = blocks_of(op);
  const double times = op.kind == OperatorKind::gemm_ar ? 2 : 1;
  return {static_cast<double>(blocks.rows), static_cast<double>(blocks.columns),
          static_cast<double>(blocks.depth), times * static_cast<double>(blocks.bytes.count)};
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
  rule.link_per_byte = all.port;
  rule.shift_per_byte = shift.port;
  rule.chunk = static_cast<double>(fabric.handover(fabric.way(0, 1)).fs);
  rule.units = static_cast<double>(model.cu_count);
  constexpr std::int64_t kDepth = 4096;
  const std::int64_t deep = machine::gemm_tile_time(model, {128, 128}, kDepth, type).fs;
  const double clock = static_cast<double>(model.gemm_clock.hertz) / 1e15;  // cycles per fs
  const double rate = static_cast<double>(machine::matrix_rate(model, type));
  rule.flop_rate = rate * clock;
  const double steps = static_cast<double>(kDepth * size_of(type)) / 128;
  rule.step = std::max(
      0.0, (static_cast<double>(deep) - 2.0 * 128 * 128 * kDepth / rule.flop_rate) / steps);
  constexpr std::int64_t kFlop = 1'000'000'000'000;
  rule.sustained =
      static_cast<double>(kFlop) / static_cast<double>(std::max<std::int64_t>(
                                       1, machine::gemm_sustained_time(model, kFlop, type).fs));
  rule.l2_per_byte = fs_per_byte(model.gemm_l2_rate);
  rule.store_per_byte =
      static_cast<double>(machine::gemm_epilogue_time(model, {128, 128}, type).fs) /
      (128.0 * 128 * size_of(type));
  rule.hbm_per_byte = fs_per_byte(model.hbm_rate);
  const double under_way = static_cast<double>(model.cu_max_outstanding * model.line_size.count) *
                           std::max(1.0, rule.units / 8);
  rule.sum_per_byte = std::max(
      rule.hbm_per_byte, static_cast<double>((fabric.load(0) + model.hbm_latency).fs) / under_way);
  rule.launch = static_cast<double>(
      (model.dispatch_latency + model.launch_end_latency + model.gemm_setup).fs);
  rule.gap = static_cast<double>(model.launch_stream_interval.fs);
  std::vector<Tile> tiles = model.gemm_tiles;
  std::stable_sort(tiles.begin(), tiles.end(),
                   [](const Tile& a, const Tile& b) { return a.m * a.n > b.m * b.n; });
  // The largest, the one in the middle, and the smallest of those that are not thin.
  std::vector<Tile> square;
  for (const Tile& tile : tiles) {
    if (tile.m <= 2 * tile.n && tile.n <= 2 * tile.m) square.push_back(tile);
  }
  if (square.empty()) square.push_back({128, 128});
  rule.tiles = {square.front(), square[square.size() / 2], square.back()};
  return rule;
}

Features features_of(const Operator& op, const RuleMachine& machine) {
  const machine::GemmShape local = local_product(op);
  const RuleBlock block = block_of(op);
  const double m = static_cast<double>(local.m), n = static_cast<double>(local.n),
               k = static_cast<double>(local.k), bytes = size_of(op.type);
  const double traffic = bytes * (m * k + n * k + m * n);
  const double product = product_time(machine, bytes, 1, m, n, k, false);
  const double moved = block.bytes * machine.link_per_byte;
  const Tile& tile = machine.tiles[0];
  const auto waves = [&](double rows, double columns) {
    return ceil_div(rows, tile.m) * ceil_div(columns, tile.n) / machine.units;
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
  set(Feature::block_waves, waves(block.rows, block.columns));
  set(Feature::chunk_share, machine.chunk / std::max(1.0, moved));
  set(Feature::launch_share, (machine.launch + machine.gap) / product);
  set(Feature::one_link, machine.shift_per_byte * (op.ranks - 1) / machine.link_per_byte);
  set(Feature::first, communicates_first(op.kind) ? 1 : 0);
  set(Feature::sums, adds_up(op.kind) ? 1 : 0);
  set(Feature::ranks, op.ranks);
  return all;
}

AnalyticTimes analytic_times(const Operator& op, const RuleMachine& machine) {
  const RuleBlock block = block_of(op);
  const double n = op.ranks, bytes = size_of(op.type);
  const bool first = communicates_first(op.kind);
  const auto product = [&](double blocks, double rows, double columns, double depth, bool adds) {
    return product_time(machine, bytes, blocks, rows, columns, depth, adds);
  };
  AnalyticTimes times;
  times.time.fill(std::numeric_limits<double>::infinity());
  times.degree.fill(1);
  const auto offer = [&](double time, std::size_t family, std::int64_t degree) {
    if (time >= times.time[family]) return;
    times.time[family] = time;
    times.degree[family] = degree;
  };
  // As families() has them.
  constexpr std::size_t kSerial = 0, kShards = 1, kRows = 3, kColumns = 7;
  constexpr std::size_t kUniformFused = 0, kUniformUnfused = 1, kHeteroFused = 2,
                        kHeteroUnfused = 3;
  const double moved = block.bytes * machine.link_per_byte;
  const double whole = product(1, block.rows * n, block.columns, block.depth, false);
  const double own = product(1, block.rows, block.columns, block.depth, false);
  // A library's kernel is launched as well.
  offer(moved + whole + machine.gap + 2 * machine.chunk, kSerial, 1);
  const double block_sum =
      adds_up(op.kind) ? block.rows * block.columns * bytes * (n + 1) * machine.sum_per_byte : 0;
  const auto pipeline = [&](std::int64_t steps, double chunk, double each, double own_time) {
    const double sum = block_sum / static_cast<double>(steps);
    const double more = static_cast<double>(steps - 1) * std::max({chunk, each, sum});
    return first
               ? std::max(chunk, own_time) + more + each
               : std::max(each + more + chunk + sum, static_cast<double>(steps) * each + own_time);
  };
  const double shift = block.bytes * machine.shift_per_byte + machine.chunk;
  offer(pipeline(op.ranks - 1, shift, own + machine.gap, own), kShards, 1);
  for (const bool by_rows : {true, false}) {
    const std::size_t of_division = by_rows ? kRows : kColumns;
    for (const std::int64_t degree : {2, 4, 8}) {
      const double d = static_cast<double>(degree), chunk = moved / d + machine.chunk;
      const double rows = by_rows ? block.rows / d : block.rows;
      const double columns = !by_rows && !first ? block.columns / d : block.columns;
      const double depth = !by_rows && first ? block.depth / d : block.depth;
      const bool adds = !by_rows && first;
      const double uniform = product(n, rows, columns, depth, adds) + machine.gap;
      const double others = product(n - 1, rows, columns, depth, adds) + machine.gap;
      // Products of blocks on four streams fill each other's waves.
      const double four = product(4, rows, columns, depth, adds) + machine.gap;
      offer(pipeline(degree, chunk, uniform, 0), of_division + kUniformFused, degree);
      offer(pipeline(degree, chunk, others, own), of_division + kHeteroFused, degree);
      offer(pipeline(degree, chunk, std::ceil(n / 4) * four, 0), of_division + kUniformUnfused,
            degree);
      offer(pipeline(degree, chunk, std::ceil((n - 1) / 4) * four, own),
            of_division + kHeteroUnfused, degree);
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
