#include "explore/space/block_schedule.h"

#include <fmt/format.h>

#include <algorithm>

namespace hemiola::explore {
namespace {

/// Where words and degrees of the limits are none of those that a block has.
bool allows(const std::vector<std::string>& list, const char* value) {
  return list.empty() || std::ranges::find(list, value) != list.end();
}

class BlockSpace {
 public:
  BlockSpace(const Block& block, const machine::Machine& machine, const SpaceLimits& limits)
      : block_(block), machine_(machine), limits_(limits) {}

  std::vector<BlockSchedule> all() {
    bool any_divides = false;
    for (const std::int64_t degree : limits_.degrees) {
      if (!divides(block_, degree)) continue;
      any_divides = true;
      for (const bool hetero : {false, true}) add_moved({.degree = degree, .hetero = hetero});
    }
    if (!any_divides)
      throw Failure(
          fmt::format("no number of steps divides the {} rows that a rank has{}",
                      block_.tokens / block_.ranks,
                      block_.sequences > 1 ? fmt::format(" of {} sequences", block_.sequences)
                                           : std::string()),
          {.file = "--degrees"}, "for example --degrees 2");
    if (schedules_.empty())
      throw Failure("nothing is left to explore for " + text_of(block_), {.file = "--realization"},
                    "allow more with --realization, --place and --transfer");
    return std::move(schedules_);
  }

 private:
  std::vector<bool> directions() const {
    std::vector<bool> pulls;
    if (allows(limits_.transfers, "push")) pulls.push_back(false);
    if (allows(limits_.transfers, "pull")) pulls.push_back(true);
    return pulls;
  }

  void add_moved(BlockSchedule schedule) {
    if (!allows(limits_.places, "own")) return;
    const Operator first = first_operator(block_), last = last_operator(block_);
    if (schedule.hetero) {
      schedule.own_first = tiles_of_own(first);
      schedule.own_last = tiles_of_own(last);
    }
    for (const Tile& in : tiles_of_step(first, schedule)) {
      for (const Tile& out : tiles_of_step(last, schedule)) {
        schedule.first = in;
        schedule.last = out;
        add_directions(schedule);
      }
    }
  }

  /// Rows of one sequence that a rank has.
  std::int64_t rows_of_rank() const { return block_.tokens / block_.ranks / block_.sequences; }

  Tile tiles_of_own(const Operator& op) const {
    machine::GemmShape shape = local_product(op);
    shape.m /= block_.ranks;
    return best_tiles(machine_.model(0), shape, rows_of_rank()).front();
  }

  std::vector<Tile> tiles_of_step(const Operator& op, const BlockSchedule& schedule) const {
    machine::GemmShape shape = local_product(op);
    const int blocks = block_.ranks - (schedule.hetero ? 1 : 0);
    shape.m = shape.m / block_.ranks * blocks / schedule.degree;
    const std::int64_t cuts =
        schedule.degree <= block_.sequences ? 1 : schedule.degree / block_.sequences;
    return best_tiles(machine_.model(0), shape, rows_of_rank() / cuts);
  }

  void add_directions(BlockSchedule schedule) {
    const auto units = static_cast<int>(machine_.model(0).cu_count);
    // Of each distance one that gathers and one that scatters, and one that adds up.
    const int streams = 2 * (block_.ranks - 1) + 1;
    for (const bool gather : directions()) {
      for (const bool scatter : directions()) {
        schedule.gather_pulls = gather;
        schedule.scatter_pulls = scatter;
        for (const char* name : {"load-store", "bulk", "copy-engine"}) {
          const bool is_usual = limits_.realizations.empty() && name != std::string("bulk");
          if (!is_usual && (limits_.realizations.empty() || !allows(limits_.realizations, name)))
            continue;
          schedule.realization = name;
          if (name == std::string("copy-engine")) {
            // Who of the two ends copies is the same to what leaves after a product.
            if (scatter && directions().size() > 1) continue;
            schedule.workgroups = 0;
            schedules_.push_back(schedule);
            continue;
          }
          for (const int each : {2, 1, 4}) {  // what is usual first
            schedule.workgroups = streams * each;
            if (schedule.workgroups * 2 <= units) schedules_.push_back(schedule);
          }
        }
      }
    }
  }

  const Block& block_;
  const machine::Machine& machine_;
  const SpaceLimits& limits_;
  std::vector<BlockSchedule> schedules_;
};

}  // namespace

std::string BlockSchedule::text() const {
  const auto tile = [](const Tile& one) { return fmt::format("{}x{}", one.m, one.n); };
  return fmt::format("{}, {} steps, {} and {} by {}, tiles {}, {}", hetero ? "hetero" : "uniform",
                     degree, gather_pulls ? "pull" : "push", scatter_pulls ? "pull" : "push",
                     workgroups == 0 ? "copy engines"
                                     : fmt::format("{} workgroups{}", workgroups,
                                                   realization == "bulk" ? " in bulk" : ""),
                     tile(first), tile(last));
}

study::Settings parameters_of(const Block& block, const BlockSchedule& schedule) {
  study::Settings all = template_sizes(block);
  const auto add = [&all](const std::string& name, const auto& value) {
    all.emplace_back(name, fmt::format("{}", value));
  };
  const auto add_tile = [&](const std::string& name, const Tile& tile) {
    add(name + "_m", tile.m);
    add(name + "_n", tile.n);
  };
  add_tile("in_tile", schedule.first);
  add_tile("out_tile", schedule.last);
  add("tile_k", std::max<std::int64_t>(1, 128 / size_of(block.type)));
  if (schedule.hetero) {
    add_tile("own_in_tile", schedule.own_first);
    add_tile("own_out_tile", schedule.own_last);
  }
  add("degree", schedule.degree);
  add("steps", schedule.hetero ? "hetero" : "uniform");
  add("gather", schedule.gather_pulls ? "pull" : "push");
  add("scatter", schedule.scatter_pulls ? "pull" : "push");
  add("realization", schedule.realization);
  if (schedule.workgroups > 0) add("workgroups", schedule.workgroups);
  return all;
}

bool divides(const Block& block, std::int64_t degree) {
  if (degree < 1) return false;
  if (degree <= block.sequences) return block.sequences % degree == 0;
  return degree % block.sequences == 0 &&
         block.tokens / block.ranks / block.sequences % (degree / block.sequences) == 0;
}

std::vector<BlockSchedule> space_of(const Block& block, const machine::Machine& machine,
                                    const SpaceLimits& limits) {
  return BlockSpace(block, machine, limits).all();
}

double ChainPipeline::time() const {
  double moved = 0, computed = own_first, sent = 0;
  for (std::int64_t g = 0; g < groups; ++g) {
    for (std::int64_t i = 0; i < group; ++i) {
      moved += gather;
      computed = std::max(computed, moved) + first;
    }
    for (std::int64_t i = 0; i < group; ++i) {
      computed += middle + last;
      sent = std::max(sent, computed) + scatter;
    }
  }
  return std::max(sent, computed + own_last);
}

}  // namespace hemiola::explore
