// Plans that a rotation of the ranks maps onto themselves: of ranks that do the same, the general
// lowering looks at the first ones only, and writes one code for all. Private to lower/.
#pragma once

#include <cstdint>
#include <vector>

#include "program/lower/general.h"

namespace hemiola::program::general {

/// How a tensor goes round with the ranks: what rank r does with element x, rank r + period does
/// with element x + step, modulo `extent`, along one axis.
struct TensorTurn {
  std::int32_t axis = -1;             ///< -1: it does not, every rank uses the same elements
  std::int64_t step = 0, extent = 0;  ///< elements
  std::int64_t unit = 0, row = 0;     ///< the same two in memory; units of area.h
};

/// Rank r + period (modulo ranks) does what rank r does, with all ranks `period` further and all
/// tensors turned.
struct Symmetry {
  int ranks = 1;
  int period = 1;                 ///< divides ranks; ranks itself: no symmetry
  std::vector<TensorTurn> turns;  ///< by tensor; empty without symmetry

  bool folds() const { return period < ranks; }
  int images() const { return ranks / period; }
  /// The rank below the period that does what `rank` does, and how many periods before it is.
  int representative(int rank) const { return rank % period; }
  int image(int rank) const { return rank / period; }
  int moved(int rank, int images) const {
    return ((rank + images * period) % ranks + ranks) % ranks;
  }
  /// The elements that are used `images` periods further (or before) as the area is here.
  plan::Area turned(const plan::Area& area, int images) const;

  /// `rank`, as the code of `own` names it.
  Affine rank_seen_from(int own, int rank) const;
  /// The chunk at `offset` units, as the code of rank `own` names it, where a chunk has `unit`
  /// units.
  Affine chunk_seen_from(int own, std::int32_t tensor, std::int64_t offset,
                         std::int64_t unit) const;
};

/// No symmetry: every rank for itself.
Symmetry no_symmetry(const plan::Plan& plan);
/// The one with the smallest period. Movements have strips. Sound, not complete: a symmetry that is
/// overlooked costs time only. Movements with packets have none.
Symmetry symmetry_of(const plan::Plan& plan, const Movements& movements);

}  // namespace hemiola::program::general
