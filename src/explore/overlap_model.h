// How long a schedule takes: its steps, their products beside their transfers, in closed form. What
// orders schedules before they are simulated, and what rules pick by, is this.
#pragma once

#include <span>

#include "explore/operator.h"
#include "explore/piece_model.h"
#include "explore/schedule.h"

namespace hemiola::explore {

/// An operator as arithmetic wants it: the product of one block, and what one rank sends to one
/// other.
struct OverlapCase {
  double ranks = 2;
  double rows = 0, columns = 0, depth = 0;
  double bytes = 0;
  bool first = true;     ///< communication comes first
  bool sums = false;     ///< what arrives is added
  bool for_all = false;  ///< and the sums go to everybody, over the same ways once more
  bool cached = false;   ///< the memory-side cache holds what is touched

  static OverlapCase of(const Operator& op, const PieceModel& pieces);
  double passes() const { return for_all ? 2 : 1; }
};

/// What moves data in a schedule. Times are femtoseconds.
struct Transfers {
  double chunk = 0;   ///< of one step, for all peers, until products may begin
  double sum = 0;     ///< of adding what a step brought
  double copied = 0;  ///< of a byte that is copied beside others, or from there to its place
  double places = 1;  ///< compute units that are left to products
};

/// How products are divided.
struct Steps {
  Family family;
  double degree = 1;
  bool copies = false;
  double streams = 1;
};

class OverlapModel {
 public:
  OverlapModel(const PieceModel& pieces, const OverlapCase& of);

  /// From the first launch to the last result, with the best of the tiles; `own`: the product of
  /// the own block, where it is one by itself.
  double time(const Steps& steps, const Transfers& transfers, std::span<const Tile> tiles,
              double own) const;

  /// One block as a launch.
  double block(double places, std::span<const Tile> tiles) const;

  /// The whole product as one launch on all units; where parts of its depth are summed in the end
  /// (split-K), if that is faster.
  double whole(std::span<const Tile> tiles) const;

 private:
  Beside beside(double moving) const;
  double best(std::span<const Tile> tiles, const Pieces& pieces, const Beside& beside) const;

  const PieceModel& pieces_;
  const OverlapCase case_;
  double limited_ = 0;  ///< no product of all blocks takes less
};

}  // namespace hemiola::explore
