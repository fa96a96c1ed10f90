// How a tuner goes through its space. Private to the layer.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "core/random.h"
#include "tune/space.h"
#include "tune/trials.h"

namespace hemiola::tune {

/// Numbers from a seed.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : state_(seed) {}
  /// 0 .. count - 1.
  std::size_t below(std::size_t count) {
    state_ += kSplitMixStep;
    return static_cast<std::size_t>(splitmix64(state_) % count);
  }
  template <typename Items>
  void shuffle(Items& items) {
    for (std::size_t i = items.size(); i > 1; --i) std::swap(items[i - 1], items[below(i)]);
  }

 private:
  std::uint64_t state_;
};

/// Coordinate descent, twice: by fluid, to come near and to learn what each value costs, and then
/// by sampled, whose word counts. While there is budget it begins again elsewhere.
///
/// By fluid all values of one dimension are tried, the best of them is kept, then the next
/// dimension, until a round changes nothing or two fifths of what is left are gone.
/// Dimensions are few and of few values, and mostly act on one bound each (tiles on the product,
/// chunks on what is exposed, workgroups on transfers), so that a round, which costs the sum of the
/// numbers of values and not their product, comes near.
///
/// Fluid is blind in places: it may take two values for equal of which one is far faster. So
/// sampled tries in each round one value of every dimension, that of which fluid thinks best, those
/// first that cost least, and goes on from whatever is faster. What sampled has found of a value
/// counts from then on in the place of what fluid thinks.
class Descent {
 public:
  Descent(const Space& space, Trials& trials, Draws& draws, Bucket& bucket)
      : space_(space), trials_(trials), draws_(draws), bucket_(bucket) {}

  void run(const Point& first);

 private:
  struct Move {
    double cost = 0;
    std::size_t dimension = 0, value = 0;
  };
  void descend(Point at, const std::vector<std::size_t>& order);
  void simulate(const std::vector<Point>& points);
  bool improve(Point& at, std::size_t dimension);
  double cost(std::size_t dimension, std::size_t value, std::size_t other) const;
  std::vector<Move> moves(const Point& at) const;
  void confirm(Point at);
  void sample(const Point& point);

  const Space& space_;
  Trials& trials_;
  Draws& draws_;
  Bucket& bucket_;
  std::int64_t fluid_left_ = 0;  ///< simulations that this descent may have by fluid
  /// By dimension and value: over that of the dimension's best, by fluid.
  std::map<std::pair<std::size_t, std::size_t>, double> costs_;
  std::set<Point> tried_;  ///< by sampled
};

}  // namespace hemiola::tune
