// Tiles of compute kernels: what they touch, what they wait for, and in which order they go.
#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "plan/tiles.h"
#include "program/lower_launches.h"

namespace hemiola::program::general {
namespace {

using plan::Compute;
using plan::ComputeOperand;

/// Visits all tiles of a kernel: their coordinates, in the order that it states.
template <class Visit>
void each_tile(const Compute& compute, Visit&& visit) {
  std::vector<std::int32_t> order = compute.order;
  for (std::size_t axis = 0; order.size() < compute.axes.size(); ++axis)
    order.push_back(static_cast<std::int32_t>(axis));
  std::vector<std::int64_t> at(compute.axes.size(), 0);
  while (true) {
    visit(at);
    std::size_t i = order.size();
    while (i-- > 0) {
      const plan::ComputeAxis& axis = compute.axes[index(order[i])];
      if (++at[index(order[i])] * axis.tile < axis.extent) break;
      at[index(order[i])] = 0;
      if (i == 0) return;
    }
  }
}

class TileMaker {
 public:
  TileMaker(const plan::Plan& plan, Movements& movements) : plan_(plan), movements_(movements) {}

  Tiles make() {
    tiles_.resize(index(plan_.ranks));
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto& computes = plan_.code(rank).computes;
      for (std::size_t c = 0; c < computes.size(); ++c) {
        first_[{rank, static_cast<std::int32_t>(c)}] = tiles_[index(rank)].size();
        each_tile(computes[c], [&](const std::vector<std::int64_t>& at) {
          add(computes[c], static_cast<std::int32_t>(c), at, rank);
        });
      }
    }
    find_arrivals();
    find_tile_dependencies();
    assign_levels();
    for (int rank = 0; rank < plan_.ranks; ++rank) put_in_order(rank);
    return std::move(tiles_);
  }

 private:
  /// The last axis that is not reduced are its columns, those before it rows (of all batches); the
  /// depth is what its flop leave.
  static MatrixProduct product_of(const Compute& compute, const plan::Rect& box,
                                  std::int64_t flop) {
    std::int64_t rows = 1, columns = 0;
    for (std::size_t a = compute.axes.size(); a-- > 0;) {
      if (compute.axes[a].reduced) continue;
      std::int64_t& extent = columns == 0 ? columns : rows;
      extent = std::max<std::int64_t>(extent, 1) * (box.end[a] - box.begin[a]);
    }
    columns = std::max<std::int64_t>(columns, 1);
    return {rows, columns, std::max<std::int64_t>(flop / (2 * rows * columns), 1)};
  }

  void add(const Compute& compute, std::int32_t number, const std::vector<std::int64_t>& at,
           int rank) {
    Tile tile;
    tile.compute = number;
    tile.flop = compute.flop_per_point;
    std::int64_t output = number;
    const plan::Rect box = tile_box(compute, at);
    tile.flop *= box.elements();
    if (compute.kernel == "gemm") tile.product = product_of(compute, box, tile.flop);
    for (std::size_t a = 0; a < at.size(); ++a) {
      const plan::ComputeAxis& axis = compute.axes[a];
      output = output * ((axis.extent + axis.tile - 1) / axis.tile) + (axis.reduced ? 0 : at[a]);
      tile.where += fmt::format("{}{}", a == 0 ? "/" + compute.name + "/" : ",", at[a]);
    }
    tile.output = output;
    for (const ComputeOperand& operand : compute.operands) {
      plan::Area area = operand_area(plan_, operand, box, rank);
      if (plan::makes(operand.use)) tile.made.push_back(area);
      if (operand.use == plan::Use::add) tile.reads.push_back(area);
      (operand.use == plan::Use::read ? tile.reads : tile.writes).push_back(std::move(area));
    }
    tiles_[index(rank)].push_back(std::move(tile));
  }

  const Compute& compute_of(int rank, const Tile& tile) const {
    return plan_.code(rank).computes[index(tile.compute)];
  }

  /// A tile waits for all movements that write what it reads, unless its launch has.
  void find_arrivals() {
    std::map<std::pair<int, std::int32_t>, std::vector<const Movement*>> writers;
    for (const auto& streams : movements_) {
      for (const auto& stream : streams) {
        for (const Movement& movement : stream) {
          for (const Place& place : movement.destinations) {
            const std::vector<int> one{place.rank};
            for (const int rank : place.group < 0 ? one : plan_.groups[index(place.group)])
              writers[{rank, place.area.tensor}].push_back(&movement);
          }
        }
      }
    }
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      for (Tile& tile : tiles_[index(rank)]) {
        if (is_whole(plan_, rank, tile.compute)) continue;
        for (const plan::Area& read : tile.reads) {
          for (const Movement* movement : writers[{rank, read.tensor}]) {
            const bool writes_it = std::any_of(
                movement->destinations.begin(), movement->destinations.end(),
                [&](const Place& place) {
                  return (place.group >= 0 || place.rank == rank) && overlap(place.area, read);
                });
            if (writes_it) tile.after.push_back(movement);
          }
        }
      }
    }
  }

  /// ... and for the tiles of other computes in the persistent kernel of its rank that make it.
  void find_tile_dependencies() {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      auto& tiles = tiles_[index(rank)];
      if (tiles.empty() || tiles.front().compute == tiles.back().compute) continue;
      for (Tile& tile : tiles) {
        if (compute_of(rank, tile).is_launch()) continue;
        for (std::size_t other = 0; other < tiles.size(); ++other) {
          if (tiles[other].compute == tile.compute || compute_of(rank, tiles[other]).is_launch())
            continue;
          const bool makes =
              std::any_of(tile.reads.begin(), tile.reads.end(), [&](const auto& read) {
                return std::any_of(tiles[other].made.begin(), tiles[other].made.end(),
                                   [&](const plan::Area& made) { return overlap(made, read); });
              });
          if (makes) tile.after_tiles.push_back(static_cast<std::int64_t>(other));
        }
      }
    }
  }

  /// The level of all tiles that make some of the area; -1 if one has none yet.
  std::int64_t level_of(int rank, const plan::Area& area) const {
    std::int64_t level = 0;
    for (const Tile& tile : tiles_[index(rank)]) {
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
  std::int64_t last_level(int rank, std::int32_t compute) const {
    const auto& tiles = tiles_[index(rank)];
    std::int64_t level = 0;
    for (std::size_t i = first_.at({rank, compute});
         i < tiles.size() && tiles[i].compute == compute; ++i) {
      if (tiles[i].level < 0) return -1;
      level = std::max(level, tiles[i].level);
    }
    return level;
  }

  /// By compute of a rank: the level at which a launch starts; 0 of what is none, -1: not known.
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
      for (int rank = 0; rank < plan_.ranks; ++rank) {
        auto& tiles = tiles_[index(rank)];
        const std::vector<std::int64_t> starts = start_levels(rank);
        for (Tile& tile : tiles) {
          if (tile.level >= 0) continue;
          const bool done = assign(tiles, tile, starts[index(tile.compute)]);
          progress = progress || done;
          complete = complete && done;
        }
      }
      for (std::size_t rank = 0; rank < movements_.size(); ++rank) {
        for (std::size_t s = 0; s < movements_[rank].size(); ++s) {
          auto& stream = movements_[rank][s];
          std::size_t& at = next[{rank, s}];
          while (at < stream.size() && assign(stream[at], at == 0 ? 0 : stream[at - 1].level)) {
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

  void put_in_order(int rank) {
    auto& tiles = tiles_[index(rank)];
    if (tiles.empty()) return;
    const auto& computes = plan_.code(rank).computes;
    std::vector<std::size_t> order(tiles.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    // Tiles that cannot start yet never stand before those that make what they read.
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      const auto key = [&](const Tile& tile) {
        return std::pair(computes[index(tile.compute)].by_arrival ? tile.level : 0, tile.compute);
      };
      return key(tiles[a]) < key(tiles[b]);
    });
    std::vector<std::int64_t> place(tiles.size());
    for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = static_cast<std::int64_t>(i);
    std::vector<Tile> sorted;
    for (const std::size_t i : order) sorted.push_back(std::move(tiles[i]));
    std::map<std::int64_t, std::size_t> first, last;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      for (std::int64_t& other : sorted[i].after_tiles) other = place[index(other)];
      first.try_emplace(sorted[i].output, i);
      last[sorted[i].output] = i;
    }
    // Results are written once, by the last tile that adds to them, and what is there already is
    // read once, by the first.
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      const Compute& compute = computes[index(sorted[i].compute)];
      if (first[sorted[i].output] != i) leave_sums(compute, sorted[i].reads);
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

  /// Of what a tile reads, without what it adds to.
  static void leave_sums(const Compute& compute, std::vector<plan::Area>& reads) {
    std::vector<plan::Area> left;
    std::size_t next = 0;
    for (const ComputeOperand& operand : compute.operands) {
      if (operand.use == plan::Use::read) left.push_back(std::move(reads[next]));
      next += operand.use == plan::Use::read || operand.use == plan::Use::add ? 1 : 0;
    }
    reads = std::move(left);
  }

  const plan::Plan& plan_;
  Movements& movements_;
  Tiles tiles_;
  std::map<std::pair<int, std::int32_t>, std::size_t> first_;  // tile of rank and compute
};

}  // namespace

Tiles tiles_of(const plan::Plan& plan, Movements& movements) {
  return TileMaker(plan, movements).make();
}

}  // namespace hemiola::program::general
