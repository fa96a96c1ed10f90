// How far an actor is known on each of the ranks that do the same (fold.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_set>
#include <vector>

namespace hemiola::verify {

/// A number of segments for each image of an actor. From 0 on: the same number for all of them,
/// which is all there is where nothing folds. Below: the function of the image that a ReachTable
/// has under this number.
using Reach = std::int32_t;

/// Functions of the image, each once, so that equal ones are one number. A function is kept as runs
/// along a line: in a ring a workgroup knows each further neighbour as much less as it is farther
/// away, which is a single run however many ranks there are.
class ReachTable {
 public:
  ReachTable();

  std::int32_t at(Reach reach, std::int32_t image) const;
  /// The larger of both, image by image. Both have the same number of images.
  Reach highest(Reach a, Reach b);
  /// `reach`, and at least `segments` at one of `images` images.
  Reach raised(Reach reach, std::int32_t image, std::int32_t images, std::int32_t segments);
  /// What was known of image i is known of image i + turn, modulo the number of images.
  Reach turned(Reach reach, std::int32_t turn);
  /// The largest value of any image.
  std::int32_t maximum(Reach reach) const;

  /// Functions that have come since the last sweep; a sweep pays once there are many.
  bool is_crowded() const { return live_ > limit_; }
  /// Forgets all functions but those that were marked since the call before.
  void mark(Reach reach) {
    if (reach < 0) functions_[number(reach)].marked = true;
  }
  void sweep();

 private:
  /// Values of images [begin, begin of the next run): value, value + slope, ...
  struct Run {
    std::int32_t begin = 0;
    std::int32_t value = 0;
    std::int32_t slope = 0;
    bool operator==(const Run&) const = default;
  };
  struct Function {
    std::int32_t images = 0;
    bool marked = false;
    std::vector<Run> runs;  ///< empty: this place in the table is free
    bool operator==(const Function& other) const {
      return images == other.images && runs == other.runs;
    }
  };
  /// Puts values together in the order of the images, in the fewest runs that this order gives:
  /// equal functions have equal runs.
  class Builder;
  struct Hash {
    const ReachTable* table;
    std::size_t operator()(Reach reach) const;
  };
  struct Equal {
    const ReachTable* table;
    bool operator()(Reach a, Reach b) const;
  };
  struct Answer {
    Reach a = 0;
    Reach b = 0;
    Reach result = -1;
    bool known = false;
  };
  static std::size_t number(Reach reach) { return static_cast<std::size_t>(-(reach + 1)); }
  const Function& function(Reach reach) const { return functions_[number(reach)]; }
  Reach intern(Function function);
  Reach compute_highest(Reach a, Reach b);
  Reach compute_turned(const Function& function, std::int32_t turn);
  static Answer& answer(std::array<Answer, 4096>& answers, Reach a, Reach b);

  std::deque<Function> functions_;
  std::vector<Reach> free_;
  std::unordered_set<Reach, Hash, Equal> interned_;
  std::array<Answer, 4096> maxima_{};  ///< the last ones, by both numbers
  std::array<Answer, 4096> turns_{};
  std::size_t live_ = 0;
  std::size_t limit_ = 1 << 14;
};

}  // namespace hemiola::verify
