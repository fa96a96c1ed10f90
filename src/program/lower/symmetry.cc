// Which rotation maps a plan onto itself. Every tensor either stays as it is or turns along one of
// its axes; movements say which of these can be, tiles which of them go together.
#include "program/lower/symmetry.h"

#include <algorithm>
#include <bit>
#include <tuple>

#include "core/index.h"
#include "plan/launches.h"

namespace hemiola::program::general {
namespace {

std::int64_t residue(std::int64_t value, std::int64_t modulus) {
  return (value % modulus + modulus) % modulus;
}

/// Ways in which a tensor may turn: bit 0 not at all, bit a + 1 along axis a.
using Ways = std::uint32_t;

/// The rectangle one period (or several, or back) further, which begins where it may reach beyond
/// the end of the axis.
plan::Rect turned_rect(plan::Rect rect, const TensorTurn& turn, int images) {
  if (turn.axis < 0) return rect;
  const std::size_t axis = index(turn.axis);
  if (rect.begin[axis] == 0 && rect.end[axis] == turn.extent) return rect;  // all of it
  const std::int64_t length = rect.end[axis] - rect.begin[axis];
  rect.begin[axis] = residue(rect.begin[axis] + images * turn.step, turn.extent);
  rect.end[axis] = rect.begin[axis] + length;
  return rect;
}

class SymmetryFinder {
 public:
  SymmetryFinder(const plan::Plan& plan, const Movements& movements, int period)
      : plan_(plan), movements_(movements), period_(period), images_(plan.ranks / period) {}

  bool find() {
    make_turns();
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const int next = (rank + period_) % plan_.ranks;
      if (plan_.code(rank).computes != plan_.code(next).computes) return false;
      if (!alike(movements_[index(rank)], movements_[index(next)])) return false;
    }
    if (!collect_computes() || !narrow()) return false;
    for (Ways& ways : ways_) {
      if (std::has_single_bit(ways)) continue;
      ways &= ~ways + 1;  // the first of them, which is not to turn at all
      if (!narrow()) return false;
    }
    return true;
  }

  Symmetry symmetry() const {
    Symmetry found{plan_.ranks, period_, {}};
    for (std::size_t t = 0; t < ways_.size(); ++t)
      found.turns.push_back(turns_[t][index(std::countr_zero(ways_[t]))]);
    return found;
  }

 private:
  /// All turns that are possible, by tensor and way.
  void make_turns() {
    for (const plan::Tensor& tensor : plan_.tensors) {
      const std::int64_t size = tensor.type ? size_of(*tensor.type) : 1;
      const std::vector<std::int64_t> stride = tensor.layout();
      turns_.push_back({TensorTurn{}});
      Ways ways = 1;
      for (std::size_t axis = 0; axis < tensor.shape.size(); ++axis) {
        TensorTurn turn{.axis = static_cast<std::int32_t>(axis)};
        turn.extent = tensor.shape[axis];
        turn.step = turn.extent / images_;
        turn.unit = turn.step * stride[axis] * size;
        turn.row = turn.extent * stride[axis] * size;
        turns_.back().push_back(turn);
        if (turn.extent % images_ == 0 && turn.unit > 0 && turn.unit % period_ == 0 &&
            is_in_rows(tensor, stride, axis))
          ways |= Ways{2} << axis;
      }
      ways_.push_back(ways);
    }
  }

  /// Whether memory is rows of the axis with all that is behind it, so that it turns in each row.
  static bool is_in_rows(const plan::Tensor& tensor, const std::vector<std::int64_t>& stride,
                         std::size_t axis) {
    const std::int64_t row = tensor.shape[axis] * stride[axis];
    std::int64_t last = 0;
    for (std::size_t other = 0; other < stride.size(); ++other) {
      if (other < axis && stride[other] % row != 0) return false;
      if (other > axis) last += (tensor.shape[other] - 1) * stride[other];
    }
    return last < stride[axis];
  }

  const TensorTurn& turn(std::int32_t tensor, std::size_t way) const {
    return turns_[index(tensor)][way];
  }

  /// Leaves the ways of a tensor for which `holds(turn)`; false if there are none.
  template <class Holds>
  bool leave(std::int32_t tensor, Holds&& holds) {
    Ways& ways = ways_[index(tensor)];
    for (std::size_t way = 0; way < turns_[index(tensor)].size(); ++way)
      if ((ways >> way & 1) != 0 && !holds(turn(tensor, way))) ways &= ~(Ways{1} << way);
    return ways != 0;
  }

  // Movements.

  bool alike(const std::vector<std::vector<Movement>>& here,
             const std::vector<std::vector<Movement>>& there) {
    return std::equal(
        here.begin(), here.end(), there.begin(), there.end(), [&](const auto& a, const auto& b) {
          return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                            [&](const Movement& x, const Movement& y) { return alike(x, y); });
        });
  }

  bool alike(const Movement& here, const Movement& there) {
    if (here.staged != there.staged || here.swaps != there.swaps ||
        here.sources.size() != there.sources.size() ||
        here.destinations.size() != there.destinations.size() ||
        here.strips.size() != there.strips.size() || dependencies(here) != dependencies(there) ||
        launches(here) != launches(there))
      return false;
    for (std::size_t s = 0; s < here.sources.size(); ++s)
      if (!alike(here, here.sources[s], there, there.sources[s], s)) return false;
    for (std::size_t d = 0; d < here.destinations.size(); ++d)
      if (!alike(here, here.destinations[d], there, there.destinations[d], here.sources.size() + d))
        return false;
    return alike_computed(here, there);
  }

  int distance(int own, int rank) const {
    return static_cast<int>(residue(rank - own, plan_.ranks));
  }

  using Dependency = std::tuple<int, std::int32_t, std::int64_t, bool>;
  std::vector<Dependency> dependencies(const Movement& movement) const {
    std::vector<Dependency> all;
    for (const Movement::After& after : movement.after)
      all.emplace_back(distance(movement.rank, after.rank), after.stream, after.index,
                       after.loads_only);
    std::ranges::sort(all);
    return all;
  }

  std::vector<std::pair<int, std::int32_t>> launches(const Movement& movement) const {
    std::vector<std::pair<int, std::int32_t>> all;
    for (const auto& [rank, launch] : movement.launches)
      all.emplace_back(distance(movement.rank, rank), launch);
    std::ranges::sort(all);
    return all;
  }

  bool alike(const Movement& here, const Place& a, const Movement& there, const Place& b,
             std::size_t which) {
    if (a.packets || b.packets || a.area.tensor != b.area.tensor || a.group != b.group ||
        distance(here.rank, a.rank) != distance(there.rank, b.rank) ||
        (a.group >= 0 && !goes_round(plan_.groups[index(a.group)])))
      return false;
    return leave(a.area.tensor, [&](const TensorTurn& turn) {
      if (!turns_into(a.area, b.area, turn)) return false;
      for (std::size_t i = 0; i < here.strips.size(); ++i)
        if (!turns_into(here.strips[i], there.strips[i], which, turn)) return false;
      return true;
    });
  }

  /// A group of which every member has its image in it, too.
  bool goes_round(const std::vector<int>& group) const {
    return std::ranges::all_of(group, [&](int rank) {
      return std::ranges::find(group, (rank + period_) % plan_.ranks) != group.end();
    });
  }

  static bool turns_into(const plan::Area& a, const plan::Area& b, const TensorTurn& turn) {
    return std::equal(
        a.rects.begin(), a.rects.end(), b.rects.begin(), b.rects.end(),
        [&](const plan::Rect& x, const plan::Rect& y) { return turned_rect(x, turn, 1) == y; });
  }

  /// Every row of a strip lies in one unit of a tensor that turns.
  static bool turns_into(const Strip& a, const Strip& b, std::size_t which,
                         const TensorTurn& turn) {
    if (a.run != b.run || a.rows != b.rows || a.pitch[which] != b.pitch[which]) return false;
    const std::int64_t from = a.offset[which];
    if (turn.axis < 0) return b.offset[which] == from;
    const std::int64_t in_row = from % turn.row;
    const bool each_alone = a.rows == 1 || a.pitch[which] % turn.row == 0;
    const std::int64_t extent = each_alone ? a.run : (a.rows - 1) * a.pitch[which] + a.run;
    return in_row % turn.unit + extent <= turn.unit &&
           b.offset[which] == from - in_row + (in_row + turn.unit) % turn.row;
  }

  bool alike_computed(const Movement& here, const Movement& there) {
    const auto sorted = [&](const Movement& movement) {
      std::vector<std::pair<int, const plan::Area*>> all;
      for (const auto& [rank, area] : movement.computed)
        all.emplace_back(distance(movement.rank, rank), &area);
      std::ranges::stable_sort(all, {}, [](const auto& one) { return one.first; });
      return all;
    };
    const auto ours = sorted(here), theirs = sorted(there);
    return std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                      [&](const auto& a, const auto& b) {
                        return a.first == b.first && a.second->tensor == b.second->tensor &&
                               leave(a.second->tensor, [&](const TensorTurn& turn) {
                                 return turns_into(*a.second, *b.second, turn);
                               });
                      });
  }

  // Computes. Their axes turn as tensors do: by whole tiles, and not where the plan says in which
  // order tiles go.

  struct Choice {
    /// By operand: the ways of its tensor that go with these axes.
    std::vector<Ways> ways;
  };
  struct ComputeChoices {
    const plan::Compute* compute = nullptr;
    std::vector<Choice> choices;  ///< by which axes turn
  };

  bool collect_computes() {
    for (int rank = 0; rank < period_; ++rank) {
      for (const plan::Compute& compute : plan_.code(rank).computes) {
        constexpr std::size_t kMostAxes = 8;
        if (compute.axes.size() > kMostAxes) return false;
        ComputeChoices& all = computes_.emplace_back();
        all.compute = &compute;
        for (std::uint32_t axes = 0; axes < 1U << compute.axes.size(); ++axes) {
          if (!can_turn(compute, axes)) continue;
          Choice& choice = all.choices.emplace_back();
          for (const plan::ComputeOperand& operand : compute.operands)
            choice.ways.push_back(ways_of(compute, operand, axes, rank));
        }
      }
    }
    return true;
  }

  bool can_turn(const plan::Compute& compute, std::uint32_t axes) const {
    if (axes != 0 && !compute.by_arrival) return false;
    for (std::size_t a = 0; a < compute.axes.size(); ++a) {
      const plan::ComputeAxis& axis = compute.axes[a];
      if ((axes >> a & 1) != 0 && axis.extent % (images_ * axis.tile) != 0) return false;
    }
    return true;
  }

  Ways ways_of(const plan::Compute& compute, const plan::ComputeOperand& operand,
               std::uint32_t axes, int rank) const {
    Ways ways = 0;
    for (std::size_t way = 0; way < turns_[index(operand.tensor)].size(); ++way) {
      bool goes = true;
      for (std::size_t i = 0; i < operand.axes.size() && goes; ++i)
        goes = turns_with(compute, operand, i, axes, turn(operand.tensor, way), rank);
      if (goes) ways |= Ways{1} << way;
    }
    return ways;
  }

  /// Whether the image of a tile uses, along axis i of the operand's tensor, the image of what the
  /// tile uses: for all tiles, and all images of the rank.
  bool turns_with(const plan::Compute& compute, const plan::ComputeOperand& operand, std::size_t i,
                  std::uint32_t axes, const TensorTurn& turn, int rank) const {
    const std::int64_t step = turn.axis == static_cast<std::int32_t>(i) ? turn.step : 0;
    if (operand.axes[i] < 0) return step == 0;
    const auto a = index(operand.axes[i]);
    const plan::ComputeAxis& axis = compute.axes[a];
    const std::int64_t moved = (axes >> a & 1) != 0 ? axis.extent / images_ : 0;
    const bool is_fixed = operand.begin.empty() || operand.begin[i].rank == 0;
    if (is_fixed && step == 0 && moved == 0) return true;
    const std::int64_t extent = plan_.tensors[index(operand.tensor)].shape[i];
    for (int image = 0; image < (is_fixed ? 1 : images_); ++image) {
      const int here = rank + image * period_;
      const std::int64_t ours = operand.first(i, here);
      const std::int64_t theirs = operand.first(i, (here + period_) % plan_.ranks);
      for (std::int64_t at = 0; at < axis.extent; at += axis.tile) {
        const std::int64_t length = std::min(axis.tile, axis.extent - at);
        const std::int64_t from = operand.wrapped(ours + at, extent);
        if (operand.wrapped(theirs + (at + moved) % axis.extent, extent) !=
                (step == 0 ? from : (from + step) % extent) ||
            (step != 0 && from % step + length > step))
          return false;
      }
    }
    return true;
  }

  /// Drops what does not go together until nothing more can be dropped; false if nothing is left of
  /// something.
  bool narrow() {
    for (bool changes = true; changes;) {
      changes = false;
      for (ComputeChoices& all : computes_) {
        const auto& operands = all.compute->operands;
        const std::size_t before = all.choices.size();
        std::erase_if(all.choices, [&](const Choice& choice) {
          for (std::size_t o = 0; o < operands.size(); ++o)
            if ((choice.ways[o] & ways_[index(operands[o].tensor)]) == 0) return true;
          return false;
        });
        if (all.choices.empty()) return false;
        changes = changes || all.choices.size() < before;
        for (std::size_t o = 0; o < operands.size(); ++o) {
          Ways possible = 0;
          for (const Choice& choice : all.choices) possible |= choice.ways[o];
          Ways& ways = ways_[index(operands[o].tensor)];
          changes = changes || (ways & ~possible) != 0;
          ways &= possible;
          if (ways == 0) return false;
        }
      }
    }
    return true;
  }

  const plan::Plan& plan_;
  const Movements& movements_;
  const int period_, images_;
  std::vector<std::vector<TensorTurn>> turns_;  // by tensor and way
  std::vector<Ways> ways_;                      // by tensor: those that are left
  std::vector<ComputeChoices> computes_;
};

}  // namespace

plan::Area Symmetry::turned(const plan::Area& area, int images) const {
  if (!folds() || images == 0 || index(area.tensor) >= turns.size()) return area;
  const TensorTurn& turn = turns[index(area.tensor)];
  if (turn.axis < 0) return area;
  const std::size_t axis = index(turn.axis);
  plan::Area result{area.tensor, {}};
  for (const plan::Rect& rect : area.rects) {
    result.rects.push_back(turned_rect(rect, turn, images));
    plan::Rect& first = result.rects.back();
    if (first.end[axis] <= turn.extent) continue;
    plan::Rect rest = first;
    rest.begin[axis] = 0;
    rest.end[axis] = first.end[axis] - turn.extent;
    first.end[axis] = turn.extent;
    result.rects.push_back(std::move(rest));
  }
  return result;
}

Affine Symmetry::rank_seen_from(int own, int rank) const {
  if (!folds()) return constant(rank);
  return rank == own ? own_rank() : neighbour(residue(rank - own, ranks), ranks);
}

Affine Symmetry::chunk_seen_from(int own, std::int32_t tensor, std::int64_t offset,
                                 std::int64_t unit) const {
  Affine chunk{.constant = offset / unit};
  if (!folds() || index(tensor) >= turns.size() || turns[index(tensor)].axis < 0) return chunk;
  const TensorTurn& turn = turns[index(tensor)];
  const std::int64_t in_row = offset % turn.row;
  chunk.rank = turn.unit / period / unit;
  chunk.modulus = turn.row / unit;
  chunk.constant = residue(in_row / unit - chunk.rank * own, chunk.modulus);
  chunk.offset = (offset - in_row) / unit;
  return chunk;
}

Symmetry no_symmetry(const plan::Plan& plan) {
  return {plan.ranks, plan.ranks, {}};
}

Symmetry symmetry_of(const plan::Plan& plan, const Movements& movements) {
  for (int period = 1; period < plan.ranks; ++period) {
    if (plan.ranks % period != 0) continue;
    SymmetryFinder finder(plan, movements, period);
    if (finder.find()) return finder.symmetry();
  }
  return no_symmetry(plan);
}

}  // namespace hemiola::program::general
