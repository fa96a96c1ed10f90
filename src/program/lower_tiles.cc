// Tiles of compute kernels: what they touch, what they wait for, and in which order they go.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>

#include "core/index.h"
#include "plan/tiles.h"
#include "program/lower_general.h"
#include "program/lower_launches.h"
#include "program/lower_symmetry.h"

namespace hemiola::program::general {
namespace {

using plan::Compute;
using plan::ComputeOperand;

/// Axes from the slowest to the fastest.
std::vector<std::int32_t> order_of(const Compute& compute) {
  std::vector<std::int32_t> order = compute.order;
  for (std::size_t axis = 0; order.size() < compute.axes.size(); ++axis)
    order.push_back(static_cast<std::int32_t>(axis));
  return order;
}

/// Numbers of tiles along the fastest axis from which a new run of tiles begins; tiles of a run
/// differ in nothing but their place.
using Cuts = std::set<std::int64_t>;

/// Visits all tiles of a kernel, run by run in the order that it states: coordinates of the first
/// one, and how many they are.
template <class Visit>
void each_run(const Compute& compute, const Cuts& cuts, Visit&& visit) {
  const std::vector<std::int32_t> order = order_of(compute);
  const auto count = [&](std::int32_t axis) {
    const plan::ComputeAxis& of = compute.axes[index(axis)];
    return (of.extent + of.tile - 1) / of.tile;
  };
  std::vector<std::int64_t> at(compute.axes.size(), 0);
  while (true) {
    std::int64_t& fastest = at[index(order.back())];
    const auto next = cuts.upper_bound(fastest);
    const std::int64_t end = next == cuts.end() ? count(order.back()) : *next;
    visit(at, end - fastest);
    fastest = end - 1;
    std::size_t i = order.size();
    while (i-- > 0) {
      if (++at[index(order[i])] < count(order[i])) break;
      at[index(order[i])] = 0;
      if (i == 0) return;
    }
  }
}

class TileMaker {
 public:
  TileMaker(const plan::Plan& plan, Movements& movements, const Symmetry& symmetry)
      : plan_(plan), movements_(movements), symmetry_(symmetry) {}

  Tiles make() {
    tiles_.resize(index(plan_.ranks));
    find_writers();
    for (int rank = 0; rank < symmetry_.period; ++rank) {
      const auto& computes = plan_.code(rank).computes;
      first_output_ = 0;
      for (std::size_t c = 0; c < computes.size(); ++c) {
        first_[{rank, static_cast<std::int32_t>(c)}] = std::ssize(tiles_[index(rank)]);
        each_run(computes[c], cuts_of(computes[c], rank),
                 [&](const std::vector<std::int64_t>& at, std::int64_t steps) {
                   add(computes[c], static_cast<std::int32_t>(c), at, steps, rank);
                 });
        std::int64_t outputs = 1;
        for (const plan::ComputeAxis& axis : computes[c].axes)
          outputs *= (axis.extent + axis.tile - 1) / axis.tile;
        first_output_ += outputs;
      }
    }
    find_arrivals();
    find_tile_dependencies();
    assign_levels();
    find_wanted();
    for (int rank = 0; rank < symmetry_.period; ++rank) put_in_order(rank);
    return std::move(tiles_);
  }

 private:
  using Memory = std::pair<int, std::int32_t>;  ///< tensor of a rank

  /// Who writes the tensors of the ranks below the period.
  void find_writers() {
    for (const auto& streams : movements_) {
      for (const auto& stream : streams) {
        for (const Movement& movement : stream) {
          for (const Place& place : movement.destinations) {
            const std::vector<int> one{place.rank};
            for (const int rank : place.group < 0 ? one : plan_.groups[index(place.group)]) {
              if (rank < symmetry_.period) writers_[{rank, place.area.tensor}].push_back(&movement);
            }
          }
        }
      }
    }
  }

  /// Tiles that only add up along the fastest axis wait for the same where nothing that they read
  /// begins or ends between them: what a movement writes, what a tile of another kernel makes, what
  /// turns with the ranks by a step. Others stand alone.
  Cuts cuts_of(const Compute& compute, int rank) const {
    const std::int32_t fastest = order_of(compute).back();
    const plan::ComputeAxis& axis = compute.axes[index(fastest)];
    const bool adds_up =
        axis.reduced && std::none_of(compute.operands.begin(), compute.operands.end(),
                                     [&](const auto& o) { return o.use == plan::Use::write; });
    Cuts cuts;
    if (!adds_up) {
      for (std::int64_t tile = 0; tile * axis.tile < axis.extent; ++tile) cuts.insert(tile);
      return cuts;
    }
    cuts.insert(axis.extent / axis.tile);  // the last one may be smaller
    for (const ComputeOperand& operand : compute.operands) {
      for (std::size_t i = 0; i < operand.axes.size(); ++i) {
        if (operand.axes[i] != fastest) continue;
        const std::int64_t moved = operand.first(i, rank);
        const std::int64_t extent = plan_.tensors[index(operand.tensor)].shape[i];
        std::set<std::int64_t> places = borders(compute, operand.tensor, i, rank);
        if (operand.wraps) places.insert(0);
        for (const std::int64_t place : places) {
          const std::int64_t at = operand.wraps ? (place - moved + extent) % extent : place - moved;
          if (at <= 0 || at >= axis.extent) continue;
          cuts.insert(at / axis.tile);
          cuts.insert((at + axis.tile - 1) / axis.tile);
        }
      }
    }
    return cuts;
  }

  /// Where, along an axis of a tensor, something begins or ends that tiles wait for one by one.
  std::set<std::int64_t> borders(const Compute& compute, std::int32_t tensor, std::size_t axis,
                                 int rank) const {
    std::set<std::int64_t> borders;
    const auto writers = writers_.find({rank, tensor});
    if (writers != writers_.end() && compute.waits == plan::Waits::tiles) {
      for (const Movement* movement : writers->second) {
        for (const Place& place : movement->destinations) {
          if (place.area.tensor != tensor) continue;
          for (const plan::Rect& rect : place.area.rects) {
            borders.insert(rect.begin[axis]);
            borders.insert(rect.end[axis]);
          }
        }
      }
    }
    for (const Compute& other : plan_.code(rank).computes) {
      if (&other == &compute || other.is_launch() || compute.is_launch()) continue;
      for (const ComputeOperand& made : other.operands) {
        if (made.tensor != tensor || made.use == plan::Use::read || made.axes[axis] < 0) continue;
        const plan::ComputeAxis& along = other.axes[index(made.axes[axis])];
        const std::int64_t moved = made.first(axis, rank);
        const std::int64_t extent = plan_.tensors[index(tensor)].shape[axis];
        const auto place = [&](std::int64_t at) { return made.wrapped(moved + at, extent); };
        for (std::int64_t at = 0; at < along.extent; at += along.tile) borders.insert(place(at));
        borders.insert(place(along.extent));
      }
    }
    if (!symmetry_.folds()) return borders;
    const TensorTurn& turn = symmetry_.turns[index(tensor)];
    if (turn.axis == static_cast<std::int32_t>(axis)) {
      for (std::int64_t at = 0; at < turn.extent; at += turn.step) borders.insert(at);
    }
    return borders;
  }

  /// Whether the same operands follow both axes.
  static bool go_together(const Compute& compute, std::size_t a, std::size_t b) {
    return std::all_of(compute.operands.begin(), compute.operands.end(), [&](const auto& operand) {
      const auto follows = [&](std::size_t axis) {
        const auto& axes = operand.axes;
        return std::find(axes.begin(), axes.end(), static_cast<std::int32_t>(axis)) != axes.end();
      };
      return follows(a) == follows(b);
    });
  }

  /// The last axis that is not reduced, and those that the same operands follow, are its columns,
  /// the others rows (of all batches); the depth is what its flop leave.
  static MatrixProduct product_of(const Compute& compute, const plan::Rect& box,
                                  std::int64_t flop) {
    std::int64_t rows = 1, columns = 1;
    std::optional<std::size_t> last;
    for (std::size_t a = compute.axes.size(); a-- > 0;) {
      if (compute.axes[a].reduced) continue;
      if (!last) last = a;
      (go_together(compute, a, *last) ? columns : rows) *= box.end[a] - box.begin[a];
    }
    return {rows, columns, std::max<std::int64_t>(flop / (2 * rows * columns), 1)};
  }

  void add(const Compute& compute, std::int32_t number, const std::vector<std::int64_t>& at,
           std::int64_t steps, int rank) {
    Tile tile;
    tile.compute = number;
    tile.steps = steps;
    tile.flop = compute.flop_per_point;
    std::int64_t output = 0;
    fmt::memory_buffer where;
    fmt::format_to(fmt::appender(where), "/{}/", compute.name);
    const plan::Rect box = tile_box(compute, at);
    tile.flop *= box.elements();
    if (compute.kernel == "gemm") tile.product = product_of(compute, box, tile.flop);
    for (std::size_t a = 0; a < at.size(); ++a) {
      const plan::ComputeAxis& axis = compute.axes[a];
      output = output * ((axis.extent + axis.tile - 1) / axis.tile) + (axis.reduced ? 0 : at[a]);
      if (a > 0) where.push_back(',');
      fmt::format_to(fmt::appender(where), "{}", at[a]);
    }
    tile.where = fmt::to_string(where);
    tile.output = first_output_ + output;
    for (const ComputeOperand& operand : compute.operands) {
      plan::Area area = operand_area(plan_, operand, box, rank);
      if (plan::makes(operand.use)) tile.made.push_back(area);
      if (operand.use == plan::Use::add) tile.adds.push_back(area);
      (operand.use == plan::Use::read ? tile.reads : tile.writes).push_back(std::move(area));
    }
    if (steps > 1) {
      std::vector<std::int64_t> next = at;
      ++next[index(order_of(compute).back())];
      const plan::Rect next_box = tile_box(compute, next);
      for (const ComputeOperand& operand : compute.operands) {
        if (operand.use == plan::Use::read)
          tile.next_reads.push_back(operand_area(plan_, operand, next_box, rank));
      }
    }
    tiles_[index(rank)].push_back(std::move(tile));
  }

  const Compute& compute_of(int rank, const Tile& tile) const {
    return plan_.code(rank).computes[index(tile.compute)];
  }

  /// A tile waits for all movements that write what it reads, unless its launch has.
  void find_arrivals() {
    for (int rank = 0; rank < symmetry_.period; ++rank) {
      for (Tile& tile : tiles_[index(rank)]) {
        if (is_whole(plan_, rank, tile.compute)) continue;
        for (const auto* areas : {&tile.reads, &tile.adds}) {
          for (const plan::Area& read : *areas) find_arrivals(rank, read, tile);
        }
      }
    }
  }

  void find_arrivals(int rank, const plan::Area& read, Tile& tile) {
    for (const Movement* movement : writers_[{rank, read.tensor}]) {
      const bool writes_it = std::any_of(
          movement->destinations.begin(), movement->destinations.end(), [&](const Place& place) {
            return (place.group >= 0 || place.rank == rank) && overlap(place.area, read);
          });
      if (writes_it) tile.after.push_back(movement);
    }
  }

  /// ... and for the tiles of other computes in the persistent kernel of its rank that make it.
  void find_tile_dependencies() {
    for (int rank = 0; rank < symmetry_.period; ++rank) {
      auto& tiles = tiles_[index(rank)];
      if (tiles.empty() || tiles.front().compute == tiles.back().compute) continue;
      for (Tile& tile : tiles) {
        if (compute_of(rank, tile).is_launch()) continue;
        for (std::size_t other = 0; other < tiles.size(); ++other) {
          if (tiles[other].compute == tile.compute || compute_of(rank, tiles[other]).is_launch())
            continue;
          const auto makes = [&](const plan::Area& read) {
            return std::any_of(tiles[other].made.begin(), tiles[other].made.end(),
                               [&](const plan::Area& made) { return overlap(made, read); });
          };
          if (std::any_of(tile.reads.begin(), tile.reads.end(), makes) ||
              std::any_of(tile.adds.begin(), tile.adds.end(), makes))
            tile.after_tiles.push_back(static_cast<std::int64_t>(other));
        }
      }
    }
  }

  /// The level of all tiles that make some of the area; -1 if one has none yet.
  std::int64_t level_of(int of_rank, const plan::Area& of_area) const {
    std::int64_t level = 0;
    const plan::Area area = symmetry_.turned(of_area, -symmetry_.image(of_rank));
    for (const Tile& tile : tiles_[index(symmetry_.representative(of_rank))]) {
      for (const plan::Area& made : tile.made) {
        if (!overlap(made, area)) continue;
        if (tile.level < 0) return -1;
        level = std::max(level, tile.level);
      }
    }
    return level;
  }

  bool assign(Movement& movement, std::int64_t before) const {
    std::int64_t level = before;
    for (const Movement::After& after : movement.after) {
      const std::int64_t other =
          movements_[index(after.rank)][index(after.stream)][index(after.index)].level;
      if (other < 0) return false;
      level = std::max(level, other);
    }
    for (const auto& [rank, area] : movement.computed) {
      const std::int64_t other = level_of(rank, area);
      if (other < 0) return false;
      level = std::max(level, other);
    }
    for (const auto& [rank, compute] : movement.launches) {
      const std::int64_t other = last_level(rank, compute);
      if (other < 0) return false;
      level = std::max(level, other);
    }
    movement.level = level + 1;
    return true;
  }

  /// Of all tiles of a compute; -1 if one has none yet.
  std::int64_t last_level(int of_rank, std::int32_t compute) const {
    const int rank = symmetry_.representative(of_rank);
    const auto& tiles = tiles_[index(rank)];
    std::int64_t level = 0;
    for (std::size_t i = index(first_.at({rank, compute}));
         i < tiles.size() && tiles[i].compute == compute; ++i) {
      if (tiles[i].level < 0) return -1;
      level = std::max(level, tiles[i].level);
    }
    return level;
  }

  /// By compute of a rank below the period: the level at which a launch starts; 0 of what is none,
  /// -1: not known.
  std::vector<std::int64_t> start_levels(int rank) const {
    const plan::Code& code = plan_.code(rank);
    std::vector<std::int64_t> levels(code.computes.size(), 0);
    for (const auto& [compute, stream] : gates_of(code))
      levels[index(compute)] = movements_[index(rank)][index(stream)].front().level;
    const plan::LaunchOrder order(code);
    for (std::size_t c = 0; c < levels.size(); ++c) {
      for (const std::int32_t before : order.directly_before(static_cast<std::int32_t>(c))) {
        const std::int64_t last = last_level(rank, before);
        levels[c] = last < 0 || levels[c] < 0 ? -1 : std::max(levels[c], last + 1);
      }
    }
    return levels;
  }

  static bool assign(std::vector<Tile>& tiles, Tile& tile, std::int64_t level) {
    if (level < 0) return false;
    for (const Movement* movement : tile.after) {
      if (movement->level < 0) return false;
      level = std::max(level, movement->level);
    }
    for (const std::int64_t other : tile.after_tiles) {
      if (tiles[index(other)].level < 0) return false;
      level = std::max(level, tiles[index(other)].level + 1);
    }
    tile.level = level;
    return true;
  }

  void assign_levels() {
    for (auto& streams : movements_) {
      for (auto& stream : streams) {
        for (Movement& movement : stream) movement.level = -1;
      }
    }
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> next;
    bool progress = true;
    bool complete = false;
    while (progress) {
      progress = false;
      complete = true;
      for (int rank = 0; rank < symmetry_.period; ++rank) {
        auto& tiles = tiles_[index(rank)];
        const std::vector<std::int64_t> starts = start_levels(rank);
        for (Tile& tile : tiles) {
          if (tile.level >= 0) continue;
          const bool done = assign(tiles, tile, starts[index(tile.compute)]);
          progress = progress || done;
          complete = complete && done;
        }
      }
      for (std::size_t rank = 0; rank < index(symmetry_.period); ++rank) {
        for (std::size_t s = 0; s < movements_[rank].size(); ++s) {
          auto& stream = movements_[rank][s];
          std::size_t& at = next[{rank, s}];
          while (at < stream.size() && assign(stream[at], at == 0 ? 0 : stream[at - 1].level)) {
            for (std::size_t image = rank; image < movements_.size();
                 image += index(symmetry_.period))
              movements_[image][s][at].level = stream[at].level;
            ++at;
            progress = true;
          }
          complete = complete && at == stream.size();
        }
      }
    }
    if (!complete)
      throw Failure(
          fmt::format("plan '{}' waits for itself: some transfers can never start", plan_.name), {},
          "`hemiola check` of the plan names the cycle");
  }

  /// What leaves first is made first.
  void find_wanted() {
    for (const auto& streams : movements_) {
      for (const auto& stream : streams) {
        for (const Movement& movement : stream) {
          for (const auto& [rank, area] : movement.computed) {
            if (rank >= symmetry_.period) continue;
            for (Tile& tile : tiles_[index(rank)]) {
              const bool takes =
                  movement.level < tile.wanted &&
                  std::any_of(tile.made.begin(), tile.made.end(),
                              [&](const plan::Area& made) { return overlap(made, area); });
              if (takes) tile.wanted = movement.level;
            }
          }
        }
      }
    }
  }

  void put_in_order(int rank) {
    auto& tiles = tiles_[index(rank)];
    if (tiles.empty()) return;
    const auto& computes = plan_.code(rank).computes;
    std::vector<std::size_t> order(tiles.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    // Tiles that cannot start yet never stand before those that make what they read.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](const Tile& tile) {
        const bool by_arrival = computes[index(tile.compute)].by_arrival;
        return std::tuple(by_arrival ? tile.level : 0, by_arrival ? tile.wanted : 0, tile.compute);
      };
      return key(tiles[a]) < key(tiles[b]);
    });
    std::vector<std::int64_t> place(tiles.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int64_t>(i);
    std::vector<Tile> sorted;
    sorted.reserve(tiles.size());
    for (const std::size_t i : order) sorted.push_back(std::move(tiles[i]));
    std::unordered_map<std::int64_t, std::size_t> first, last;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      for (std::int64_t& other : sorted[i].after_tiles) other = place[index(other)];
      first.try_emplace(sorted[i].output, i);
      last[sorted[i].output] = i;
    }
    // Results are written once, by the last tile that adds to them, and what is there already is
    // read once, by the first.
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const Compute& compute = computes[index(sorted[i].compute)];
      if (first[sorted[i].output] != i) sorted[i].adds.clear();
      if (last[sorted[i].output] == i) continue;
      std::size_t write = 0;
      for (const ComputeOperand& operand : compute.operands) {
        if (operand.use == plan::Use::read) continue;
        auto& writes = sorted[i].writes;
        if (plan::sums(operand.use)) {
          writes.erase(writes.begin() + static_cast<std::ptrdiff_t>(write));
        } else {
          ++write;
        }
      }
    }
    tiles = std::move(sorted);
  }

  const plan::Plan& plan_;
  Movements& movements_;
  const Symmetry& symmetry_;
  std::map<Memory, std::vector<const Movement*>> writers_;
  Tiles tiles_;
  std::int64_t first_output_ = 0;  // of the present compute: no two share one
  std::map<std::pair<int, std::int32_t>, std::int64_t>
      first_;  // tile of rank below the period and compute
};

}  // namespace

Tiles tiles_of(const plan::Plan& plan, Movements& movements, const Symmetry& symmetry) {
  return TileMaker(plan, movements, symmetry).make();
}

}  // namespace hemiola::program::general
