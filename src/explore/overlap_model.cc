#include "explore/overlap_model.h"

#include <algorithm>
#include <cmath>

namespace hemiola::explore {

OverlapCase OverlapCase::of(const Operator& op, const PieceModel& pieces) {
  const Blocks blocks = blocks_of(op);
  OverlapCase one{.ranks = static_cast<double>(op.ranks),
                  .rows = static_cast<double>(blocks.rows),
                  .columns = static_cast<double>(blocks.columns),
                  .depth = static_cast<double>(blocks.depth),
                  .bytes = static_cast<double>(blocks.bytes.count),
                  .first = communicates_first(op.kind),
                  .sums = adds_up(op.kind),
                  .for_all = op.kind == OperatorKind::gemm_ar};
  const double left = one.ranks * one.rows * one.depth;
  const double results = one.ranks * one.rows * one.columns;
  double elements = left + one.depth * one.columns + results;
  if (op.kind == OperatorKind::a2a_gemm) elements += left;  // as they are sent, and as they arrive
  if (op.kind == OperatorKind::gemm_a2a || one.sums) elements += results;
  one.cached = pieces.is_cached(pieces.element * elements);
  return one;
}

OverlapModel::OverlapModel(const PieceModel& pieces, const OverlapCase& of)
    : pieces_(pieces), case_(of) {
  limited_ = 2 * of.ranks * of.rows * of.columns * of.depth * pieces.power;
}

/// Where transfers are under way for so long: they read and write what products do.
Beside OverlapModel::beside(double moving) const {
  const double share = std::min(1.0, moving * case_.passes() / std::max(1.0, limited_));
  const double bytes = 2 * (case_.ranks - 1) * case_.bytes / std::max(1.0, moving);
  const auto left = [&](double per_byte) {
    return std::max(0.5, 1 - share * bytes * per_byte);
  };
  return {left(pieces_.l2_of_transfers), left(pieces_.memory_of(case_.cached))};
}

double OverlapModel::best(std::span<const Tile> tiles, const Pieces& pieces,
                          const Beside& beside) const {
  // The power limit: nothing is gained by other tiles where the first is next to it.
  const double least_possible = 1.02 * 2 * pieces.blocks * pieces.rows * pieces.columns *
                                pieces.depth * pieces_.power;
  double least = pieces_.time(tiles.front(), pieces, case_.cached, beside);
  for (const Tile& tile : tiles.subspan(1)) {
    if (least <= least_possible) break;
    least = std::min(least, pieces_.time(tile, pieces, case_.cached, beside));
  }
  return least;
}

double OverlapModel::block(double places, std::span<const Tile> tiles) const {
  const Pieces one{
      .rows = case_.rows, .columns = case_.columns, .depth = case_.depth, .places = places};
  return best(tiles, one, {}) + pieces_.launch;
}

double OverlapModel::time(const Steps& steps, const Transfers& transfers,
                          std::span<const Tile> tiles, double own) const {
  const double d = steps.degree;
  const bool by_rows = steps.family.division == Division::rows;
  const bool shards = steps.family.division == Division::shards;
  const bool hetero = steps.family.has_own();
  if (!hetero) own = 0;
  const double blocks = shards ? 1 : case_.ranks - (hetero ? 1 : 0);
  Pieces step{.blocks = blocks,
              .rows = case_.rows,
              .columns = case_.columns,
              .depth = case_.depth,
              .places = transfers.places};
  if (by_rows) {
    step.rows /= d;
  } else if (!shards) {
    (case_.first ? step.depth : step.columns) /= d;
  }
  const double copy = steps.copies ? blocks * step.rows *
                                         (case_.first ? step.columns : step.depth) *
                                         pieces_.element * transfers.copied
                                   : 0;
  if (steps.copies) {
    step.rows *= blocks;
    step.blocks = 1;
  }
  const Beside left = beside(transfers.chunk * d);
  double times = 1, launches = 1;
  if (!steps.family.fused && !shards) {
    const double together = std::min(steps.streams, blocks);
    launches = std::ceil(blocks / together);
    if (together > 1) {
      step.together = together;
    } else {
      step.blocks = 1;
      times = blocks;
    }
  }
  const double launch = launches * pieces_.launch;
  const double each = times * best(tiles, step, left) + launch;
  double all = d * each;
  if (!by_rows && case_.first && !shards && d > 1) {
    step.adds = true;
    all = each + (d - 1) * (times * best(tiles, step, left) + launch);
  }
  // Nothing but data stands between a transfer and its product. Copies are a stage of their own,
  // behind products or in front of them.
  const double chunk = transfers.chunk * case_.passes();
  if (case_.first) {
    const double computed = std::max({own + all, chunk + all, d * chunk + all / d});
    if (!steps.copies) return computed;
    return std::max(computed, std::max(chunk, own) + each + (d - 1) * copy) + copy;
  }
  const double moved = std::max(each + d * chunk, all + chunk);
  double added = std::max(moved, each + chunk + (d - 1) * transfers.sum) + transfers.sum;
  if (steps.copies) added = std::max(added, (d - 1) * copy + each + chunk + transfers.sum) + copy;
  // Where everybody waits for the sum of a block, its own part of it comes first.
  if (case_.for_all) return own + added;
  // Else it is made last, and added to the sums of all steps in the end.
  const double own_added =
      case_.sums && hetero && !shards ? d * transfers.sum * 2 / case_.ranks : 0;
  return std::max(added, all + own) + own_added;
}

double OverlapModel::whole(std::span<const Tile> tiles) const {
  const Pieces one{.rows = case_.rows * case_.ranks,
                   .columns = case_.columns,
                   .depth = case_.depth,
                   .places = pieces_.units};
  double least = best(tiles, one, {});
  // Parts of the depth are blocks of their own, whose sums are written and read as float32.
  for (const double parts : {2.0, 4.0, 8.0}) {
    Pieces split = one;
    split.blocks = parts;
    split.depth /= parts;
    const double sums = 8 * parts * one.rows * one.columns * pieces_.memory_of(case_.cached);
    const double time = best(tiles, split, {}) + sums;
    if (time >= least) break;
    least = time;
  }
  return least + pieces_.launch;
}

}  // namespace hemiola::explore
