// How long a schedule takes: its steps, their products beside their transfers, in closed form. What
// orders schedules before they are simulated, and what rules pick by, is this.
#pragma once

#include <span>

#include "explore/rules/piece_model.h"
#include "explore/space/operator.h"
#include "explore/space/schedule.h"

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
  Beside beside{};    ///< what they cost products beside that
};

/// How products are divided.
struct Steps {
  Family family;
  double degree = 1;
  bool copies = false;
  double streams = 1;
  double per_degree = 1 / degree;
};

class OverlapModel {
 public:
  /// `tiles`: of the device's model, and for memory or cache as the case says: what products may
  /// have.
  OverlapModel(const PieceModel& pieces, const OverlapCase& of, std::span<const TileTerms> tiles)
      : pieces_(pieces), case_(of), tiles_(tiles) {}

  /// Where all transfers, of one pass, take so long: they read and write what products do.
  Beside beside(double moving) const;

  /// The product of a step with the best of some tiles: of `most` from number `first` on.
  struct Step {
    std::size_t tile = 0;
    double product = 0;  ///< with its launches; of a step that adds to what is there, if any does
  };
  Step step(const Steps& steps, const Transfers& transfers, std::size_t first = 0,
            std::size_t most = 99) const;

  /// From the first launch to the last result; `own`: the product of the own block, where it is
  /// one by itself.
  double time(const Steps& steps, const Transfers& transfers, const Step& step, double own) const;

  /// One persistent kernel, whose tiles begin when their block is there, and whose blocks leave
  /// when they are complete: peers come one after the other. `places`: units that it has; `chunk`,
  /// `sum`: of one block of one peer. `beside_tiles`: the units move data as well, between tiles.
  double kernel(double places, double chunk, double sum, bool beside_tiles = false) const;

  /// One that gathers across so many nodes, in `across` all in all, and then inside: a block to one
  /// peer there in `inside`.
  double kernel_across_nodes(double places, double nodes, double across, double inside) const;

  /// The same where a switch adds up and sends to all: `per_byte` that goes to each peer, over
  /// links; `around`: once, beside that.
  double multicast_kernel(double places, double per_byte, double around) const;

  /// One block as a launch, with the best of the tiles.
  double block(double places) const;

  /// The whole product as one launch on all units; where parts of its depth are summed in the end
  /// (split-K), if that is faster.
  double whole() const;

 private:
  struct Best {
    std::size_t tile = 0;
    double time = 0;
  };
  /// Of one persistent kernel.
  struct Waves {
    double product = 0;
    double parts = 1;  ///< of the product, after which blocks are complete; not below its waves
    double count = 1;
    double last = 1;  ///< share of the places that the last one has
  };
  Waves waves(double places) const;
  double product(std::size_t tile, const Pieces& pieces, const Beside& beside) const;
  double clipped(const TileTerms& tile, const Pieces& pieces, const Beside& beside) const;
  Best best(const Pieces& pieces, const Beside& beside, std::size_t first = 0,
            std::size_t most = 99) const;
  Pieces pieces_of(const Steps& steps, double places) const;

  const PieceModel& pieces_;
  const OverlapCase& case_;
  std::span<const TileTerms> tiles_;
};

}  // namespace hemiola::explore
