#include "tune/descent.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace hemiola::tune {
namespace {

/// Values that fluid takes for so much slower are not tried by sampled (docs/fluid_table.md).
constexpr double kFarByFluid = 1.5;
/// Of what is left of the budget, so many fifths are fluid's at most (docs/tune.md).
constexpr std::int64_t kFifthsOfFluid = 2;

}  // namespace

void Descent::run(const Point& first) {
  std::vector<std::size_t> order(space_.dimensions().size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<Point> others = space_.points();
  draws_.shuffle(others);
  descend(first, order);
  for (const Point& other : others) {
    if (trials_.left() < 1) return;
    if (trials_.is_known(other)) continue;
    draws_.shuffle(order);
    descend(other, order);
  }
}

void Descent::descend(Point at, const std::vector<std::size_t>& order) {
  const std::int64_t before = bucket_.simulations;
  fluid_left_ = std::max<std::int64_t>(1, (trials_.left() + 1) * kFifthsOfFluid / 5);
  simulate({at});
  for (bool better = true; better && fluid_left_ > 0;) {
    better = false;
    for (const std::size_t dimension : order) better |= improve(at, dimension);
  }
  if (trials_.fluid(at)) confirm(at);
  if (bucket_.simulations > before) ++bucket_.descents;
}

void Descent::simulate(const std::vector<Point>& points) {
  fluid_left_ -= trials_.simulate(points, fluid_left_);
}

/// Whether another value of the dimension is faster than the point by fluid, which is then that.
bool Descent::improve(Point& at, std::size_t dimension) {
  std::vector<Point> line;
  for (std::size_t value = 0; value < space_.dimensions()[dimension].values.size(); ++value)
    line.push_back(space_.with(at, dimension, value));
  simulate(line);
  const std::optional<Time> before = trials_.fluid(at);
  std::optional<Time> best = before;
  for (const Point& other : line) {
    const std::optional<Time> time = trials_.fluid(other);
    if (!time || (best && *time >= *best)) continue;
    best = time;
    at = other;
  }
  for (const Point& other : line) {
    if (const std::optional<Time> time = trials_.fluid(other))
      costs_[{dimension, other[dimension]}] =
          static_cast<double>(time->fs) / static_cast<double>(best->fs);
  }
  return best != before;
}

/// What a value costs beside another one: as sampled has found it, in the mean of all points that
/// differ in it alone, else as fluid knows; 1 where neither does.
double Descent::cost(std::size_t dimension, std::size_t value, std::size_t other) const {
  double sum = 0;
  int found = 0;
  for (const Point& point : tried_) {
    if (point[dimension] != value) continue;
    const Point beside = space_.with(point, dimension, other);
    const std::optional<Time> with = trials_.sampled(point), without = trials_.sampled(beside);
    if (!tried_.contains(beside) || !with || !without) continue;
    sum += static_cast<double>(with->fs) / static_cast<double>(without->fs);
    ++found;
  }
  if (found > 0) return sum / found;
  const auto by_fluid = [&](std::size_t of) {
    const auto known = costs_.find({dimension, of});
    return known == costs_.end() ? 1 : known->second;
  };
  return by_fluid(value) / by_fluid(other);
}

/// Of each dimension the value that promises most among those that sampled has not tried from here.
std::vector<Descent::Move> Descent::moves(const Point& at) const {
  std::vector<Move> all;
  for (std::size_t dimension = 0; dimension < at.size(); ++dimension) {
    std::optional<Move> best;
    for (std::size_t value = 0; value < space_.dimensions()[dimension].values.size(); ++value) {
      const Point other = space_.with(at, dimension, value);
      if (other == at || tried_.contains(other)) continue;
      const Move move{cost(dimension, value, at[dimension]), dimension, value};
      if (move.cost <= kFarByFluid && (!best || move.cost < best->cost)) best = move;
    }
    if (best) all.push_back(*best);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Move& a, const Move& b) { return a.cost < b.cost; });
  return all;
}

void Descent::confirm(Point at) {
  sample(at);
  for (std::vector<Move> round = moves(at); !round.empty(); round = moves(at)) {
    for (const Move& move : round) {
      if (trials_.left() < 1) return;
      const Point other = space_.with(at, move.dimension, move.value);
      sample(other);
      const std::optional<Time> time = trials_.sampled(other), now = trials_.sampled(at);
      if (time && (!now || *time < *now)) at = other;
    }
  }
}

void Descent::sample(const Point& point) {
  trials_.sample(point);
  tried_.insert(point);
}

}  // namespace hemiola::tune
