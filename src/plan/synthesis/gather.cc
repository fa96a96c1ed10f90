#include <algorithm>
#include <bit>
#include <queue>
#include <tuple>
#include <utility>

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
        steps_(fabric, options.chunk_bytes, against),
        ranks_(fabric.ranks()),
        chunks_(ranks_ * options.parts) {
    const std::size_t words = index((chunks_ + 63) / 64);
    has_.assign(index(ranks_), Bits(words));
    coming_ = has_;
    to_island_ = has_;
    copies_.assign(index(chunks_), 1);
    next_.assign(index(ranks_), 0);
    is_due_.assign(index(ranks_), true);
    for (int rank = 0; rank < ranks_; ++rank) {
      due_.push_back(rank);
      next_[index(rank)] = rank + 1;
      for (std::int64_t chunk = rank * options.parts; chunk < (rank + 1) * options.parts; ++chunk) {
        insert(has_[index(rank)], chunk);
        insert(coming_[index(rank)], chunk);
        insert(to_island_[index(fabric.island(rank))], chunk);
      }
    }
  }

  std::vector<Move> run() {
    const std::int64_t wanted = chunks_ * (ranks_ - 1);
    moves_.reserve(index(wanted));
    while (true) {
      for (const int rank : due_) is_due_[index(rank)] = false;
      const std::vector<int> due = std::exchange(due_, {});
      for (const int rank : due) serve(rank);
      if (std::ssize(moves_) == wanted) return std::move(moves_);
      if (events_.empty())
        throw Failure("machine '" + fabric_.machine().name + "': not every rank has a way to all",
                      {}, {}, ExitCode::internal);
      now_ = events_.top().when;
      while (!events_.empty() && events_.top().when == now_) {
        const Event event = events_.top();
        events_.pop();
        happen(event);
      }
      // Whoever lacks most comes first.
      std::ranges::sort(due_);
    }
  }

 private:
  struct Event {
    Time when{0};
    std::int32_t trunk = -1;  // that becomes free; -1: a chunk arrives
    int rank = 0;
    std::int64_t chunk = 0;
    bool operator>(const Event& other) const {
      return std::tie(when, trunk, rank, chunk) >
             std::tie(other.when, other.trunk, other.rank, other.chunk);
    }
  };

  void mark(int rank) {
    if (is_due_[index(rank)]) return;
    is_due_[index(rank)] = true;
    due_.push_back(rank);
  }

  void happen(const Event& event) {
    if (event.trunk >= 0) {
      for (const std::int32_t step : steps_.over(event.trunk)) mark(steps_[step].to);
    } else {
      insert(has_[index(event.rank)], event.chunk);
      for (const std::int32_t step : steps_.out_of(event.rank)) mark(steps_[step].to);
    }
  }

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
      if (!steps_.is_free(number, now_)) continue;
      const Step& step = steps_[number];
      const std::int64_t choices = count_useful(step);
      if (choices == 0) continue;
      const int turn = static_cast<int>((step.from - next_[index(rank)] + 2 * ranks_) % ranks_);
      free.push_back({shares_trunks(rank) ? 0 : choices, turn, number});
    }
    std::ranges::sort(free, [](const Choice& a, const Choice& b) {
      return std::tie(a.choices, a.turn, a.step) < std::tie(b.choices, b.turn, b.step);
    });
    for (const Choice& choice : free) {
      if (!steps_.is_free(choice.step, now_)) continue;
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
    next_[index(step.to)] = step.from + 1;
    steps_.take(number, now_, [&](std::int32_t trunk, Time when) {
      events_.push({when, trunk, 0, 0});
    });
    const Time end = now_ + step.busy + step.latency;
    moves_.push_back({chunk, step.from, step.to, now_, end});
    events_.push({end, -1, step.to, chunk});
  }

  Fabric& fabric_;
  const SynthesisOptions& options_;
  Steps steps_;
  std::int64_t ranks_, chunks_;
  std::vector<Bits> has_, coming_;    // by rank
  std::vector<Bits> to_island_;       // by the number of an island: has or will have
  std::vector<std::int64_t> copies_;  // by chunk: ranks that have it or will
  std::vector<int> next_;             // by rank: whose turn it is to send to it
  std::vector<int> due_;              // ranks to be served now
  std::vector<bool> is_due_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Time now_{0};
  std::vector<Move> moves_;
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
