// Launches: computes that are kernels of their own, on streams of their rank (plan.h, Compute).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hemiola::plan {

/// Computes by index; what is ordered among launches by the launches alone.
class LaunchOrder {
 public:
  /// Dependencies on computes that do not exist are left out. The code outlives this.
  explicit LaunchOrder(const Code& code);

  /// The streams in the order of their first launches, each with its launches in order.
  const std::vector<std::vector<std::int32_t>>& streams() const { return streams_; }
  /// By compute: the launch before it on its stream, and those that it names. Sorted, each once;
  /// none of computes that are no launches.
  const std::vector<std::int32_t>& directly_before(std::int32_t compute) const {
    return before_[static_cast<std::size_t>(compute)];
  }
  /// Launches that wait for each other, each for the next and the last for the first; empty: none.
  const std::vector<std::int32_t>& circle() const { return circle_; }
  /// All launches, each after those before it. Only without a circle.
  const std::vector<std::int32_t>& sorted() const { return sorted_; }
  /// Whether all of `earlier` is done before anything of `later` starts. Only without a circle.
  bool is_before(std::int32_t earlier, std::int32_t later) const;

 private:
  void find_streams(const Code& code);
  void visit(std::int32_t launch, std::vector<std::int32_t>& path);

  std::vector<std::vector<std::int32_t>> streams_;
  std::vector<std::vector<std::int32_t>> before_;
  std::vector<std::int32_t> sorted_, circle_;
  std::vector<char> done_;  ///< while they are sorted
};

/// Whether an operand is written.
constexpr bool makes(Use use) {
  return use != Use::read;
}
/// Whether tiles along reduced axes make their sum in it.
constexpr bool sums(Use use) {
  return use == Use::accumulate || use == Use::add;
}

/// Whether any compute of the plan is a launch.
bool has_launches(const Plan& plan);

/// Failure for launches of the code of `rank` that name something that does not exist, wait for
/// each other, or add without an order. `at` is the code's JSON pointer, `counts` the numbers of
/// transfers by code and stream.
void validate_launches(const Plan& plan, int rank, const std::string& source, const std::string& at,
                       const std::vector<std::vector<std::int64_t>>& counts);

}  // namespace hemiola::plan
