// The tables of a fused kernel, as hemiola_rt makes them (python/hemiola_rt/_work.py).
#include <fmt/format.h>

#include <algorithm>

#include "compile/readback/body.h"
#include "compile/readback/host.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

using Extents = std::vector<std::int64_t>;  ///< by axis of the tiles

/// What stands for `triton.language` in coordinates(): all programs of a grid at once.
class Programs : public Surroundings {
 public:
  Programs(Surroundings& host, const std::array<std::int64_t, 3>& grid)
      : host_(host), grid_(grid) {}

  Value numbers() const { return range_of(0, grid_[0] * grid_[1] * grid_[2]); }

  std::optional<Value> call(std::string_view name, const Arguments& given) override {
    if (name != "tl.program_id" && name != "tl.num_programs") return host_.call(name, given);
    const Value* axis = given.find("axis", 0);
    if (axis == nullptr || !axis->is_number() || axis->base < 0 || axis->base > 2)
      return std::nullopt;
    if (name == "tl.num_programs") return number(grid_[index(axis->base)]);
    std::int64_t before = 1;
    for (std::int64_t i = 0; i < axis->base; ++i) before *= grid_[index(i)];
    return binary("%", binary("//", numbers(), number(before)), number(grid_[index(axis->base)]));
  }
  std::optional<Value> method(const Value&, std::string_view, const Arguments&) override {
    return std::nullopt;
  }
  std::optional<Value> attribute(const Value&, std::string_view) override { return std::nullopt; }
  bool assign(const Value&, std::string_view, const Value&) override { return false; }
  std::optional<Value> subscript(const Value&, const std::vector<Index>&, const Node&) override {
    return std::nullopt;
  }
  bool wait(std::string_view, const Value&, const Value&, const Node&) override { return false; }

 private:
  Surroundings& host_;
  std::array<std::int64_t, 3> grid_;
};

class TableMaker {
 public:
  TableMaker(Walker& walker, Surroundings& host, WorkObject& work)
      : walker_(walker), host_(host), work_(work) {}

  void make(int rank, const SignalsObject* done, const Node& node) {
    node_ = &node;
    for (const auto& [name, axis] : work_.kernel->tiles) {
      Value block = axis->block;
      if (block.type == Type::function)
        block = walker_.apply(block, {.positional = {}, .named = work_.values, .node = &node});
      blocks_.push_back(walker_.whole(block, node, fmt::format("a tile along '{}'", name)));
      if (blocks_.back() <= 0) wrong(node, fmt::format("tiles along '{}' have no elements", name));
    }
    for (const auto& [name, extent] : work_.extents) {
      if (extent <= 0) wrong(node, fmt::format("axis '{}' has {} elements", name, extent));
      extents_.push_back(extent);
    }
    whole_ = counts_of(extents_);
    std::int64_t tiles = 1;
    for (std::size_t i = 0; i < whole_.size(); ++i) {
      tiles = times(tiles, whole_[i]);
      if (tiles > kMostTiles) refuse_tiles(tiles);
      work_.grid[index(work_.kernel->tiles[i].second->grid)] *= whole_[i];
    }
    work_.tiles = tiles;
    walker_.remember(node, tiles * kWordsOfTile);
    number_at_.assign(index(tiles), -1);
    const std::vector<std::int64_t> own = places(extents_, whole_, Extents(whole_.size(), 0));
    for (std::size_t i = 0; i < own.size(); ++i)
      number_at_[index(own[i])] = static_cast<std::int64_t>(i);
    if (std::ranges::count(number_at_, -1) > 0)
      wrong(node, "the kernel's programs do not take every tile");
    for (const std::int64_t place : own) work_.coordinates.push_back(coordinates(place));
    work_.blocks = blocks_;
    add_waves();
    add_turns();
    add_parts(rank, done);
    add_moves();
  }

 private:
  [[noreturn]] void wrong(const Node& node, const std::string& what) const {
    walker_.wrong(node, what, "the file would say so in ready()");
  }

  [[noreturn]] void refuse_tiles(std::int64_t count) const {
    walker_.refuse(*node_, fmt::format("a kernel of {} tiles", count), "take larger blocks");
  }

  Extents counts_of(const Extents& extents) const {
    Extents made;
    for (std::size_t i = 0; i < extents.size(); ++i)
      made.push_back((extents[i] + blocks_[i] - 1) / blocks_[i]);
    return made;
  }

  Extents coordinates(std::int64_t place) const {
    Extents made(whole_.size());
    for (std::size_t i = whole_.size(); i-- > 0;) {
      made[i] = place % whole_[i];
      place /= whole_[i];
    }
    return made;
  }

  /// Where the kernel's programs lie among all tiles, if these extents were all there is, at
  /// `firsts`.
  std::vector<std::int64_t> places(const Extents& extents, const Extents& counts,
                                   const Extents& firsts) {
    const auto& axes = work_.kernel->tiles;
    std::array<std::int64_t, 3> grid{1, 1, 1};
    std::vector<std::pair<std::string, Value>> values = work_.values;
    const auto set = [&](const std::string& name, Value value) {
      for (auto& [known, held] : values)
        if (known == name) return void(held = std::move(value));
      values.emplace_back(name, std::move(value));
    };
    for (std::size_t i = 0; i < axes.size(); ++i) {
      grid[index(axes[i].second->grid)] *= counts[i];
      if (!axes[i].second->size.empty()) set(axes[i].second->size, number(extents[i]));
    }
    Programs programs(host_, grid);
    const std::int64_t count = times(times(grid[0], grid[1]), grid[2]);
    if (count > kMostTiles) refuse_tiles(count);
    walker_.step(*node_, count);
    if (!work_.kernel->tile.empty()) set(work_.kernel->tile, programs.numbers());
    walker_.surround(programs);
    const Value at = walker_.apply(work_.kernel->coordinates,
                                   {.positional = {name("tl")}, .named = values, .node = node_});
    walker_.surround(host_);
    std::vector<std::int64_t> made(index(count), 0);
    if (at.type != Type::dictionary) walker_.refuse(*node_, "coordinates() gives no dictionary");
    for (std::size_t i = 0; i < axes.size(); ++i) {
      const auto found = std::ranges::find_if(
          at.more->entries, [&](const auto& entry) { return entry.first.text == axes[i].first; });
      if (found == at.more->entries.end() || found->second.type != Type::number ||
          found->second.axes.size() > 1 ||
          (!found->second.axes.empty() && found->second.axes[0].count != count &&
           found->second.axes[0].count != 1))
        walker_.refuse(*node_, fmt::format("coordinates() does not say '{}'", axes[i].first));
      const Value& along = found->second;
      for (std::int64_t p = 0; p < count; ++p) {
        const bool is_one = along.axes.empty() || along.axes[0].count == 1;
        const std::int64_t one = along.base + (is_one ? 0 : along.axes[0].at(p));
        if (one < 0 || one >= counts[i])
          wrong(*node_,
                fmt::format("program {} of the kernel takes tile {} along '{}', which has {}", p,
                            one, axes[i].first, counts[i]));
        made[index(p)] = made[index(p)] * whole_[i] + firsts[i] + one;
      }
    }
    return made;
  }

  /// Of the tiles of a wave the kernel's own numbers, in the order in which it would take them.
  std::vector<std::int64_t> numbers(const WorkObject::Wave& wave) {
    Extents firsts, counts, own;
    bool is_own_order = true;
    for (const auto& [name, range] : wave.box)
      if (std::ranges::none_of(work_.extents, [&](const auto& one) { return one.first == name; }))
        wrong(*wave.node, fmt::format("the kernel has no axis '{}'", name));
    for (std::size_t i = 0; i < extents_.size(); ++i) {
      const auto& [name, axis] = work_.kernel->tiles[i];
      const auto found = wave.box.find(name);
      const auto [first, count] = found == wave.box.end()
                                      ? std::pair<std::int64_t, std::int64_t>{0, extents_[i]}
                                      : found->second;
      if (first < 0 || count <= 0 || first + count > extents_[i] || first % blocks_[i] != 0 ||
          (count % blocks_[i] != 0 && first + count != extents_[i]))
        wrong(*wave.node, fmt::format("tiles of {} elements along {} straddle the chunk {}:{}",
                                      blocks_[i], name, first, first + count));
      firsts.push_back(first / blocks_[i]);
      counts.push_back((count + blocks_[i] - 1) / blocks_[i]);
      own.push_back(count);
      is_own_order = is_own_order && (count == extents_[i] || !axis->size.empty());
    }
    std::vector<std::int64_t> made;
    if (is_own_order) {
      for (const std::int64_t place : places(own, counts, firsts))
        made.push_back(number_at_[index(place)]);
      return made;
    }
    std::vector<std::int64_t> list{0};
    for (std::size_t i = 0; i < counts.size(); ++i) {
      std::vector<std::int64_t> longer;
      for (const std::int64_t before : list)
        for (std::int64_t k = 0; k < counts[i]; ++k)
          longer.push_back(before * whole_[i] + firsts[i] + k);
      list = std::move(longer);
    }
    for (const std::int64_t place : list) made.push_back(number_at_[index(place)]);
    std::ranges::sort(made);
    return made;
  }

  /// First and last of the table of needs, which has each list of them once.
  std::pair<std::int64_t, std::int64_t> needs_of(const std::vector<Need>& after, const Node& node) {
    for (const Need& need : after)
      if (need.step < 0 || need.step >= need.steps)
        wrong(node,
              fmt::format("step {} of a signal that has {} in a call", need.step, need.steps));
    const std::int64_t next = after.empty() ? -1 : std::ssize(work_.needs) / 3;
    const auto [known, is_new] = begins_.try_emplace(after, next);
    const std::int64_t begin = known->second;
    if (!is_new) return {begin, begin + std::ssize(after)};
    for (const Need& need : after)
      work_.needs.insert(work_.needs.end(), {need.slot, need.steps, need.step + 1});
    return {begin, begin + std::ssize(after)};
  }

  void add_waves() {
    std::vector<int> taken(number_at_.size(), 0);
    for (const WorkObject::Wave& wave : work_.waves) {
      const std::vector<std::int64_t> tiles = numbers(wave);
      const auto [begin, end] = needs_of(wave.after, *wave.node);
      rows_of_waves_.push_back(std::ssize(tiles));
      for (const std::int64_t tile : tiles) {
        if (taken[index(tile)]++ > 0)
          wrong(*wave.node, fmt::format("tile {} of the kernel is in two waves", tile));
        work_.rows.insert(work_.rows.end(), {tile, begin, end, place_of_part(wave.part)});
        work_.store_rows.push_back(wave.store);
      }
      if (wave.part < 0) continue;
      if (!work_.parts.contains(wave.part))
        wrong(*wave.node, fmt::format("nothing says who is told of part {}", wave.part));
      counts_[wave.part] += std::ssize(tiles);
    }
    const auto missing = std::ranges::find(taken, 0);
    if (missing != taken.end())
      wrong(*node_, fmt::format("tile {} of the kernel is in no wave", missing - taken.begin()));
  }

  void add_moves() {
    for (const WorkObject::Move& move : work_.moves) {
      std::vector<const Region*> regions;
      for (const Region& region : move.op.regions) {
        regions.push_back(&region);
        if (region.elements() != regions.front()->elements())
          wrong(*move.op.node, fmt::format("{} elements are moved to {}", region.elements(),
                                           regions.front()->elements()));
      }
      const std::vector<Strip> strips = strips_of(regions);
      if (strips.size() != 1)
        wrong(*move.op.node, "a movement that does not lie as rows at equal distances");
      const Strip& rows = strips.front();
      const auto [begin, end] = needs_of(move.after, *move.op.node);
      const std::int64_t told = std::ssize(work_.told) / 4;
      const std::int64_t columns[WorkObject::kMoveColumns] = {begin,
                                                              end,
                                                              told,
                                                              told + std::ssize(move.told) / 4,
                                                              rows.rows,
                                                              rows.run,
                                                              move.op.regions.size() > 2 ? 1 : 0,
                                                              0,
                                                              rows.pitches.front(),
                                                              0,
                                                              rows.pitches[1],
                                                              0,
                                                              rows.pitches.back()};
      work_.move_rows.insert(work_.move_rows.end(), std::begin(columns), std::end(columns));
      work_.told.insert(work_.told.end(), move.told.begin(), move.told.end());
    }
    if (work_.moves.empty()) return;
    for (std::size_t w = 0; w < rows_of_waves_.size(); ++w) {
      const auto before = std::ranges::count_if(work_.moves, [&](const WorkObject::Move& move) {
        return move.before <= static_cast<std::int64_t>(w);
      });
      work_.before.insert(work_.before.end(), index(rows_of_waves_[w]), before);
    }
  }

  void add_turns() {
    if (!work_.loop) return;
    const auto [extent, block] = *work_.loop;
    if (block <= 0 || extent <= 0) wrong(*node_, "a turn of the loop has no elements");
    if ((extent + block - 1) / block > kMostTiles)
      walker_.refuse(*node_, "a loop of too many turns");
    walker_.remember(*node_, (extent + block - 1) / block * 4);
    std::vector<int> taken(index((extent + block - 1) / block), 0);
    for (const WorkObject::Turns& turns : work_.turns) {
      const std::int64_t end = turns.first + turns.count;
      if (turns.first < 0 || turns.count <= 0 || end > extent || turns.first % block != 0 ||
          (turns.count % block != 0 && end != extent))
        wrong(*turns.node, fmt::format("turns of {} elements of the loop straddle the chunk {}:{}",
                                       block, turns.first, end));
      const auto [first, last] = needs_of(turns.after, *turns.node);
      for (std::int64_t turn = turns.first / block; turn < (end + block - 1) / block; ++turn)
        if (taken[index(turn)]++ > 0) wrong(*turns.node, fmt::format("turn {} comes twice", turn));
      work_.turn_rows.insert(work_.turn_rows.end(),
                             {turns.first / block, (end + block - 1) / block, first, last});
    }
    if (std::ranges::count(taken, 0) > 0) wrong(*node_, "the loop does not have every turn");
  }

  /// Parts of a kernel need not be numbered from 0: those of an earlier launch have the numbers
  /// below.
  std::int64_t place_of_part(std::int64_t part) const {
    return part < 0 ? -1 : std::distance(work_.parts.begin(), work_.parts.find(part));
  }

  void add_parts(int rank, const SignalsObject* done) {
    for (const auto& [number, told] : work_.parts) {
      if (done == nullptr || done->shape.size() != 2 || number < 0 || number >= done->shape[1] ||
          rank >= done->shape[0])
        wrong(*node_, fmt::format("there is no signal for part {}", number));
      const std::int64_t begin = std::ssize(work_.tells) / 2;
      work_.part_rows.insert(work_.part_rows.end(),
                             {counts_[number], begin, begin + std::ssize(told)});
      for (const std::int64_t to : told)
        work_.tells.insert(work_.tells.end(), {to, done->first + rank * done->shape[1] + number});
    }
  }

  static constexpr std::int64_t kMostTiles = kMostElements;
  static constexpr std::int64_t kWordsOfTile = 16;  ///< of the tables, about

  Walker& walker_;
  Surroundings& host_;
  WorkObject& work_;
  const Node* node_ = nullptr;
  Extents blocks_, extents_, whole_;
  std::vector<std::int64_t> number_at_;
  std::map<std::vector<Need>, std::int64_t> begins_;
  std::map<std::int64_t, std::int64_t> counts_;
  std::vector<std::int64_t> rows_of_waves_;
};

}  // namespace

void make_tables(Walker& walker, Surroundings& host, WorkObject& work, int rank,
                 const SignalsObject* done, const Node& node) {
  TableMaker(walker, host, work).make(rank, done, node);
}

}  // namespace hemiola::compile::readback
