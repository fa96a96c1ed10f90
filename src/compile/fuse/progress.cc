// Whether kernels and transfers can wait for each other for ever: tiles are taken in their order,
// by as few programs as one.
#include <fmt/format.h>

#include <map>
#include <set>
#include <vector>

#include "compile/fuse/fusion.h"

namespace hemiola::compile {
namespace {

/// A wave of a rank's kernel (`stream` -1, its pieces of the loop in it), or a transfer.
struct FusedStep {
  int rank = 0;
  std::int32_t stream = -1;
  std::int64_t number = 0;
  auto operator<=>(const FusedStep&) const = default;
};

class ProgressProver {
 public:
  ProgressProver(const plan::Plan& plan, const Fusions& fusions) : plan_(plan), fusions_(fusions) {
    for (int rank = 0; rank < plan.ranks; ++rank) {
      add_waves(rank);
      add_transfers(rank);
    }
  }

  /// What runs on compute units is nothing that a kernel needs while it waits on all of them.
  void prove_room(const std::string& plan_file) {
    for (const FusedStep& origin : by_units_) {
      std::vector<FusedStep> open{origin};
      std::set<FusedStep> seen;
      while (!open.empty()) {
        const FusedStep step = open.back();
        open.pop_back();
        if (step.stream < 0)
          throw Failure(
              fmt::format(
                  "rank {}'s tiles wait for transfer {} of stream {} of rank {}, a reduction or "
                  "a library's collective: it runs on compute units, and programs that wait may "
                  "hold all of them",
                  step.rank, origin.number, origin.stream, origin.rank),
              {.file = plan_file},
              "let tiles wait for copies, or compute what is reduced in launches",
              ExitCode::deadlock);
        for (const FusedStep& later : after_[step])
          if (seen.insert(later).second) open.push_back(later);
      }
    }
  }

  void prove(const std::string& plan_file) {
    std::vector<FusedStep> ready;
    for (const auto& [step, count] : waits_)
      if (count == 0) ready.push_back(step);
    std::size_t done = 0;
    while (!ready.empty()) {
      const FusedStep step = ready.back();
      ready.pop_back();
      ++done;
      for (const FusedStep& later : after_[step])
        if (--waits_[later] == 0) ready.push_back(later);
    }
    if (done == waits_.size()) return;
    for (const auto& [step, count] : waits_) {
      if (count == 0 || step.stream >= 0) continue;
      throw Failure(
          fmt::format(
              "rank {}'s kernel would wait for ever: wave {} of its tiles waits for transfers "
              "that wait for later tiles, which no program is free to take",
              step.rank, step.number),
          {.file = plan_file}, "let transfers take what is computed first", ExitCode::deadlock);
    }
    throw Failure("transfers and tiles wait for each other", {.file = plan_file},
                  "'hemiola check' says which", ExitCode::deadlock);
  }

 private:
  void order(const FusedStep& earlier, const FusedStep& later) {
    waits_.try_emplace(earlier, 0);
    ++waits_[later];
    after_[earlier].push_back(later);
  }

  /// A kernel starts when the one before it on its rank is done, so waves of all are one row.
  void add_waves(int rank) {
    std::int64_t number = 0;
    for (const Fusion& fusion : fusions_) {
      const FusedRank& of_rank = fusion.ranks[static_cast<std::size_t>(rank)];
      for (const FusedWave& one : of_rank.waves) {
        const FusedStep wave{rank, -1, number++};
        waits_.try_emplace(wave, 0);
        if (wave.number > 0) order({rank, -1, wave.number - 1}, wave);
        for (const Point& need : one.needs) order({need.rank, need.actor, need.position}, wave);
        for (const FusedPiece& piece : of_rank.pieces) {
          for (const Point& need : piece.needs) order({need.rank, need.actor, need.position}, wave);
        }
      }
    }
  }

  void add_transfers(int rank) {
    const std::vector<plan::Stream>& streams = plan_.code(rank).streams;
    for (std::int32_t s = 0; s < std::ssize(streams); ++s) {
      std::int64_t position = 0;
      plan::for_each_transfer(
          streams[static_cast<std::size_t>(s)], rank,
          [&](const plan::Transfer& transfer, const Indices& at) {
            const FusedStep step{rank, s, position};
            waits_.try_emplace(step, 0);
            if (transfer.reduce != ReduceOp::none || transfer.group >= 0) by_units_.insert(step);
            if (position > 0) order({rank, s, position - 1}, step);
            for (const plan::Dependency& dependency : transfer.after) {
              if (dependency.on_transfer())
                order({static_cast<int>(dependency.rank(at)), dependency.stream,
                       dependency.transfer(at)},
                      step);
            }
            for (const Fusion& fusion : fusions_) {
              const auto parts = fusion.part_waits.find(Point{rank, s, position});
              if (parts == fusion.part_waits.end()) continue;
              for (const PartWait& part : parts->second) add_part(part, step);
            }
            ++position;
          });
    }
  }

  void add_part(const PartWait& part, const FusedStep& transfer) {
    std::int64_t first = 0;
    for (const Fusion& fusion : fusions_) {
      const FusedRank& of_rank = fusion.ranks[static_cast<std::size_t>(part.rank)];
      for (std::size_t i = 0; i < of_rank.waves.size() && fusion.compute == part.grid; ++i) {
        if (of_rank.waves[i].part >= 0 && of_rank.first_part + of_rank.waves[i].part == part.part)
          order({part.rank, -1, first + static_cast<std::int64_t>(i)}, transfer);
      }
      first += std::ssize(of_rank.waves);
    }
  }

  const plan::Plan& plan_;
  const Fusions& fusions_;
  std::set<FusedStep> by_units_;
  std::map<FusedStep, int> waits_;
  std::map<FusedStep, std::vector<FusedStep>> after_;
};

}  // namespace

void prove_progress(const plan::Plan& plan, const Fusions& fusions, const std::string& plan_file) {
  ProgressProver prover(plan, fusions);
  prover.prove(plan_file);
  prover.prove_room(plan_file);
}

}  // namespace hemiola::compile
