#include <algorithm>
#include <bit>
#include <tuple>

#include "core/index.h"
#include "core/random.h"
#include "plan/synthesis/steps.h"
#include "plan/synthesis/synthesis.h"

namespace hemiola::plan {
namespace {

/// A set of chunks.
using Bits = std::vector<std::uint64_t>;

void insert(Bits& bits, std::int64_t chunk) {
  bits[index(chunk / 64)] |= std::uint64_t{1} << (chunk % 64);
}

class Gather {
 public:
  Gather(Fabric& fabric, const SynthesisOptions& options, bool against)
      : fabric_(fabric),
        options_(options),
        timetable_(fabric, options.chunk_bytes, against),
        steps_(timetable_.steps()),
        ranks_(fabric.ranks()),
        chunks_(ranks_ * options.parts) {
    const std::size_t words = index((chunks_ + 63) / 64);
    has_.assign(index(ranks_), Bits(words));
    coming_ = has_;
    to_island_ = has_;
    copies_.assign(index(chunks_), 1);
    for (int rank = 0; rank < ranks_; ++rank) {
      timetable_.mark(rank);
      for (std::int64_t chunk = rank * options.parts; chunk < (rank + 1) * options.parts; ++chunk) {
        insert(has_[index(rank)], chunk);
        insert(coming_[index(rank)], chunk);
        insert(to_island_[index(fabric.island(rank))], chunk);
      }
    }
  }

  std::vector<Move> run() {
    return timetable_.run(
        chunks_ * (ranks_ - 1), [&](int rank) { serve(rank); },
        [&](std::int32_t step) { timetable_.mark(steps_[step].to); },
        [&](int rank, std::int64_t chunk) {
          insert(has_[index(rank)], chunk);
          for (const std::int32_t step : steps_.out_of(rank)) timetable_.mark(steps_[step].to);
        });
  }

 private:
  /// What a step could bring now, 64 chunks at a time.
  std::uint64_t useful(const Step& step, std::size_t word) const {
    std::uint64_t bits = has_[index(step.from)][word] & ~coming_[index(step.to)][word];
    // What is under way to an island spreads there by faster links.
    if (step.is_network) bits &= ~to_island_[index(fabric_.island(step.to))][word];
    return bits;
  }

  std::int64_t count_useful(const Step& step) const {
    std::int64_t count = 0;
    for (std::size_t word = 0; word < coming_[index(step.to)].size(); ++word)
      count += std::popcount(useful(step, word));
    return count;
  }

  /// Lets chunks start towards a rank. Steps with the least choice choose first; where they share a
  /// link, senders take turns.
  void serve(int rank) {
    struct Choice {
      std::int64_t choices = 0;
      int turn = 0;
      std::int32_t step = 0;
    };
    std::vector<Choice> free;
    for (const std::int32_t number : steps_.into(rank)) {
      if (!timetable_.is_free(number)) continue;
      const Step& step = steps_[number];
      const std::int64_t choices = count_useful(step);
      if (choices == 0) continue;
      free.push_back({shares_trunks(rank) ? 0 : choices, timetable_.turn(step), number});
    }
    std::ranges::sort(free, [](const Choice& a, const Choice& b) {
      return std::tie(a.choices, a.turn, a.step) < std::tie(b.choices, b.turn, b.step);
    });
    for (const Choice& choice : free) {
      if (!timetable_.is_free(choice.step)) continue;
      const std::int64_t chunk = choose(steps_[choice.step]);
      if (chunk >= 0) start(choice.step, chunk);
    }
  }

  bool shares_trunks(int rank) const {
    const auto& into = steps_.into(rank);
    return std::ranges::any_of(into, [&](std::int32_t step) {
      return steps_.over(steps_[step].loads.back().trunk).size() > 1;
    });
  }

  /// The rarest, the sender's own before others; -1: none.
  std::int64_t choose(const Step& step) const {
    std::int64_t best = -1;
    std::tuple<std::int64_t, std::uint64_t> least{};
    for (std::size_t word = 0; word < coming_[index(step.to)].size(); ++word) {
      for (std::uint64_t bits = useful(step, word); bits != 0; bits &= bits - 1) {
        const auto chunk = static_cast<std::int64_t>(word) * 64 + std::countr_zero(bits);
        const bool is_own = chunk / options_.parts == step.from;
        const std::tuple key{2 * copies_[index(chunk)] - (is_own ? 1 : 0),
                             splitmix64(options_.seed * 0x10001 +
                                        static_cast<std::uint64_t>(chunk * ranks_ + step.to))};
        if (best < 0 || key < least) {
          best = chunk;
          least = key;
        }
      }
    }
    return best;
  }

  void start(std::int32_t number, std::int64_t chunk) {
    const Step& step = steps_[number];
    insert(coming_[index(step.to)], chunk);
    insert(to_island_[index(fabric_.island(step.to))], chunk);
    ++copies_[index(chunk)];
    timetable_.start(number, chunk);
  }

  Fabric& fabric_;
  const SynthesisOptions& options_;
  Timetable timetable_;
  const Steps& steps_;
  std::int64_t ranks_, chunks_;
  std::vector<Bits> has_, coming_;    // by rank
  std::vector<Bits> to_island_;       // by the number of an island: has or will have
  std::vector<std::int64_t> copies_;  // by chunk: ranks that have it or will
};

}  // namespace

std::vector<Move> schedule_gather(Fabric& fabric, const SynthesisOptions& options, bool against) {
  return Gather(fabric, options, against).run();
}

Time end_of(const std::vector<Move>& moves) {
  Time end{0};
  for (const Move& move : moves) end = std::max(end, move.end);
  return end;
}

}  // namespace hemiola::plan
