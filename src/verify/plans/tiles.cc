// Tiles of a plan's computes: what each reads and writes, and which transfers it waits for.
#include <algorithm>
#include <utility>

#include "plan/tiles.h"
#include "verify/plans/interpreter.h"

namespace hemiola::verify {

void PlanInterpreter::create_tiles() {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const std::vector<plan::Compute>& computes = plan_.code(rank).computes;
    for (std::size_t c = 0; c < computes.size(); ++c) {
      const std::int64_t count = count_tiles(computes[c]);
      for (std::int64_t number = 0; number < count; ++number) {
        Tile tile{.rank = rank,
                  .compute = static_cast<std::int32_t>(c),
                  .number = number,
                  .launch = launch_of(rank, static_cast<std::int64_t>(c))};
        const plan::Rect box = tile_box(computes[c], number);
        for (const plan::ComputeOperand& operand : computes[c].operands) {
          const plan::Area area = operand_area(plan_, operand, box, rank);
          atoms_.append(area, operand.use == plan::Use::read         ? tile.reads
                              : operand.use == plan::Use::write      ? tile.writes
                              : operand.use == plan::Use::accumulate ? tile.accumulates
                                                                     : tile.adds);
        }
        const auto self = static_cast<std::int32_t>(tiles_.size());
        for (const auto* atoms : {&tile.reads, &tile.adds}) {
          for (const std::int32_t atom : *atoms)
            if (waits_by_itself(tile)) tile_cells_[cell_index(rank, atom)].readers.push_back(self);
        }
        if (tile.launch >= 0) {
          Launch& launch = launches_[index(tile.launch)];
          launch.tiles.push_back(self);
          ++launch.unfinished;
          ++tile.waiting;
        }
        for (const auto* atoms : {&tile.writes, &tile.accumulates, &tile.adds}) {
          for (const std::int32_t atom : *atoms) {
            TileCell& cell = tile_cells_[cell_index(rank, atom)];
            cell.writers.push_back(self);
            ++cell.writing;
          }
        }
        tiles_.push_back(std::move(tile));
      }
    }
  }
  if (!tiles_.empty()) find_arrivals();
  for (std::size_t tile = 0; tile < tiles_.size(); ++tile)
    if (tiles_[tile].waiting == 0) ready_tiles_.push_back(static_cast<std::int32_t>(tile));
}

void PlanInterpreter::find_arrivals() {
  unrolled_.each_arrival([&](int rank, const plan::Area& area, TransferId id) {
    if (plan_.code(rank).computes.empty()) return;
    for (const std::int32_t atom : atoms_.of(area)) {
      const auto found = tile_cells_.find(cell_index(rank, atom));
      if (found == tile_cells_.end() || found->second.readers.empty()) continue;
      found->second.arrivals.push_back(id);
      if (found->second.arriving++ > 0) continue;
      for (const std::int32_t tile : found->second.readers) ++tiles_[index(tile)].waiting;
    }
  });
}

/// What the computes of a rank leave of an atom: what the last of those that write it makes, or
/// what the caller left, and what all that add to it make.
Value PlanInterpreter::made_of(int rank, std::int32_t atom, Value own, const TileCell& cell) {
  std::set<std::int32_t> adders;
  std::int32_t last = -1;
  for (const std::int32_t number : cell.writers) {
    const Tile& tile = tiles_[index(number)];
    if (std::exchange(last, tile.compute) == tile.compute) continue;
    const bool adds = std::ranges::find(tile.adds, atom) != tile.adds.end();
    if (adds)
      adders.insert(tile.compute);
    else
      own = computed(atom, rank, tile.compute, false);
  }
  for (const std::int32_t adder : adders) own = values_.sum(own, computed(atom, rank, adder, true));
  return own;
}

void PlanInterpreter::find_owners() {
  owners_.resize(index(atoms_.count()), kUndefined);
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (std::int32_t atom = 0; atom < atoms_.count(); ++atom) {
      const auto tile = tile_cells_.find(cell_index(rank, atom));
      const bool computes = tile != tile_cells_.end() && !tile->second.writers.empty();
      Value own = cells_[cell_index(rank, atom)].value;
      if (computes) own = made_of(rank, atom, own, tile->second);
      owners_[index(atom)] = values_.sum(owners_[index(atom)], own);
    }
  }
}

void PlanInterpreter::find_meanings() {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    for (const plan::Expectation& expectation : plan_.code(rank).expected)
      for (const auto& [atom, meaning] : meanings(expectation, rank))
        meanings_.emplace(cell_index(rank, atom), meaning);
  }
}

std::vector<std::pair<std::int32_t, PlanInterpreter::Meaning>> PlanInterpreter::meanings(
    const plan::Expectation& expectation, int rank) const {
  const Indices at{.rank = rank};
  std::vector<std::int32_t> places, sources;
  atoms_.append(expectation.region, at, places);
  atoms_.append(expectation.of ? *expectation.of : expectation.region, at, sources);
  Meaning meaning{0, expectation.reduced, -1};
  if (expectation.holder) meaning.holder = static_cast<std::int32_t>((*expectation.holder)(at));
  std::vector<std::pair<std::int32_t, Meaning>> all;
  for (std::size_t i = 0; i < places.size(); ++i) {
    meaning.source = sources[i];
    all.emplace_back(places[i], meaning);
  }
  return all;
}

bool PlanInterpreter::is_right(Value value, const Meaning& meaning) const {
  const Value all = owners(meaning.source);
  if (meaning.reduced) return value == all;
  if (!value.defined()) return false;
  const std::vector<Term> terms = values_.terms(value);
  const std::int32_t one = terms.front().source;
  if (meaning.holder >= 0 && one != meaning.holder) return false;
  // All that this owner had, and nothing else.
  std::vector<Term> wanted;
  for (const Term& owner : values_.terms(all))
    if (owner.source <= one && one < owner.source + owner.sources)
      wanted.push_back({one, 1, owner.delta, 1});
  return terms == wanted;
}

}  // namespace hemiola::verify
