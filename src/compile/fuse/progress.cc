// Whether kernels and transfers can wait for each other for ever: tiles are taken in their order,
// by as few programs as one, and what needs compute units waits until no kernel holds them.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "compile/fuse/fusion.h"

namespace hemiola::compile {
namespace {

/// What is waited for: a transfer, a wave of a rank's kernel (actor -1, its pieces of the loop in
/// it), or what the members of a group do together (actor below -1).
using Step = Point;

class ProgressProver {
 public:
  /// movers: workgroups of their own copy and add up, beside kernels that leave them room.
  ProgressProver(const plan::Plan& plan, const Fusions& fusions, bool movers)
      : plan_(plan), fusions_(fusions), movers_(movers) {
    first_of_.resize(static_cast<std::size_t>(plan.ranks));
    for (int rank = 0; rank < plan.ranks; ++rank) number_meetings(rank);
    for (int rank = 0; rank < plan.ranks; ++rank) {
      add_waves(rank);
      add_transfers(rank);
    }
  }

  void prove(const std::string& plan_file) const {
    const std::optional<Step> stuck = first_stuck();
    if (!stuck) return;
    if (stuck->actor == -1)
      throw Failure(
          fmt::format(
              "rank {}'s kernel would wait for ever: wave {} of its tiles waits for transfers "
              "that wait for later tiles, which no program is free to take",
              stuck->rank, stuck->position),
          {.file = plan_file}, "let transfers take what is computed first", ExitCode::deadlock);
    throw Failure("transfers and tiles wait for each other", {.file = plan_file},
                  "'hemiola check' says which", ExitCode::deadlock);
  }

  /// By rank and grid: what needs compute units, and comes before the grid begins.
  std::vector<std::vector<std::vector<Point>>> in_front(const std::string& plan_file) {
    std::vector<std::vector<std::vector<Point>>> made(
        first_of_.size(), std::vector<std::vector<Point>>(fusions_.size()));
    std::vector<std::vector<std::set<Step>>> behind(first_of_.size());
    for (std::size_t rank = 0; rank < first_of_.size(); ++rank)
      for (std::size_t grid = 0; grid < fusions_.size(); ++grid)
        behind[rank].push_back(behind_of({static_cast<int>(rank), -1, first_of_[rank][grid]}));
    std::vector<std::pair<Step, Step>> held;
    for (const Step& step : by_units_) {
      const std::set<Step> later = behind_of(step);
      const bool is_awaited =
          std::ranges::any_of(later, [](const Step& one) { return one.actor == -1; });
      if (!is_awaited) continue;
      const auto rank = static_cast<std::size_t>(step.rank);
      const auto& of_rank = behind[rank];
      const auto free =
          std::ranges::find_if(of_rank, [&](const auto& all) { return !all.contains(step); });
      const auto grid = static_cast<std::size_t>(free - of_rank.begin());
      if (grid < of_rank.size()) {
        made[rank][grid].push_back(step);
        held.emplace_back(step, Step{step.rank, -1, first_of_[rank][grid]});
      }
      if (grid > 0) held.emplace_back(Step{step.rank, -1, first_of_[rank][grid] - 1}, step);
    }
    for (const auto& [earlier, step] : held) order(earlier, step);
    const std::optional<Step> stuck = first_stuck();
    if (!stuck) return made;
    const auto takes = std::ranges::find_if(held, [&](const auto& one) {
      return one.second.actor >= 0 && behind_of(one.second).contains(one.second);
    });
    const Step& step = takes == held.end() ? held.front().first : takes->second;
    throw Failure(
        fmt::format("tiles wait for transfer {} of stream {} of rank {}, which waits for tiles: a "
                    "copy within a GPU, a sum or a library's collective needs compute units, and "
                    "programs that wait may hold all of them",
                    step.position, step.actor, step.rank),
        {.file = plan_file},
        "let tiles wait for copies between GPUs only, or for what is made before their launch",
        ExitCode::deadlock);
  }

 private:
  /// The k-th collective of a group is over once all members are there.
  void number_meetings(int rank) {
    std::map<std::int32_t, std::int64_t> counts;
    for_each_transfer(plan_, rank,
                      [&](const plan::Transfer& transfer, const Indices&, const Step& step) {
                        if (transfer.kind != plan::TransferKind::collective) return;
                        const Step meeting{0, -2 - transfer.group, counts[transfer.group]++};
                        meeting_of_.emplace(step, meeting);
                        order(step, meeting);
                      });
  }

  void order(Step earlier, const Step& later) {
    const auto meeting = meeting_of_.find(earlier);
    if (meeting != meeting_of_.end() && meeting->second != later) earlier = meeting->second;
    waits_.try_emplace(earlier, 0);
    ++waits_[later];
    after_[earlier].push_back(later);
  }

  /// A wave or transfer that is never done.
  std::optional<Step> first_stuck() const {
    std::map<Step, int> waits = waits_;
    std::vector<Step> ready;
    for (const auto& [step, count] : waits)
      if (count == 0) ready.push_back(step);
    std::size_t done = 0;
    while (!ready.empty()) {
      const Step step = ready.back();
      ready.pop_back();
      ++done;
      const auto after = after_.find(step);
      if (after == after_.end()) continue;
      for (const Step& later : after->second)
        if (--waits[later] == 0) ready.push_back(later);
    }
    if (done == waits.size()) return std::nullopt;
    const auto stuck = std::ranges::find_if(
        waits, [](const auto& one) { return one.second > 0 && one.first.actor == -1; });
    return stuck == waits.end() ? Step{0, 0, 0} : stuck->first;
  }

  std::set<Step> behind_of(const Step& origin) const {
    std::vector<Step> open{origin};
    std::set<Step> seen;
    while (!open.empty()) {
      const auto after = after_.find(open.back());
      open.pop_back();
      if (after == after_.end()) continue;
      for (const Step& later : after->second)
        if (seen.insert(later).second) open.push_back(later);
    }
    return seen;
  }

  /// Whether it runs on compute units of its rank: copies between GPUs are made by engines.
  bool takes_units(const plan::Transfer& transfer, const Indices& at) const {
    if (transfer.kind == plan::TransferKind::collective) return true;
    if (movers_) return false;
    return transfer.group >= 0 || transfer.reduce != ReduceOp::none ||
           transfer.kind == plan::TransferKind::copy || transfer.peer(at) == at.rank;
  }

  /// A kernel starts when the one before it on its rank is done, so waves of all are one row.
  void add_waves(int rank) {
    std::int64_t number = 0;
    for (const Fusion& fusion : fusions_) {
      const FusedRank& of_rank = fusion.ranks[static_cast<std::size_t>(rank)];
      first_of_[static_cast<std::size_t>(rank)].push_back(number);
      for (const FusedWave& one : of_rank.waves) {
        const Step wave{rank, -1, number++};
        waits_.try_emplace(wave, 0);
        if (wave.position > 0) order({rank, -1, wave.position - 1}, wave);
        for (const Point& need : one.needs) order(need, wave);
        for (const FusedPiece& piece : of_rank.pieces)
          for (const Point& need : piece.needs) order(need, wave);
      }
    }
    first_of_[static_cast<std::size_t>(rank)].push_back(number);
  }

  void add_transfers(int rank) {
    for_each_transfer(plan_, rank,
                      [&](const plan::Transfer& transfer, const Indices& at, const Step& step) {
                        waits_.try_emplace(step, 0);
                        if (takes_units(transfer, at)) by_units_.insert(step);
                        if (step.position > 0) order({rank, step.actor, step.position - 1}, step);
                        for (const plan::Dependency& dependency : transfer.after)
                          if (dependency.on_transfer())
                            order({static_cast<int>(dependency.rank(at)), dependency.stream,
                                   dependency.transfer(at)},
                                  step);
                        for (const Fusion& fusion : fusions_) {
                          const auto parts = fusion.part_waits.find(step);
                          if (parts == fusion.part_waits.end()) continue;
                          for (const PartWait& part : parts->second) add_part(part, step);
                        }
                      });
  }

  void add_part(const PartWait& part, const Step& transfer) {
    std::int64_t first = 0;
    for (const Fusion& fusion : fusions_) {
      const FusedRank& of_rank = fusion.ranks[static_cast<std::size_t>(part.rank)];
      for (std::size_t i = 0; i < of_rank.waves.size() && fusion.compute == part.grid; ++i)
        if (of_rank.waves[i].part >= 0 && of_rank.first_part + of_rank.waves[i].part == part.part)
          order({part.rank, -1, first + static_cast<std::int64_t>(i)}, transfer);
      first += std::ssize(of_rank.waves);
    }
  }

  const plan::Plan& plan_;
  const Fusions& fusions_;
  bool movers_;
  std::vector<std::vector<std::int64_t>> first_of_;  ///< by rank and grid its first wave; the end
  std::map<Step, Step> meeting_of_;                  ///< of collectives
  std::set<Step> by_units_;
  std::map<Step, int> waits_;
  std::map<Step, std::vector<Step>> after_;
};

}  // namespace

void prove_progress(const plan::Plan& plan, const Fusions& fusions, const std::string& plan_file) {
  ProgressProver(plan, fusions, false).prove(plan_file);
}

void wait_in_front(const plan::Plan& plan, Fusions& fusions, bool movers,
                   const std::string& plan_file) {
  auto all = ProgressProver(plan, fusions, movers).in_front(plan_file);
  for (std::size_t grid = 0; grid < fusions.size(); ++grid) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      FusedRank& made = fusions[grid].ranks[rank];
      made.in_front = std::move(all[rank][grid]);
      const auto is_over = [&](const Point& need) {
        return std::ranges::any_of(made.in_front, [&](const Point& one) {
          return one.rank == need.rank && one.actor == need.actor && need.position <= one.position;
        });
      };
      for (FusedWave& wave : made.waves) std::erase_if(wave.needs, is_over);
      for (FusedPiece& piece : made.pieces) std::erase_if(piece.needs, is_over);
    }
  }
}

}  // namespace hemiola::compile
