// Movements by the programs that compute: one list of waves and movements for each rank, which all
// of its programs go through in the same order, each with its own tiles and its share of movements.
#pragma once

#include <string>
#include <vector>

#include "compile/fuse/fusion.h"
#include "compile/fuse/tasks.h"
#include "plan/plan.h"

namespace hemiola::compile {

/// A wave of the rank's kernel, or a movement.
struct CarriedItem {
  std::int32_t wave = -1;         ///< -1: a movement
  Point movement;                 ///< a transfer of the rank
  std::vector<Point> after{};     ///< transfers of any rank that it waits for
  std::vector<PartWait> parts{};  ///< parts of kernels, likewise
  std::vector<int> told{};        ///< ranks that wait for it, the own one first, then from it on
};

/// By rank, in order. A movement stands in front of the wave before the first one that needs it, so
/// that others have their shares while that wave is computed, but not in front of a wave behind
/// which what it takes is there. Failure at `file`: collectives, sums other than additions, several
/// grids; and (exit code 4) lists that wait for each other.
std::vector<std::vector<CarriedItem>> carried_of(const plan::Plan& plan, const Fusions& fusions,
                                                 const std::vector<RankTasks>& tasks,
                                                 const std::string& file);

struct CarriedData {
  std::string type{};      ///< "float16": what Triton calls it; empty: nothing is carried
  std::int64_t lanes = 1;  ///< elements that rows, their distances and beginnings are multiples of
  std::int64_t bytes = 1;  ///< likewise, and 16 at most
};
/// All that the plan moves. Failure at `file`: of several types, or of one without a name.
CarriedData carried_data(const plan::Plan& plan, const std::string& file);

}  // namespace hemiola::compile
