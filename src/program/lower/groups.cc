// Groups of tiles: the axes of a compute are cut wherever something begins or ends that tiles wait
// for, or that waits for tiles. Between the cuts lie boxes of tiles that differ in nothing but
// their place.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "core/index.h"
#include "plan/launches.h"
#include "plan/tiles.h"
#include "program/lower/general.h"
#include "program/lower/symmetry.h"

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

/// Whether what is there before matters to tiles.
bool needs(const ComputeOperand& operand) {
  return operand.use == plan::Use::read || operand.use == plan::Use::add;
}

std::int64_t tiles_along(const plan::ComputeAxis& axis) {
  return (axis.extent + axis.tile - 1) / axis.tile;
}

class GroupMaker {
 public:
  GroupMaker(const plan::Plan& plan, const Movements& movements, const Symmetry& symmetry)
      : plan_(plan), movements_(movements), symmetry_(symmetry), tiles_(index(plan.ranks)) {}

  Tiles make() {
    find_users();
    for (int rank = 0; rank < symmetry_.period; ++rank) {
      const auto& computes = plan_.code(rank).computes;
      outputs_ = 0;
      for (std::size_t c = 0; c < computes.size(); ++c)
        add_compute(rank, static_cast<std::int32_t>(c), computes[c]);
    }
    return std::move(tiles_);
  }

 private:
  using Memory = std::pair<int, std::int32_t>;  ///< tensor of a rank
  /// Numbers of tiles from which a group begins, the first one and the end among them.
  using Cuts = std::vector<std::int64_t>;

  /// What movements write, and what of computes they wait for, on the ranks below the period.
  void find_users() {
    each_written(plan_, movements_, symmetry_.period,
                 [&](int rank, const Place& place, const Movement&) {
                   written_[{rank, place.area.tensor}].push_back(place.area);
                 });
    each_movement(movements_, [&](const MovementId&, const Movement& movement) {
      for (const auto& [rank, area] : movement.computed) {
        const Memory memory{symmetry_.representative(rank), area.tensor};
        awaited_[memory].push_back(symmetry_.turned(area, -symmetry_.image(rank)));
      }
    });
    for (auto* users : {&written_, &awaited_}) {
      for (auto& [memory, areas] : *users) {
        std::ranges::sort(areas, {}, [](const auto& one) { return one.rects; });
        areas.erase(std::unique(areas.begin(), areas.end()), areas.end());
      }
    }
  }

  /// Tiles that add up along an axis are steps of one where that axis is the fastest and nothing is
  /// written; else they stand alone.
  static bool has_steps(const Compute& compute, std::int32_t axis) {
    return compute.axes[index(axis)].reduced && axis == order_of(compute).back() &&
           std::ranges::none_of(compute.operands,
                                [](const auto& o) { return o.use == plan::Use::write; });
  }

  Cuts cuts_of(const Compute& compute, int rank, std::int32_t a) const {
    const plan::ComputeAxis& axis = compute.axes[index(a)];
    const std::int64_t count = tiles_along(axis);
    std::set<std::int64_t> cuts{0, axis.extent / axis.tile, count};  // the last one may be smaller
    if (axis.reduced && !has_steps(compute, a))
      for (std::int64_t tile = 0; tile < count; ++tile) cuts.insert(tile);
    for (const ComputeOperand& operand : compute.operands) {
      for (std::size_t i = 0; i < operand.axes.size(); ++i) {
        if (operand.axes[i] != a) continue;
        const std::int64_t moved = operand.first(i, rank);
        const std::int64_t extent = plan_.tensors[index(operand.tensor)].shape[i];
        std::set<std::int64_t> places = borders(compute, operand, i, rank);
        if (operand.wraps) places.insert(0);
        for (const std::int64_t place : places) {
          const std::int64_t at = operand.wraps ? (place - moved + extent) % extent : place - moved;
          if (at <= 0 || at >= axis.extent) continue;
          cuts.insert(at / axis.tile);
          cuts.insert((at + axis.tile - 1) / axis.tile);
        }
      }
    }
    return {cuts.begin(), cuts.end()};
  }

  static void add_borders(const std::map<Memory, std::vector<plan::Area>>& users,
                          const Memory& memory, std::size_t axis, std::set<std::int64_t>& borders) {
    const auto found = users.find(memory);
    if (found == users.end()) return;
    for (const plan::Area& area : found->second) {
      for (const plan::Rect& rect : area.rects) {
        borders.insert(rect.begin[axis]);
        borders.insert(rect.end[axis]);
      }
    }
  }

  /// Where, along an axis of an operand's tensor, something begins or ends that matters to single
  /// tiles: what movements write or wait for, tiles of other computes of the same kernel, what
  /// turns with the ranks by a step.
  std::set<std::int64_t> borders(const Compute& compute, const ComputeOperand& operand,
                                 std::size_t axis, int rank) const {
    std::set<std::int64_t> borders;
    const Memory memory{rank, operand.tensor};
    const bool reads = needs(operand), makes = plan::makes(operand.use);
    if (compute.waits == plan::Waits::tiles) {
      if (reads) add_borders(written_, memory, axis, borders);
      if (makes) add_borders(awaited_, memory, axis, borders);
    }
    for (const Compute& other : plan_.code(rank).computes) {
      if (&other == &compute || other.is_launch() || compute.is_launch()) continue;
      for (const ComputeOperand& theirs : other.operands) {
        const bool meets = (reads && plan::makes(theirs.use)) || (makes && needs(theirs));
        if (theirs.tensor != operand.tensor || !meets || theirs.axes[axis] < 0) continue;
        const plan::ComputeAxis& along = other.axes[index(theirs.axes[axis])];
        const std::int64_t moved = theirs.first(axis, rank);
        const std::int64_t extent = plan_.tensors[index(operand.tensor)].shape[axis];
        const auto place = [&](std::int64_t at) { return theirs.wrapped(moved + at, extent); };
        for (std::int64_t at = 0; at < along.extent; at += along.tile) borders.insert(place(at));
        borders.insert(place(along.extent));
      }
    }
    if (!symmetry_.folds()) return borders;
    const TensorTurn& turn = symmetry_.turns[index(operand.tensor)];
    if (turn.axis == static_cast<std::int32_t>(axis))
      for (std::int64_t at = 0; at < turn.extent; at += turn.step) borders.insert(at);
    return borders;
  }

  /// Whether the same operands follow both axes.
  static bool go_together(const Compute& compute, std::size_t a, std::size_t b) {
    return std::ranges::all_of(compute.operands, [&](const auto& operand) {
      const auto follows = [&](std::size_t axis) {
        const auto& axes = operand.axes;
        return std::ranges::find(axes, static_cast<std::int32_t>(axis)) != axes.end();
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

  /// All groups of a compute, and its tiles in the order that it states.
  void add_compute(int rank, std::int32_t number, const Compute& compute) {
    const std::size_t axes = compute.axes.size();
    RankTiles& tiles = tiles_[index(rank)];
    const auto first = static_cast<std::int32_t>(tiles.groups.size());
    std::vector<Cuts> cuts;
    std::int64_t outputs = 1, groups = 1;
    for (std::size_t a = 0; a < axes; ++a) {
      cuts.push_back(cuts_of(compute, rank, static_cast<std::int32_t>(a)));
      const std::int64_t parts = std::ssize(cuts.back()) - 1;
      groups *= parts;
      if (!compute.axes[a].reduced) outputs *= parts;
    }
    std::vector<std::size_t> at(axes, 0);
    for (std::int64_t g = 0; g < groups; ++g) {
      add_group(rank, number, compute, cuts, at);
      for (std::size_t a = axes; a-- > 0;) {
        if (++at[a] + 1 < cuts[a].size()) break;
        at[a] = 0;
      }
    }
    outputs_ += static_cast<std::int32_t>(outputs);
    put_in_order(compute, cuts, first, tiles);
  }

  void add_group(int rank, std::int32_t number, const Compute& compute,
                 const std::vector<Cuts>& cuts, const std::vector<std::size_t>& part) {
    TileGroup group;
    group.compute = number;
    std::vector<std::int64_t> at;
    fmt::memory_buffer where;
    fmt::format_to(fmt::appender(where), "/{}/", compute.name);
    plan::Rect all;
    std::int64_t output = 0;
    for (std::size_t a = 0; a < part.size(); ++a) {
      const plan::ComputeAxis& axis = compute.axes[a];
      const std::int64_t begin = cuts[a][part[a]], end = cuts[a][part[a] + 1];
      const bool steps = has_steps(compute, static_cast<std::int32_t>(a));
      at.push_back(begin);
      if (steps) group.steps = end - begin;
      group.counts.push_back(steps ? 1 : static_cast<std::int32_t>(end - begin));
      all.begin.push_back(begin * axis.tile);
      all.end.push_back(std::min(end * axis.tile, axis.extent));
      if (!axis.reduced)
        output = output * (std::ssize(cuts[a]) - 1) + static_cast<std::int64_t>(part[a]);
      if (a > 0) where.push_back(',');
      fmt::format_to(fmt::appender(where), "{}", begin);
    }
    group.where = fmt::to_string(where);
    group.outputs = outputs_ + static_cast<std::int32_t>(output);
    const plan::Rect box = tile_box(compute, at);
    group.flop = compute.flop_per_point * box.elements();
    if (compute.kernel == "gemm") group.product = product_of(compute, box, group.flop);
    std::optional<plan::Rect> next;
    if (group.steps > 1) {
      ++at[index(order_of(compute).back())];
      next = tile_box(compute, at);
    }
    for (const ComputeOperand& operand : compute.operands) {
      const plan::Tensor& tensor = plan_.tensors[index(operand.tensor)];
      Touched touched{operand.tensor,
                      strips_of(tensor, operand_area(plan_, operand, box, rank)),
                      apart(compute, operand),
                      {}};
      plan::Area whole = operand_area(plan_, operand, all, rank);
      if (needs(operand)) group.needed.push_back(whole);
      if (plan::makes(operand.use)) group.made.push_back(std::move(whole));
      if (operand.use == plan::Use::add) group.adds.push_back(touched);
      if (operand.use == plan::Use::read && next) {
        const auto later = strips_of(tensor, operand_area(plan_, operand, *next, rank));
        for (std::size_t i = 0; i < later.size(); ++i)
          touched.steps.push_back(later[i].offset[0] - touched.strips[i].offset[0]);
      }
      (operand.use == plan::Use::read ? group.reads : group.writes).push_back(std::move(touched));
    }
    tiles_[index(rank)].groups.push_back(std::move(group));
  }

  std::vector<std::int64_t> apart(const Compute& compute, const ComputeOperand& operand) const {
    const plan::Tensor& tensor = plan_.tensors[index(operand.tensor)];
    const std::int64_t unit = tensor.type ? size_of(*tensor.type) : 1;
    const std::vector<std::int64_t> stride = tensor.layout();
    std::vector<std::int64_t> apart(compute.axes.size(), 0);
    for (std::size_t i = 0; i < operand.axes.size(); ++i) {
      if (operand.axes[i] < 0) continue;
      const auto axis = index(operand.axes[i]);
      apart[axis] += compute.axes[axis].tile * stride[i] * unit;
    }
    return apart;
  }

  /// Visits all tiles, the last axis of the compute's order fastest: of a tile its group, and its
  /// number in that.
  static void put_in_order(const Compute& compute, const std::vector<Cuts>& cuts,
                           std::int32_t first, RankTiles& tiles) {
    const std::vector<std::int32_t> order = order_of(compute);
    struct Place {
      std::int32_t part, tile;
    };
    std::vector<std::vector<Place>> places;  // by axis: tiles along it, or steps that are one
    for (std::size_t a = 0; a < cuts.size(); ++a) {
      std::vector<Place>& along = places.emplace_back();
      const bool steps = has_steps(compute, static_cast<std::int32_t>(a));
      for (std::size_t p = 0; p + 1 < cuts[a].size(); ++p) {
        const std::int64_t count = steps ? 1 : cuts[a][p + 1] - cuts[a][p];
        for (std::int64_t t = 0; t < count; ++t)
          along.push_back({static_cast<std::int32_t>(p), static_cast<std::int32_t>(t)});
      }
    }
    std::vector<std::size_t> at(cuts.size(), 0);
    while (true) {
      std::int32_t group = 0;
      for (std::size_t a = 0; a < cuts.size(); ++a)
        group = group * (static_cast<std::int32_t>(cuts[a].size()) - 1) + places[a][at[a]].part;
      TileRef ref{first + group, 0};
      const TileGroup& of = tiles.groups[index(ref.group)];
      for (std::size_t a = 0; a < cuts.size(); ++a)
        ref.tile = ref.tile * of.counts[a] + places[a][at[a]].tile;
      tiles.order.push_back(ref);
      std::size_t i = order.size();
      while (i > 0) {
        const auto axis = index(order[i - 1]);
        if (++at[axis] < places[axis].size()) break;
        at[axis] = 0;
        --i;
      }
      if (i == 0) return;
    }
  }

  const plan::Plan& plan_;
  const Movements& movements_;
  const Symmetry& symmetry_;
  Tiles tiles_;
  std::map<Memory, std::vector<plan::Area>> written_, awaited_;
  std::int32_t outputs_ = 0;  // of the computes before
};

}  // namespace

std::int32_t TileGroup::tiles() const {
  std::int32_t tiles = 1;
  for (const std::int32_t count : counts) tiles *= count;
  return tiles;
}

std::int64_t TileGroup::distance(const Touched& touched, std::int32_t tile) const {
  std::int64_t distance = 0;
  for (std::size_t a = counts.size(); a-- > 0 && tile > 0; tile /= counts[a])
    distance += tile % counts[a] * touched.apart[a];
  return distance;
}

Tiles groups_of(const plan::Plan& plan, const Movements& movements, const Symmetry& symmetry) {
  return GroupMaker(plan, movements, symmetry).make();
}

}  // namespace hemiola::program::general
