// Tiles of compute kernels: what they touch, what they wait for, and in which order they go.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "core/index.h"
#include "program/lower/general.h"
#include "program/lower/launches.h"
#include "program/lower/symmetry.h"

namespace hemiola::program::general {
namespace {

using plan::Compute;

class TileMaker {
 public:
  TileMaker(const plan::Plan& plan, Movements& movements, const Symmetry& symmetry)
      : plan_(plan),
        movements_(movements),
        symmetry_(symmetry),
        tiles_(groups_of(plan, movements, symmetry)) {}

  Tiles make() {
    each_written(plan_, movements_, symmetry_.period,
                 [&](int rank, const Place& place, const Movement& movement) {
                   writers_[{rank, place.area.tensor}].push_back(&movement);
                 });
    for (int rank = 0; rank < symmetry_.period; ++rank) {
      const auto& groups = tiles_[index(rank)].groups;
      for (std::size_t g = 0; g < groups.size(); ++g)
        first_.try_emplace({rank, groups[g].compute}, g);
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

  const Compute& compute_of(int rank, const TileGroup& group) const {
    return plan_.code(rank).computes[index(group.compute)];
  }

  /// Tiles wait for all movements that write what they read, unless their launch has.
  void find_arrivals() {
    for (int rank = 0; rank < symmetry_.period; ++rank) {
      for (TileGroup& group : tiles_[index(rank)].groups) {
        if (is_whole(plan_, rank, group.compute)) continue;
        for (const plan::Area& area : group.needed) find_arrivals(rank, area, group);
      }
    }
  }

  void find_arrivals(int rank, const plan::Area& needed, TileGroup& group) {
    for (const Movement* movement : writers_[{rank, needed.tensor}]) {
      const bool writes_it = std::ranges::any_of(movement->destinations, [&](const Place& place) {
        return (place.group >= 0 || place.rank == rank) && overlap(place.area, needed);
      });
      if (writes_it) group.after.push_back(movement);
    }
  }

  /// ... and for the tiles of other computes in the persistent kernel of their rank that make it.
  void find_tile_dependencies() {
    for (int rank = 0; rank < symmetry_.period; ++rank) {
      auto& groups = tiles_[index(rank)].groups;
      if (groups.empty() || groups.front().compute == groups.back().compute) continue;
      for (TileGroup& group : groups) {
        if (compute_of(rank, group).is_launch()) continue;
        for (std::size_t other = 0; other < groups.size(); ++other) {
          if (groups[other].compute == group.compute || compute_of(rank, groups[other]).is_launch())
            continue;
          const auto makes = [&](const plan::Area& needed) {
            return std::ranges::any_of(
                groups[other].made, [&](const plan::Area& made) { return overlap(made, needed); });
          };
          if (std::ranges::any_of(group.needed, makes))
            group.after_groups.push_back(static_cast<std::int32_t>(other));
        }
      }
    }
  }

  /// The level of all tiles that make some of the area; -1 if one has none yet.
  std::int64_t level_of(int of_rank, const plan::Area& of_area) const {
    std::int64_t level = 0;
    const plan::Area area = symmetry_.turned(of_area, -symmetry_.image(of_rank));
    for (const TileGroup& group : tiles_[index(symmetry_.representative(of_rank))].groups) {
      for (const plan::Area& made : group.made) {
        if (!overlap(made, area)) continue;
        if (group.level < 0) return -1;
        level = std::max(level, group.level);
      }
    }
    return level;
  }

  bool assign(Movement& movement, std::int64_t before) const {
    std::int64_t level = before;
    for (const Movement::After& after : movement.after) {
      const std::int64_t other = at(movements_, after).level;
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
    const auto& groups = tiles_[index(rank)].groups;
    std::int64_t level = 0;
    for (std::size_t i = first_.at({rank, compute});
         i < groups.size() && groups[i].compute == compute; ++i) {
      if (groups[i].level < 0) return -1;
      level = std::max(level, groups[i].level);
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

  static bool assign(const std::vector<TileGroup>& groups, TileGroup& group, std::int64_t level) {
    if (level < 0) return false;
    for (const Movement* movement : group.after) {
      if (movement->level < 0) return false;
      level = std::max(level, movement->level);
    }
    for (const std::int32_t other : group.after_groups) {
      if (groups[index(other)].level < 0) return false;
      level = std::max(level, groups[index(other)].level + 1);
    }
    group.level = level;
    return true;
  }

  void assign_levels() {
    each_movement(movements_, [](const MovementId&, Movement& movement) { movement.level = -1; });
    std::map<std::pair<std::size_t, std::size_t>, std::size_t> next;
    bool progress = true;
    bool complete = false;
    while (progress) {
      progress = false;
      complete = true;
      for (int rank = 0; rank < symmetry_.period; ++rank) {
        auto& groups = tiles_[index(rank)].groups;
        const std::vector<std::int64_t> starts = start_levels(rank);
        for (TileGroup& group : groups) {
          if (group.level >= 0) continue;
          const bool done = assign(groups, group, starts[index(group.compute)]);
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
    each_movement(movements_, [&](const MovementId&, const Movement& movement) {
      for (const auto& [rank, area] : movement.computed) {
        if (rank >= symmetry_.period) continue;
        const auto overlaps = [&, &part = area](const plan::Area& made) {
          return overlap(made, part);
        };
        for (TileGroup& group : tiles_[index(rank)].groups)
          if (movement.level < group.wanted && std::ranges::any_of(group.made, overlaps))
            group.wanted = movement.level;
      }
    });
  }

  void put_in_order(int rank) {
    auto& [groups, order] = tiles_[index(rank)];
    const auto& computes = plan_.code(rank).computes;
    // Tiles that cannot start yet never stand before those that make what they read.
    using Key = std::tuple<std::int64_t, std::int64_t, std::int32_t>;
    std::vector<Key> keys;
    for (const TileGroup& group : groups) {
      const bool by_arrival = computes[index(group.compute)].by_arrival;
      keys.emplace_back(by_arrival ? group.level : 0, by_arrival ? group.wanted : 0, group.compute);
    }
    std::map<Key, std::vector<TileRef>> sorted;
    for (const TileRef& tile : order) sorted[keys[index(tile.group)]].push_back(tile);
    order.clear();
    for (const auto& [key, tiles] : sorted) order.insert(order.end(), tiles.begin(), tiles.end());
    // Results are written once, by the last tile that adds to them, and what is there already is
    // read once, by the first.
    struct Ends {
      std::int32_t first = -1, last = -1;
    };
    std::map<std::int32_t, Ends> ends;  // by outputs: groups
    for (const TileRef& tile : order) {
      if (tile.tile != 0) continue;
      const auto at =
          ends.try_emplace(groups[index(tile.group)].outputs, Ends{tile.group, -1}).first;
      at->second.last = tile.group;
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      TileGroup& group = groups[g];
      const Ends& of = ends.at(group.outputs);
      if (of.first != static_cast<std::int32_t>(g)) group.adds.clear();
      if (of.last == static_cast<std::int32_t>(g)) continue;
      std::size_t write = 0;
      for (const plan::ComputeOperand& operand : computes[index(group.compute)].operands) {
        if (operand.use == plan::Use::read) continue;
        if (plan::sums(operand.use))
          group.writes.erase(group.writes.begin() + static_cast<std::ptrdiff_t>(write));
        else
          ++write;
      }
    }
  }

  const plan::Plan& plan_;
  Movements& movements_;
  const Symmetry& symmetry_;
  std::map<Memory, std::vector<const Movement*>> writers_;
  Tiles tiles_;
  std::map<std::pair<int, std::int32_t>, std::size_t>
      first_;  // group of rank below the period and compute
};

}  // namespace

Tiles tiles_of(const plan::Plan& plan, Movements& movements, const Symmetry& symmetry) {
  return TileMaker(plan, movements, symmetry).make();
}

}  // namespace hemiola::program::general
