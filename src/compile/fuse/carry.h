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

/// "float16": what Triton calls the type of all that the plan moves. Failure at `file`: there are
/// several, or it has no name for it.
std::string carried_type(const plan::Plan& plan, const std::string& file);

}  // namespace hemiola::compile
