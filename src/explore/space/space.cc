// Which schedules there are for an operator on a machine.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "explore/space/schedule.h"
#include "plan/fabric.h"
#include "plan/template.h"

namespace hemiola::explore {
namespace {

const SourceLocation kRealization{.file = "--realization"};

/// Who moves data, and with how many workgroups.
struct Mover {
  std::string realization;
  int workgroups = 0;
  bool prelaunch = false;
};

bool has(const std::vector<std::string>& list, const std::string& value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

class Space {
 public:
  Space(const Operator& op, const machine::Machine& machine, const SpaceLimits& limits)
      : op_(op), machine_(machine), limits_(limits) {
    realizations_ = limits.realizations;
    if (realizations_.empty()) {
      realizations_ = {"load-store"};
      if (has_copy_engines(machine)) realizations_.push_back("copy-engine");
      if (multicasts_to_all(machine)) realizations_.push_back("multicast");
    }
    check();
  }

  std::vector<Schedule> all() {
    for (const Family& family : families()) {
      if (family.division == Division::serial || !has_template(family)) continue;
      if (family.division == Division::shards)
        add_shards(family);
      else if (family.division == Division::kernel)
        add_kernels(family);
      else
        add_sequences(family);
    }
    if (schedules_.empty())
      throw Failure("nothing is left to explore for " + text_of(op_), kRealization,
                    "allow more with --realization, --place, --transfer and --degrees");
    return std::move(schedules_);
  }

 private:
  void check() const {
    for (const std::string& name : realizations_) {
      if (name == "multicast" && !multicasts_to_all(machine_))
        throw Failure(fmt::format("no switch of {} multicasts to all its GPUs", machine_.name),
                      kRealization, "choose load-store or copy-engine");
      if (name == "copy-engine" && !has_copy_engines(machine_))
        throw Failure(fmt::format("the GPUs of {} have no copy engines (gpu.dma.engines is 0)",
                                  machine_.name),
                      kRealization, "choose load-store or bulk");
    }
  }

  bool has_template(const Family& family) const {
    const std::string name = template_of(op_, {.family = family});
    return !name.empty() && plan::find_template(name) != nullptr;
  }

  /// `streams` of transfers, each of which needs a workgroup of its own.
  std::vector<Mover> movers(int streams, bool computes_in_kernel, bool pulls) const {
    std::vector<Mover> all;
    for (const std::string& name : realizations_) {
      if (name == "multicast" && (!computes_in_kernel || adds_up(op_.kind))) continue;
      // A copy engine adds nothing up: what it pulls would have to be added as it comes.
      if (name == "copy-engine" && computes_in_kernel && pulls && adds_up(op_.kind)) continue;
      if (name == "copy-engine") {
        for (const bool prelaunch : {false, true})
          if (has(limits_.places, "own") &&
              has(limits_.copies, prelaunch ? "prelaunched" : "in-time"))
            all.push_back({name, 0, prelaunch});
        continue;
      }
      const auto units = static_cast<int>(machine_.model(0).cu_count);
      for (const int each : {1, 2, 4, 8}) {
        const int workgroups = streams * each;
        if (has(limits_.places, "own") && workgroups * 2 <= units)
          all.push_back({name, workgroups});
      }
    }
    if (computes_in_kernel && has(limits_.places, "co-located") && has(realizations_, "load-store"))
      all.push_back({"co-located", 0});
    return all;
  }

  std::vector<bool> directions() const {
    std::vector<bool> pulls;
    if (has(limits_.transfers, "push")) pulls.push_back(false);
    if (has(limits_.transfers, "pull")) pulls.push_back(true);
    return pulls;
  }

  /// The best tiles of a schedule's products.
  std::vector<Tile> tiles(const Schedule& schedule, bool own) {
    const std::vector<Launch> launches = launches_of(op_, schedule);
    for (const Launch& launch : launches)
      if (launch.own == own) return best_tiles(launch.shape, rows_of_block(schedule, own));
    return {Tile{128, 128}};
  }

  /// Rows that lie together, beyond which a tile does not go.
  std::int64_t rows_of_block(const Schedule& schedule, bool own) const {
    Schedule one = schedule;
    one.tile = one.own_tile = {1, 1};
    if (!schedule.copies && schedule.family.fused) one.family.fused = false;
    for (const Launch& launch : launches_of(op_, one))
      if (launch.own == own) return launch.shape.m;
    return 1;
  }

  std::vector<Tile> best_tiles(const machine::GemmShape& shape, std::int64_t rows) {
    const auto key = std::tuple(shape.m, shape.n, shape.k, shape.accumulate, rows);
    const auto known = tiles_.find(key);
    if (known != tiles_.end()) return known->second;
    return tiles_[key] = explore::best_tiles(machine_.model(0), shape, rows);
  }

  /// The schedule with each of the tiles.
  void add_with_tiles(Schedule schedule) {
    // Sizes of launches depend on tiles by padding only: those of one row pad nothing.
    schedule.tile = schedule.own_tile = {1, 1};
    const std::vector<Tile> of_steps = tiles(schedule, false);
    const Tile of_own = schedule.family.has_own() ? tiles(schedule, true).front() : Tile{};
    for (const Tile& tile : of_steps) {
      schedule.tile = tile;
      schedule.own_tile = of_own;
      schedules_.push_back(schedule);
    }
  }

  void add_moved(Schedule schedule, int streams, bool computes_in_kernel) {
    for (const bool pulls : directions()) {
      for (const Mover& mover : movers(streams, computes_in_kernel, pulls)) {
        schedule.pulls = pulls;
        schedule.realization = mover.realization;
        schedule.workgroups = mover.workgroups;
        schedule.prelaunch = mover.prelaunch;
        add_with_tiles(schedule);
      }
    }
  }

  void add_shards(const Family& family) { add_moved({.family = family}, 1, false); }

  void add_kernels(const Family& family) {
    const std::string name = template_of(op_, {.family = family});
    const plan::TemplateInfo* info = plan::find_template(name);
    for (const std::int64_t split : {1, 2, 4}) {
      Schedule schedule{.family = family};
      if (split > 1) schedule.more = {{"split", std::to_string(split)}};
      if (split > 1 && info->parameter("split") == nullptr) continue;
      if (op_.kind == OperatorKind::gemm_ar) {
        if (has(realizations_, "multicast") && multicasts_to_all(machine_)) {
          schedule.realization = "multicast";
          schedule.workgroups = kBesideSwitch;
          add_with_tiles(schedule);
        }
      } else {
        add_moved(schedule, op_.ranks - 1, true);
      }
      add_across_nodes(std::move(schedule));
    }
  }

  /// What goes to every GPU of another node, or comes from there, by itself takes the NICs as
  /// often. Sums are formed inside a node as they are pulled, and one of each crosses.
  void add_across_nodes(Schedule schedule) {
    schedule.inner = ranks_of_node(machine_);
    schedule.pulls = adds_up(op_.kind);
    if (schedule.inner == 0 || !has(limits_.transfers, schedule.pulls ? "pull" : "push")) return;
    for (const Mover& mover : movers(static_cast<int>(schedule.inner), true, schedule.pulls)) {
      if (mover.realization == "multicast" || mover.realization == "co-located") continue;
      schedule.realization = mover.realization;
      schedule.workgroups = mover.workgroups;
      schedule.prelaunch = mover.prelaunch;
      add_with_tiles(schedule);
    }
  }

  void add_sequences(const Family& family) {
    const bool by_rows = family.division == Division::rows;
    for (const std::int64_t degree : limits_.degrees) {
      if (!divides(family, degree)) continue;
      for (const bool copies : {false, true}) {
        if (copies && !(by_rows && family.fused)) continue;
        // What a plan promises of sums has one place on all ranks (docs/plans.md).
        if (copies && family.hetero && adds_up(op_.kind)) continue;
        for (const std::int64_t streams : {1, 2, 4}) {
          if (streams > 1 && family.fused) continue;
          add_moved({.family = family, .degree = degree, .copies = copies, .streams = streams},
                    op_.ranks - 1 + (copies || !communicates_first(op_.kind) ? 2 : 1), false);
        }
      }
    }
  }

  /// Whether steps are whole.
  bool divides(const Family& family, std::int64_t degree) const {
    Schedule one{.family = {family.division, false, false}, .degree = 1, .tile = {1, 1}};
    const machine::GemmShape block = launches_of(op_, one).front().shape;
    if (family.division == Division::rows) return block.m % degree == 0;
    return (communicates_first(op_.kind) ? block.k : block.n) % degree == 0;
  }

  const Operator& op_;
  const machine::Machine& machine_;
  const SpaceLimits& limits_;
  std::vector<std::string> realizations_;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t, bool, std::int64_t>,
           std::vector<Tile>>
      tiles_;
  std::vector<Schedule> schedules_;
};

}  // namespace

bool multicasts_to_all(const machine::Machine& machine) {
  std::vector<int> ranks(index(machine.ranks()));
  std::iota(ranks.begin(), ranks.end(), 0);
  return !machine.multicast_switches(ranks).empty();
}

std::int64_t ranks_of_node(const machine::Machine& machine) {
  const int ranks = machine.ranks(), node = plan::node_size(machine);
  return node > 1 && node < ranks && ranks % node == 0 ? node : 0;
}

bool has_copy_engines(const machine::Machine& machine) {
  for (int rank = 0; rank < machine.ranks(); ++rank)
    if (machine.model(rank).dma_engines == 0) return false;
  return true;
}

std::vector<Tile> best_tiles(const machine::GpuModel& model, const machine::GemmShape& shape,
                             std::int64_t rows) {
  std::vector<std::pair<Time, Tile>> timed;
  for (const Tile& tile : model.gemm_tiles) {
    machine::GemmShape padded = shape;
    const std::int64_t height = std::min<std::int64_t>(tile.m, rows);
    padded.m = shape.m / rows * ((rows + height - 1) / height * height);
    const machine::GemmEstimate estimate =
        machine::estimate_gemm(model, padded, {.split_k = 1, .tile = tile, .tile_cus = 1});
    timed.emplace_back(estimate.time, tile);
  }
  std::ranges::stable_sort(timed, {}, [](const auto& one) { return one.first; });
  std::vector<Tile> best;
  for (const auto& [time, tile] : timed)
    if (best.size() < 2) best.push_back(tile);
  if (best.empty()) best.push_back({128, 128});
  return best;
}

std::vector<Schedule> space_of(const Operator& op, const machine::Machine& machine,
                               const SpaceLimits& limits) {
  return Space(op, machine, limits).all();
}

}  // namespace hemiola::explore
