#include "explore/rules/overlap_model.h"

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

Beside OverlapModel::beside(double moving) const {
  const double product = 2 * case_.ranks * case_.rows * case_.columns * case_.depth * pieces_.power;
  const double share = std::min(1.0, moving * case_.passes() / std::max(1.0, product));
  const double bytes = share * 2 * (case_.ranks - 1) * case_.bytes / std::max(1.0, moving);
  const auto longer = [&](double per_byte) { return 1 / std::max(0.5, 1 - bytes * per_byte); };
  return {longer(pieces_.l2_of_transfers), longer(pieces_.memory_of(case_.cached))};
}

/// A tile that is larger than a block has as much of it as there is.
double OverlapModel::clipped(const TileTerms& tile, const Pieces& pieces,
                             const Beside& beside) const {
  return pieces_.time(pieces_.terms(std::min(tile.high, pieces.rows),
                                    std::min(tile.wide, pieces.columns), case_.cached),
                      pieces, beside);
}

inline double OverlapModel::product(std::size_t number, const Pieces& pieces,
                                    const Beside& beside) const {
  const TileTerms& tile = tiles_[number];
  if (tile.high > pieces.rows || tile.wide > pieces.columns) return clipped(tile, pieces, beside);
  return pieces_.time(tile, pieces, beside);
}

OverlapModel::Best OverlapModel::best(const Pieces& pieces, const Beside& beside, std::size_t first,
                                      std::size_t most) const {
  // The power limit: nothing is gained by other tiles where one is next to it.
  const double enough =
      1.02 * 2 * pieces.blocks * pieces.rows * pieces.columns * pieces.depth * pieces_.power;
  const std::size_t end = std::min(tiles_.size(), first + most);
  Best best{.tile = std::min(first, tiles_.size() - 1)};
  best.time = product(best.tile, pieces, beside);
  for (std::size_t i = best.tile + 1; i < end && best.time > enough; ++i) {
    const double time = product(i, pieces, beside);
    if (time < best.time) best = {i, time};
  }
  return best;
}

double OverlapModel::block(double places) const {
  const Pieces one{
      .rows = case_.rows, .columns = case_.columns, .depth = case_.depth, .places = places};
  return best(one, {}).time + pieces_.launch;
}

Pieces OverlapModel::pieces_of(const Steps& steps, double places) const {
  const Division division = steps.family.division;
  const double blocks =
      division == Division::shards ? 1 : case_.ranks - (steps.family.has_own() ? 1 : 0);
  Pieces step{.blocks = blocks,
              .rows = case_.rows,
              .columns = case_.columns,
              .depth = case_.depth,
              .places = places};
  if (division == Division::rows) {
    step.rows *= steps.per_degree;
  } else if (division == Division::columns) {
    (case_.first ? step.depth : step.columns) *= steps.per_degree;
    step.adds = case_.first && steps.degree > 1;
  }
  if (steps.copies) {
    step.rows *= blocks;
    step.blocks = 1;
  }
  if (!steps.family.fused && division != Division::shards) {
    step.together = std::min(steps.streams, blocks);
    if (step.together <= 1) step.blocks = 1;
  }
  return step;
}

OverlapModel::Step OverlapModel::step(const Steps& steps, const Transfers& transfers,
                                      std::size_t first, std::size_t most) const {
  const Pieces pieces = pieces_of(steps, transfers.places);
  const Best chosen = best(pieces, transfers.beside, first, most);
  // Products of blocks, one after the other, or so many side by side.
  const double blocks = case_.ranks - (steps.family.has_own() ? 1 : 0);
  const bool unfused = !steps.family.fused && steps.family.in_steps();
  const bool one_by_one = unfused && pieces.together <= 1;
  const double times = one_by_one ? blocks : 1;
  const double launches = !unfused     ? 1
                          : one_by_one ? blocks
                                       : whole_parts(blocks / pieces.together);
  const double launch = launches * pieces_.launch;
  return {.tile = chosen.tile, .product = times * chosen.time + launch};
}

double OverlapModel::time(const Steps& steps, const Transfers& transfers, const Step& step,
                          double own) const {
  const double d = steps.degree;
  const bool shards = steps.family.division == Division::shards;
  const bool hetero = steps.family.has_own();
  if (!hetero) own = 0;
  const double each = step.product, all = d * each;
  const double blocks = case_.ranks - (hetero ? 1 : 0);
  const double copy = steps.copies ? blocks * case_.rows * steps.per_degree *
                                         (case_.first ? case_.columns : case_.depth) *
                                         pieces_.element * transfers.copied
                                   : 0;
  // Nothing but data stands between a transfer and its product. Copies are a stage of their own,
  // behind products or in front of them.
  const double chunk = transfers.chunk * case_.passes();
  if (case_.first) {
    const double computed = std::max({own + all, chunk + all, d * chunk + all * steps.per_degree});
    if (!steps.copies) return computed;
    return std::max(computed, std::max(chunk, own) + each + (d - 1) * copy) + copy;
  }
  const double moved = std::max(each + d * chunk, all + chunk);
  double added = std::max(moved, each + chunk + (d - 1) * transfers.sum) + transfers.sum;
  if (steps.copies) added = std::max(added, (d - 1) * copy + each + chunk + transfers.sum) + copy;
  // Where everybody waits for the sum of a block, its own part of it comes first; on a stream of
  // its own beside the others, where there are several: of that only what all units share is lost.
  if (case_.for_all) {
    if (steps.family.fused || steps.streams <= 1) return own + added;
    const double shared = 2 * case_.rows * case_.columns * case_.depth * pieces_.power;
    return added + (hetero ? std::max(own - each, shared) : 0);
  }
  // Else it is made last, and added to the sums of all steps in the end.
  const double own_added = !case_.sums || !hetero ? 0
                           : shards               ? transfers.sum
                                                  : d * transfers.sum * 2 / case_.ranks;
  return std::max(added, all + own) + own_added;
}

// A wave of tiles needs, or makes, several blocks; tiles that are higher than a block do, too.
OverlapModel::Waves OverlapModel::waves(double places) const {
  Pieces one{.rows = case_.ranks * case_.rows,
             .columns = case_.columns,
             .depth = case_.depth,
             .places = places};
  Best chosen = best(one, {});
  const TileTerms& tile = tiles_[chosen.tile];
  const double down = whole_parts(one.rows * tile.per_high);
  const double across = whole_parts(one.columns * tile.per_wide);
  const double all = down * across / places, count = whole_parts(all);
  const double parts = std::min({count, down, case_.ranks});
  // Those of a first wave that needs several blocks begin one after the other.
  if (case_.first && parts < case_.ranks) {
    one.apart = true;
    chosen.time = product(chosen.tile, one, {});
  }
  return {.product = chosen.time + pieces_.launch,
          .parts = parts,
          .count = count,
          .last = 1 - (count - all)};
}

double OverlapModel::kernel(double places, double chunk, double sum, bool beside_tiles) const {
  const double n = case_.ranks;
  const auto [product, parts, count, last] = waves(places);
  const double moved = (n - 1) * chunk * case_.passes();
  if (beside_tiles) return moved + product;
  const double wave = product / parts;
  // The workgroups that have a tile in the last wave are those with the first tiles: they wait for
  // fewer blocks than the others.
  if (case_.first)
    return std::max({moved + wave,
                     std::max(0.0, whole_parts(last * n / count) - 1) * chunk + product,
                     (n / parts - 1) * chunk + product * (last < 1 ? 1 - 1 / count : 1)});
  // Blocks are computed in the order in which they leave, the own one last; a stream sends them
  // and another adds up what comes, each as fast as it can.
  const double slower = std::max(chunk, sum), faster = std::min(chunk, sum);
  const double added = wave + (n - 1) * slower + faster;
  const double computed = std::max(product * (n - 1) / n, wave);  // what leaves
  return std::max({added, computed + chunk + sum, product}) + sum;
}

// Blocks go out inside one after the other; behind the last that comes from another node it goes to
// the others here. Sums go the other way, and where everybody gets them, back behind the last.
double OverlapModel::kernel_across_nodes(double places, double nodes, double across,
                                         double inside) const {
  const double peers = case_.ranks / nodes - 1;
  const double moved = std::max(peers * nodes * inside, across + peers * inside);
  return kernel(places, moved / (case_.ranks - 1), 0) + (case_.for_all ? moved : 0);
}

double OverlapModel::multicast_kernel(double places, double per_byte, double around) const {
  const double n = case_.ranks;
  const auto [product, parts, count, last] = waves(places);
  // What each rank stores of its sums comes down to all; what they add comes up once. Each adds up
  // a block of its own: those that are complete are under way at the same time.
  const double chunk = case_.bytes * per_byte / (n - 1) * (1 + 1 / n);
  return std::max(product / parts + n * chunk, product + chunk) + around;
}

double OverlapModel::whole() const {
  const Pieces one{.rows = case_.rows * case_.ranks,
                   .columns = case_.columns,
                   .depth = case_.depth,
                   .places = pieces_.units};
  double least = best(one, {}).time;
  // Parts of the depth are blocks of their own, whose sums are written and read as float32: as many
  // as fill the units. Where tiles are many, they gain nothing.
  const double sums = 8 * one.rows * one.columns * pieces_.memory_of(case_.cached);
  for (std::size_t i = 0; i < tiles_.size(); ++i) {
    const double tiles =
        whole_parts(one.rows * tiles_[i].per_high) * whole_parts(one.columns * tiles_[i].per_wide);
    if (2 * tiles > pieces_.units) break;  // the others are smaller
    Pieces split = one;
    split.blocks = std::min(8.0, std::floor(pieces_.units / tiles));
    split.depth /= split.blocks;
    least = std::min(least, product(i, split, {}) + split.blocks * sums);
  }
  return least + pieces_.launch;
}

}  // namespace hemiola::explore
