// Which computes of a plan are waves of one grid, and which need a launch of their own. Computes
// that are one operator on disjoint boxes of the same tensors, chunks of one product in the order
// of their launches, become one compute here; others follow it as grids of their own.
// docs/compile_kernel.md#launches-as-waves-of-one-grid says what a user sees of it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compile/fuse/tasks.h"
#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::compile {

/// A compute of the plan as it was: part of a grid.
struct GridLaunch {
  std::string name;
  std::vector<plan::Rect> boxes;  ///< its tiles, in elements, by axis of the grid's compute
  /// Transfers that are complete before any of its tiles starts: what it names, and what those
  /// before it in the grid name.
  std::vector<Point> needs{};
  /// Its tiles wait for what they read, and transfers for the tiles that they take, as in a plan
  /// of one compute. Else all of it waits, and all of it is waited for.
  bool by_tiles = false;
};

/// All of a launch, which a transfer comes after.
struct TakenLaunch {
  int rank = 0;
  std::int32_t grid = 0, launch = 0;
  auto operator<=>(const TakenLaunch&) const = default;
};

/// Elements that are made by tiles of waves of their own: those that go elsewhere.
struct KeptApart {
  int rank = 0;
  std::int32_t tensor = 0;
  plan::Rect rect;
};

struct Grids {
  /// The plan with one compute for each grid in the code of every rank, in their order.
  plan::Plan plan;
  /// By grid and rank, in the order in which tiles are taken.
  std::vector<std::vector<std::vector<GridLaunch>>> launches;
  std::map<Point, std::vector<TakenLaunch>> taken;  ///< by transfer
  std::vector<KeptApart> apart{};                   ///< see fuse/stores.h
  std::vector<std::string> reasons;  ///< by grid but the first: why it is none with the one before
  bool are_of_launches = false;  ///< false: the plan is as it was, one compute that waits by tile

  std::int32_t count() const { return static_cast<std::int32_t>(launches.size()); }
};

/// Failure at `file` (exit code 2), with the computes by name: there is none; one adds to what
/// another left; ranks run different ones; together they are no box of tiles.
Grids grids_of(const plan::Plan& plan, const std::string& file);

/// Tensors whose axes i and i + 1 are one in all computes (blocks of ranks, and rows of a block):
/// by tensor that axis i; -1: none. Private to the grids.
using Folds = std::vector<std::int32_t>;

/// A plan with numbers in it: a code for each rank, loops unrolled, and folded tensors with one
/// axis in the place of two. Computes stay away. Dependencies on computes are left as regions, or
/// left out where they name a launch.
plan::Plan with_folded_tensors(const plan::Plan& plan, const Folds& folds);

/// Elements [begin, end) of two axes as boxes of one, whose length along the second is `length`.
std::vector<plan::Rect> folded(const plan::Rect& rect, std::size_t axis, std::int64_t length);

}  // namespace hemiola::compile
