// Plans on real data in one thread, with a vector clock for every stream and tile. Element by
// element and with full clocks: slow, and independent of how check() finds the same.
#include "verify/testing/interleave.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "plan/launches.h"
#include "plan/tiles.h"
#include "verify/plans/data.h"

namespace hemiola::verify {
namespace {

constexpr std::int64_t kMostRunElements = std::int64_t{1} << 22;
constexpr std::int64_t kMostEntries = std::int64_t{1} << 24;

class Interleaving {
 public:
  Interleaving(const plan::Plan& plan, std::uint64_t seed)
      : plan_(plan),
        random_(seed),
        unrolled_(plan),
        data_(unrolled_, kMostRunElements),
        positions_(index(unrolled_.streams())),
        arrived_(unrolled_.meetings().size()) {
    data_.poison();
    data_.begin(seed);
    create_tiles();
    const std::int64_t actors = unrolled_.streams() + std::ssize(tiles_);
    if (actors * (unrolled_.transfers() + std::ssize(tiles_)) > kMostEntries)
      throw Failure("plan '" + plan.name + "' is too large for the race detector", {},
                    "fewer ranks, or larger tiles");
    clocks_.assign(index(actors), Clock(index(actors)));
    released_.resize(index(actors));
    for (int rank = 0; rank < plan.ranks; ++rank) {
      for (std::size_t t = 0; t < plan.tensors.size(); ++t)
        history_[{rank, static_cast<std::int32_t>(t)}].resize(index(plan.tensors[t].elements()));
    }
  }

  Execution run() {
    while (result_.outcome != Outcome::wrong) {  // after a race too: to see what it leads to
      std::vector<std::int32_t> ready;
      bool left = false;
      for (std::int32_t actor = 0; actor < std::ssize(clocks_); ++actor) {
        if (is_done(actor)) continue;
        left = true;
        if (may_run(actor)) ready.push_back(actor);
      }
      if (!left) return finish();
      if (ready.empty()) {
        result_.differs = true;
        if (result_.outcome == Outcome::race) return result_;
        result_.outcome = Outcome::hang;
        result_.summary = "nothing that is left can run";
        return result_;
      }
      const std::int32_t actor = ready[random_() % ready.size()];
      actor < unrolled_.streams() ? run_transfer(actor) : run_tile(actor);
    }
    return result_;
  }

 private:
  using Clock = std::vector<std::int32_t>;  ///< by actor: its events that happened before
  struct Access {
    std::int32_t actor = -1;
    std::int32_t number = 0;
  };
  struct Cell {
    std::vector<Access> writes;  ///< the last one, or all tiles that added up
    std::vector<Access> reads;   ///< since then
    std::int32_t transit = 0;    ///< in transit: 1 written, 2 read
  };
  struct Tile {
    int rank = 0;
    std::int32_t compute = 0;
    std::int64_t number = 0;
    std::vector<std::pair<plan::Use, plan::Area>> areas;
    std::vector<TransferId> arrivals;
    bool done = false;
  };
  /// Of every compute; of launches what they come after, and what is known at their start.
  struct Kernel {
    int rank = 0;
    std::int32_t compute = 0;
    std::vector<std::size_t> before;  ///< kernels
    std::vector<TransferId> after;
    std::vector<std::int32_t> tiles;  ///< actors
    std::optional<Clock> start{};
  };

  void create_kernels(int rank) {
    const plan::Code& code = plan_.code(rank);
    const plan::LaunchOrder order(code);
    first_kernel_.push_back(kernels_.size());
    for (std::size_t c = 0; c < code.computes.size(); ++c) {
      Kernel& kernel = kernels_.emplace_back();
      kernel.rank = rank;
      kernel.compute = static_cast<std::int32_t>(c);
      for (const std::int32_t other : order.directly_before(kernel.compute))
        kernel.before.push_back(first_kernel_.back() + index(other));
      for (const plan::Dependency& dependency : code.computes[c].after)
        if (dependency.on_transfer())
          kernel.after.push_back(unrolled_.target(dependency, {.rank = rank}));
    }
  }

  const plan::Compute& compute_of(const Tile& tile) const {
    return plan_.code(tile.rank).computes[index(tile.compute)];
  }
  Kernel& kernel_of(const Tile& tile) {
    return kernels_[first_kernel_[index(tile.rank)] + index(tile.compute)];
  }
  bool is_finished(const Kernel& kernel) {
    return std::ranges::all_of(kernel.tiles, [&](std::int32_t tile) { return tile_of(tile).done; });
  }

  /// What a launch comes after is done.
  bool may_start(const Kernel& kernel) {
    return kernel.start ||
           (std::ranges::all_of(kernel.before,
                                [&](std::size_t other) { return is_finished(kernels_[other]); }) &&
            std::ranges::all_of(kernel.after,
                                [&](TransferId id) { return position(id.stream) > id.number; }));
  }

  void start(Kernel& kernel) {
    if (kernel.start) return;
    kernel.start.emplace(clocks_.size());
    for (const std::size_t other : kernel.before)
      for (const std::int32_t tile : kernels_[other].tiles) join(*kernel.start, clock(tile));
    for (const TransferId id : kernel.after) join(*kernel.start, released(id));
    data_.begin_launch(kernel.rank, plan_.code(kernel.rank).computes[index(kernel.compute)]);
  }

  const Clock& released(TransferId id) const {
    return released_[index(id.stream)][index(id.number)];
  }

  void create_tiles() {
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const auto& computes = plan_.code(rank).computes;
      create_kernels(rank);
      for (std::size_t c = 0; c < computes.size(); ++c) {
        for (std::int64_t number = 0; number < count_tiles(computes[c]); ++number) {
          Tile tile{rank, static_cast<std::int32_t>(c), number, {}, {}, false};
          for (const plan::ComputeOperand& operand : computes[c].operands)
            tile.areas.emplace_back(
                operand.use, operand_area(plan_, operand, tile_box(computes[c], number), rank));
          kernels_[first_kernel_.back() + c].tiles.push_back(
              unrolled_.streams() + static_cast<std::int32_t>(tiles_.size()));
          tiles_.push_back(std::move(tile));
        }
      }
    }
    unrolled_.each_arrival([&](int rank, const plan::Area& area, TransferId id) {
      for (Tile& tile : tiles_)
        if (tile.rank == rank && compute_of(tile).waits == plan::Waits::tiles &&
            std::ranges::any_of(tile.areas, [&](const auto& used) {
              const bool reads = used.first == plan::Use::read || used.first == plan::Use::add;
              return reads && overlap(used.second, area);
            }))
          tile.arrivals.push_back(id);
    });
  }

  Tile& tile_of(std::int32_t actor) { return tiles_[index(actor - unrolled_.streams())]; }
  std::int32_t& position(std::int32_t stream) { return positions_[index(stream)]; }
  Clock& clock(std::int32_t actor) { return clocks_[index(actor)]; }

  bool is_done(std::int32_t actor) {
    return actor < unrolled_.streams() ? position(actor) == unrolled_.transfers(actor)
                                       : tile_of(actor).done;
  }

  bool may_run(std::int32_t actor) {
    if (actor >= unrolled_.streams()) {
      const Tile& tile = tile_of(actor);
      return may_start(kernel_of(tile)) && std::ranges::all_of(tile.arrivals, [&](TransferId id) {
               return position(id.stream) > id.number;
             });
    }
    const TransferId id{actor, position(actor)};
    const Indices at = unrolled_.at(id);
    for (const plan::Dependency& dependency : unrolled_.transfer(id).after) {
      if (!dependency.on_transfer()) {
        for (const std::int32_t tile : awaited(dependency, at))
          if (!tile_of(tile).done) return false;
      } else {
        const TransferId target = unrolled_.target(dependency, at);
        if (position(target.stream) <= target.number) return false;
      }
    }
    return !waits_in_meeting_.contains(actor);
  }

  /// The tiles that a dependency on what is computed waits for.
  std::vector<std::int32_t> awaited(const plan::Dependency& dependency, const Indices& at) {
    const auto rank = index(dependency.rank(at));
    if (dependency.compute)
      return kernels_[first_kernel_[rank] + index((*dependency.compute)(at))].tiles;
    std::set<std::int32_t> all;
    for (const std::int32_t tile : writers(dependency, at)) {
      all.insert(tile);
      if (compute_of(tile_of(tile)).waits == plan::Waits::tiles) continue;
      const Kernel& launch = kernel_of(tile_of(tile));
      all.insert(launch.tiles.begin(), launch.tiles.end());
    }
    return {all.begin(), all.end()};
  }

  std::vector<std::int32_t> writers(const plan::Dependency& dependency, const Indices& at) {
    const plan::Area area = evaluate(*dependency.computed, at);
    std::vector<std::int32_t> found;
    for (std::int32_t i = 0; i < std::ssize(tiles_); ++i) {
      const Tile& tile = tiles_[index(i)];
      if (tile.rank == dependency.rank(at) &&
          std::ranges::any_of(tile.areas, [&](const auto& used) {
            return used.first != plan::Use::read && overlap(used.second, area);
          }))
        found.push_back(unrolled_.streams() + i);
    }
    return found;
  }

  void join(Clock& into, const Clock& from) {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = std::max(into[i], from[i]);
  }

  void run_transfer(std::int32_t stream) {
    const TransferId id{stream, position(stream)};
    const Indices at = unrolled_.at(id);
    const plan::Transfer& transfer = unrolled_.transfer(id);
    Clock& own = clock(stream);
    for (const plan::Dependency& dependency : transfer.after) {
      if (!dependency.on_transfer())
        for (const std::int32_t tile : awaited(dependency, at)) join(own, clock(tile));
      else
        join(own, released(unrolled_.target(dependency, at)));
    }
    if (transfer.kind == plan::TransferKind::collective)
      return meet(stream, unrolled_.meeting_of(id));
    const Access now{stream, id.number};
    for (const Movement& movement : unrolled_.movements(id)) {
      check_overlap(movement);
      perform({movement}, [&](int) { return now; });
    }
    complete(id);
  }

  void complete(TransferId id) {
    Clock& own = clock(id.stream);
    own[index(id.stream)] = id.number + 1;
    released_[index(id.stream)].push_back(own);
    ++position(id.stream);
  }

  void meet(std::int32_t stream, std::int32_t number) {
    const Meeting& meeting = unrolled_.meetings()[index(number)];
    waits_in_meeting_.insert(stream);
    if (++arrived_[index(number)] < std::ssize(meeting.members)) return;
    if (const std::string wrong = unrolled_.disagreement(meeting); !wrong.empty()) {
      result_.outcome = Outcome::wrong;
      result_.summary = wrong;
      return;
    }
    Clock all(clocks_.size());
    std::map<int, TransferId> member_of;
    for (const TransferId id : meeting.members) {
      join(all, clock(id.stream));
      member_of[unrolled_.rank_of(id.stream)] = id;
    }
    for (const TransferId id : meeting.members) all[index(id.stream)] = id.number + 1;
    for (const TransferId id : meeting.members) clock(id.stream) = all;
    perform(unrolled_.movements(meeting), [&](int rank) {
      return Access{member_of.at(rank).stream, member_of.at(rank).number};
    });
    for (const TransferId id : meeting.members) {
      waits_in_meeting_.erase(id.stream);
      complete(id);
    }
  }

  void check_overlap(const Movement& movement) {
    const auto to = elements(plan_, movement.destination);
    for (const auto& [rank, area] : movement.sources) {
      if (rank != movement.rank || area.tensor != movement.destination.tensor) continue;
      const auto from = elements(plan_, area);
      for (std::size_t i = 0; i < from.size(); ++i) {
        for (std::size_t k = 0; k < to.size(); ++k)
          if (i != k && from[i] == to[k])
            race("a transfer overwrites what it reads", rank, area.tensor, from[i]);
      }
    }
  }

  template <class By>
  void perform(const std::vector<Movement>& movements, By by) {
    std::vector<std::vector<float>> values;
    for (const Movement& movement : movements) {
      const Access now = by(movement.rank);
      auto& sums = values.emplace_back(index(movement.destination.elements()));
      for (const auto& [rank, area] : movement.sources) {
        const std::vector<std::int64_t> from = elements(plan_, area);
        for (std::size_t i = 0; i < from.size(); ++i) {
          read(rank, area.tensor, from[i], now);
          sums[i] += data_.tensor(rank, area.tensor)[from[i]];
        }
      }
    }
    for (std::size_t m = 0; m < movements.size(); ++m) {
      const plan::Area& area = movements[m].destination;
      const std::vector<std::int64_t> to = elements(plan_, area);
      for (std::size_t i = 0; i < to.size(); ++i) {
        write(movements[m].rank, area.tensor, to[i], by(movements[m].rank), false);
        data_.tensor(movements[m].rank, area.tensor)[to[i]] = values[m][i];
      }
    }
  }

  void run_tile(std::int32_t actor) {
    Tile& tile = tile_of(actor);
    if (compute_of(tile).is_launch()) {
      start(kernel_of(tile));
      join(clock(actor), *kernel_of(tile).start);
    }
    for (const TransferId id : tile.arrivals) join(clock(actor), released(id));
    for (const auto& [use, area] : tile.areas) {
      for (const std::int64_t element : elements(plan_, area))
        if (use == plan::Use::read) read(tile.rank, area.tensor, element, {actor, 0});
    }
    for (const auto& [use, area] : tile.areas) {
      for (const std::int64_t element : elements(plan_, area)) {
        if (use == plan::Use::add) check_sum(tile.rank, area.tensor, element);
        if (use != plan::Use::read)
          write(tile.rank, area.tensor, element, {actor, 0}, plan::sums(use));
      }
    }
    data_.run_tile(tile.rank, plan_.code(tile.rank).computes[index(tile.compute)], tile.number);
    clock(actor)[index(actor)] = 1;
    tile.done = true;
  }

  Cell& cell(int rank, std::int32_t tensor, std::int64_t element) {
    return history_[{rank, tensor}][index(element)];
  }

  void race(const std::string& what, int rank, std::int32_t tensor, std::int64_t element) {
    if (result_.outcome != Outcome::right) return;
    result_.outcome = Outcome::race;
    result_.summary = what + ": element " + std::to_string(element) + " of " +
                      plan_.tensors[index(tensor)].name + " of rank " + std::to_string(rank);
  }

  bool ordered(const Access& before, const Access& now) {
    return before.actor == now.actor || clock(now.actor)[index(before.actor)] > before.number;
  }
  bool together(const Access& a, const Access& b) {
    return a.actor >= unrolled_.streams() && b.actor >= unrolled_.streams() &&
           tile_of(a.actor).compute == tile_of(b.actor).compute;
  }

  void read(int rank, std::int32_t tensor, std::int64_t element, const Access& now) {
    Cell& cell = this->cell(rank, tensor, element);
    if (std::isnan(data_.tensor(rank, tensor)[element]) ||
        (cell.writes.empty() && data_.is_accumulator(rank, tensor, element)))
      race("memory that nobody wrote is read", rank, tensor, element);
    for (const Access& write : cell.writes)
      if (!ordered(write, now)) race("a read and a write are unordered", rank, tensor, element);
    forward(cell, rank, tensor, element, now);
    cell.reads.push_back(now);
  }

  /// What is added to is there.
  void check_sum(int rank, std::int32_t tensor, std::int64_t element) {
    if (std::isnan(data_.tensor(rank, tensor)[element]) ||
        (cell(rank, tensor, element).writes.empty() && data_.is_accumulator(rank, tensor, element)))
      race("a tile adds to memory that nobody wrote", rank, tensor, element);
  }

  void forward(Cell& cell, int rank, std::int32_t tensor, std::int64_t element, const Access& now) {
    if (plan_.tensors[index(tensor)].role != plan::Role::transit || cell.writes.empty()) return;
    const Access& sent = cell.writes.front();
    const bool right_stream = now.actor < unrolled_.streams() &&
                              unrolled_.rank_of(now.actor) == rank &&
                              unrolled_.index_of(now.actor) == unrolled_.index_of(sent.actor);
    // A multicast reads it once for all members.
    if (cell.transit == 2 && !cell.reads.empty() && cell.reads.back().actor == now.actor &&
        cell.reads.back().number == now.number)
      return;
    std::int32_t& last = forwarded_.try_emplace({now.actor, sent.actor}, -1).first->second;
    if (!right_stream || cell.transit != 1 || sent.number < last)
      race("a chunk in transit is not forwarded once, in order, by its stream", rank, tensor,
           element);
    cell.transit = 2;
    last = std::max(last, sent.number);
  }

  void write(int rank, std::int32_t tensor, std::int64_t element, const Access& now, bool add) {
    Cell& cell = this->cell(rank, tensor, element);
    for (const Access& write : cell.writes)
      if (!(add && together(write, now)) && !ordered(write, now))
        race("two writes are unordered", rank, tensor, element);
    for (const Access& read : cell.reads)
      if (!ordered(read, now)) race("a read and a write are unordered", rank, tensor, element);
    if (cell.transit == 1) race("a chunk in transit is overwritten", rank, tensor, element);
    cell.transit = plan_.tensors[index(tensor)].role == plan::Role::transit;
    if (!add) cell.writes.clear();
    cell.writes.push_back(now);
    cell.reads.clear();
  }

  Execution finish() {
    for (const auto& [where, cells] : history_) {
      for (std::size_t e = 0; e < cells.size(); ++e) {
        if (cells[e].transit == 1)
          race("a chunk in transit is never forwarded", where.first, where.second,
               static_cast<std::int64_t>(e));
      }
    }
    const std::string wrong = data_.compare(result_.compared);
    result_.differs = !wrong.empty();
    if (result_.outcome == Outcome::race) return result_;
    if (result_.differs) result_.outcome = Outcome::wrong;
    result_.summary =
        wrong.empty() ? std::to_string(result_.compared) + " elements are right" : wrong;
    return result_;
  }

  const plan::Plan& plan_;
  std::mt19937_64 random_;
  Unrolled unrolled_;
  PlanData data_;
  std::vector<std::int32_t> positions_;
  std::vector<std::int64_t> arrived_;
  std::set<std::int32_t> waits_in_meeting_;
  std::vector<Tile> tiles_;
  std::vector<Kernel> kernels_;               ///< by rank and compute
  std::vector<std::size_t> first_kernel_;     ///< by rank
  std::vector<Clock> clocks_;                 ///< by actor
  std::vector<std::vector<Clock>> released_;  ///< by stream and transfer: its clock at the end
  std::map<std::pair<int, std::int32_t>, std::vector<Cell>> history_;  ///< rank, tensor -> element
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> forwarded_;
  Execution result_;
};

}  // namespace

Execution interleave(const plan::Plan& plan, std::uint64_t seed) {
  return Interleaving(plan, seed).run();
}

}  // namespace hemiola::verify
