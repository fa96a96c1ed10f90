#include "explore/space/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/template.h"

namespace hemiola::explore {
namespace {

std::int64_t rounded_up(std::int64_t value, std::int64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

std::string Family::text() const {
  switch (division) {
    case Division::serial:
      return "serial";
    case Division::shards:
      return "shards";
    case Division::kernel:
      return "fused kernel";
    case Division::rows:
    case Division::columns:
      return fmt::format("{} {} {}", division == Division::rows ? "1D" : "2D",
                         hetero ? "hetero" : "uniform", fused ? "fused" : "unfused");
  }
  return {};
}

const std::array<Family, kFamilies>& families() {
  static const std::array<Family, kFamilies> all = [] {
    std::array<Family, kFamilies> made{
        {{Division::serial}, {Division::shards}, {Division::kernel}}};
    std::size_t at = 3;
    for (const Division division : {Division::rows, Division::columns}) {
      for (const bool hetero : {false, true})
        for (const bool fused : {true, false}) made[at++] = {division, hetero, fused};
    }
    return made;
  }();
  return all;
}

std::string Schedule::text() const {
  if (family.division == Division::serial) return "serial";
  std::string text = family.text();
  if (family.in_steps()) text += fmt::format(", {} steps", degree);
  if (family.division == Division::rows && family.fused)
    text += copies ? ", by copies" : ", in place";
  if (streams > 1) text += fmt::format(", {} streams", streams);
  if (inner > 0) text += pulls ? ", inside nodes, then across" : ", across nodes, then inside";
  for (const auto& [name, value] : more) text += fmt::format(", {}={}", name, value);
  text += fmt::format(", {} by {}", pulls ? "pull" : "push", realization);
  if (workgroups > 0) text += fmt::format(" ({} workgroups)", workgroups);
  if (prelaunch) text += " (prelaunched)";
  return text + fmt::format(", tiles {}x{}", tile.m, tile.n);
}

Blocks blocks_of(const Operator& op) {
  const std::int64_t n = op.ranks;
  const std::int64_t m = op.gathers_b ? op.n : op.m;
  const std::int64_t columns = op.gathers_b ? op.m : op.n;
  const Bytes bytes{collective_size(op).count / n};
  switch (op.kind) {
    case OperatorKind::ag_gemm:
      return {m / n, columns / n, op.k, bytes};
    case OperatorKind::gemm_rs:
    case OperatorKind::gemm_ar:
      return {m / n, columns, op.k / n, bytes};
    case OperatorKind::a2a_gemm:
    case OperatorKind::gemm_a2a:
      return {m / n / n, columns, op.k, bytes};
  }
  return {};
}

std::int64_t steps_of(const Operator& op, const Schedule& schedule) {
  if (schedule.family.division == Division::shards) return op.ranks - 1;
  return schedule.degree;
}

std::string template_of(const Operator& op, const Schedule& schedule) {
  const std::string family(template_family(op.kind));
  switch (schedule.family.division) {
    case Division::serial:
      return family + "/serial";
    case Division::shards:
      return family + "/shards";
    case Division::rows:
    case Division::columns:
      return family + "/sequence";
    case Division::kernel:
      break;
  }
  switch (op.kind) {
    case OperatorKind::ag_gemm:
      return schedule.inner > 0 ? "ag-gemm/hierarchical" : "ag-gemm/swizzle";
    case OperatorKind::gemm_rs:
      return schedule.inner > 0 ? "gemm-rs/hierarchical" : "gemm-rs/direct";
    case OperatorKind::gemm_ar:
      return schedule.inner > 0 ? "gemm-ar/hierarchical" : "gemm-ar/nvls";
    case OperatorKind::a2a_gemm:
    case OperatorKind::gemm_a2a:
      break;
  }
  return {};
}

study::Settings parameters_of(const Operator& op, const Schedule& schedule,
                              const machine::Machine& machine) {
  study::Settings all = template_sizes(op);
  const auto add = [&all](const char* name, const auto& value) {
    all.emplace_back(name, fmt::format("{}", value));
  };
  const Family& family = schedule.family;
  add("tile_m", schedule.tile.m);
  add("tile_n", schedule.tile.n);
  add("tile_k", std::max<std::int64_t>(1, 128 / size_of(op.type)));
  if (family.has_own()) {
    add("own_tile_m", schedule.own_tile.m);
    add("own_tile_n", schedule.own_tile.n);
  }
  if (family.in_steps()) {
    add("degree", schedule.degree);
    add("axis",
        family.division == Division::rows ? "m" : (communicates_first(op.kind) ? "k" : "n"));
    add("steps", family.hetero ? "hetero" : "uniform");
    add("products", family.fused ? "fused" : "unfused");
    if (schedule.copies) add("placement", "copy");
    if (schedule.streams > 1) add("streams", schedule.streams);
  }
  const plan::TemplateInfo* info = plan::find_template(template_of(op, schedule));
  if (info != nullptr && info->parameter("transfer") != nullptr)
    add("transfer", schedule.pulls ? "pull" : "push");
  if (schedule.inner > 0) add("inner", schedule.inner);
  all.insert(all.end(), schedule.more.begin(), schedule.more.end());
  add("realization", schedule.realization);
  const bool adds_beside = family.division == Division::kernel && adds_up(op.kind) &&
                           schedule.realization == "copy-engine";
  const int workgroups = adds_beside ? kBesideEngines : schedule.workgroups;
  if (workgroups > 0) add("workgroups", workgroups);
  if (schedule.prelaunch) add("prelaunch", 1);
  if (family.division == Division::kernel) {
    // A persistent kernel has a workgroup on every compute unit that nobody else needs.
    const bool beside = adds_beside || (schedule.realization != "copy-engine" &&
                                        schedule.realization != "co-located");
    const auto units = static_cast<int>(machine.model(0).cu_count);
    add("compute_workgroups", std::max(1, units - (beside ? workgroups : 0)));
  }
  return all;
}

std::vector<Launch> launches_of(const Operator& op, const Schedule& schedule) {
  const Blocks blocks = blocks_of(op);
  const std::int64_t n = op.ranks;
  const Family& family = schedule.family;
  std::vector<Launch> all;
  const auto add = [&](std::int64_t count, std::int64_t blocks_each, std::int64_t rows,
                       std::int64_t columns, std::int64_t depth, bool adds, bool own) {
    if (count < 1) return;
    const Tile tile = own ? schedule.own_tile : schedule.tile;
    const auto within = [](int size, std::int64_t extent) {
      return static_cast<int>(std::min<std::int64_t>(std::max(1, size), extent));
    };
    const int tile_m = within(tile.m, rows);
    all.push_back({.shape = {.m = blocks_each * (blocks_each > 1 ? rounded_up(rows, tile_m) : rows),
                             .n = columns,
                             .k = depth,
                             .type = op.type,
                             .accumulate = adds},
                   .tile = {tile_m, within(tile.n, columns)},
                   .count = count,
                   .own = own});
  };
  switch (family.division) {
    case Division::serial:
    case Division::kernel:
      add(1, 1, blocks.rows * n, blocks.columns, blocks.depth, false, false);
      break;
    case Division::shards:
      add(1, 1, blocks.rows, blocks.columns, blocks.depth, false, true);
      add(n - 1, 1, blocks.rows, blocks.columns, blocks.depth, false, false);
      break;
    case Division::rows:
    case Division::columns: {
      const bool by_rows = family.division == Division::rows;
      const bool first = communicates_first(op.kind);
      const std::int64_t d = schedule.degree;
      const std::int64_t rows = by_rows ? blocks.rows / d : blocks.rows;
      const std::int64_t columns = !by_rows && !first ? blocks.columns / d : blocks.columns;
      const std::int64_t depth = !by_rows && first ? blocks.depth / d : blocks.depth;
      if (family.hetero) add(1, 1, blocks.rows, blocks.columns, blocks.depth, false, true);
      const std::int64_t of_step = family.hetero ? n - 1 : n;
      const std::int64_t launches = family.fused ? 1 : of_step;
      const std::int64_t each = family.fused ? of_step : 1;
      if (schedule.copies) {
        add(d, 1, each * rows, columns, depth, false, false);
      } else if (!by_rows && first) {
        add(launches, each, rows, columns, depth, false, false);
        add((d - 1) * launches, each, rows, columns, depth, true, false);
      } else {
        add(d * launches, each, rows, columns, depth, false, false);
      }
      break;
    }
  }
  return all;
}

}  // namespace hemiola::explore
