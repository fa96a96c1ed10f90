// Computes with numbers, and which of them are waves of one grid. Only grids.cc includes this.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::compile {

inline constexpr const char* kWithoutKernel =
    "without a kernel, 'hemiola compile --plan' writes launches as PyTorch";

/// A compute of a rank with numbers: where its tiles lie along its axes, by the tensor that it
/// makes, and how far each operand lies from there.
struct Placed {
  const plan::Compute* compute = nullptr;
  std::int32_t number = 0;  ///< in the code of its rank
  std::vector<plan::Rect> boxes;
  std::vector<std::vector<std::int64_t>> moved;  ///< by operand and axis of its tensor
};

using Grid = std::vector<Placed>;

/// The smallest box that holds those of all parts.
plan::Rect hull_of(const Grid& grid);

/// The first operand that a compute makes; null: there is none.
const plan::ComputeOperand* result_of(const plan::Compute& compute);

class GridParts {
 public:
  GridParts(const plan::Plan& plan, const std::string& file) : plan_(plan), file_(file) {}

  /// Failure: it makes nothing, or goes around the ends of tensors at
  /// different places.
  Placed placed(const plan::Compute& compute, std::int32_t number, int rank) const;
  /// Why a compute is no wave of a grid; empty: it can be one.
  std::string why_not(const Grid& grid, const Placed& one) const;
  /// Failure: some compute of a whole grid adds to what none of it has made, or to part of a sum.
  void require_begun(const Grid& grid) const;

 private:
  void wrap(Placed& one, std::int32_t axis) const;
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const;
  const plan::Tensor& tensor(std::int32_t number) const {
    return plan_.tensors[static_cast<std::size_t>(number)];
  }

  const plan::Plan& plan_;
  const std::string& file_;
};

}  // namespace hemiola::compile
