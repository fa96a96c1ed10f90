// When chunks arrive, in steps: the order in which a rank's kernel can consume or has to produce
// the parts of a tensor. A step is a unit of time that every transfer takes; what really takes how
// long is the simulator's business. (Syncopate, OSDI '26: estimated periods, waves of a schedule.)
#pragma once

#include <cstdint>
#include <vector>

#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::plan {

/// The steps at which all transfers of a plan start if each takes one and starts as soon as the
/// order of its stream and its dependencies on transfers allow (dependencies on computes are taken
/// as met).
class Timeline {
 public:
  /// `plan` is valid. Failure (exit code 4) when transfers wait for each other; it names the
  /// transfers of the circle.
  explicit Timeline(const Plan& plan);

  std::int64_t start(int rank, std::int32_t stream, std::int64_t transfer) const {
    return start_[first_[static_cast<std::size_t>(rank)][static_cast<std::size_t>(stream)] +
                  static_cast<std::size_t>(transfer)];
  }

 private:
  std::vector<std::vector<std::size_t>> first_;  ///< by rank and stream: its first transfer's index
  std::vector<std::int64_t> start_;
};

/// A transfer that touches a tensor of the rank: whose it is, and what it touches there.
struct Touch {
  Area area;
  int rank = 0;  ///< the transfer's
  std::int32_t stream = 0;
  std::int64_t transfer = -1;  ///< -1: resident at the start
  bool operator==(const Touch&) const = default;
};

/// Everything that arrives (or, in a tensor that transfers only read, leaves) at the same step.
struct Wave {
  std::int64_t step = 0;  ///< of arrival: one after its transfers' start; 0: resident
  std::vector<Touch> touches;
};

/// The waves of `tensor` on `rank`, in order. Where transfers write into it: what is resident
/// first, without transfer, then what is written, by step. Where they only read it: what they read,
/// each element with the first transfer that does; the rank's kernel should compute it in this
/// order.
std::vector<Wave> waves(const Plan& plan, const Timeline& timeline, int rank, std::int32_t tensor);

}  // namespace hemiola::plan
