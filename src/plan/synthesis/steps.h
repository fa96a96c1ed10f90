// The network of a synthesis in time: steps that a chunk can take between ranks, and the trunks
// that are busy meanwhile. Private to the layer.
#pragma once

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "core/index.h"
#include "plan/fabric.h"
#include "plan/synthesis/synthesis.h"

namespace hemiola::plan {

/// A way between neighbours, with the times of one chunk.
struct Step {
  struct Load {
    std::int32_t trunk = 0;
    Time busy{0};
  };
  int from = 0, to = 0;
  std::vector<Load> loads;
  Time busy{0};     ///< of the busiest trunk
  Time latency{0};  ///< beyond that, until the receiver can use it
  bool is_network = false;
};

class Steps {
 public:
  /// `against`: from `to` to `from` of the ways. Failure: ranks without a way to each other.
  Steps(Fabric& fabric, std::int64_t chunk_bytes, bool against);

  const std::vector<Step>& all() const { return steps_; }
  const Step& operator[](std::int32_t step) const { return steps_[index(step)]; }
  /// Into or out of a rank, by number.
  const std::vector<std::int32_t>& into(int rank) const { return into_[index(rank)]; }
  const std::vector<std::int32_t>& out_of(int rank) const { return out_of_[index(rank)]; }
  const std::vector<std::int32_t>& over(std::int32_t trunk) const { return over_[index(trunk)]; }

 private:
  std::vector<Step> steps_;
  std::vector<std::vector<std::int32_t>> into_, out_of_, over_;
};

/// Chunks start whenever trunks become free. Ranks to which something may come are served in order,
/// each by its senders in turn, until all moves are made.
class Timetable {
 public:
  Timetable(Fabric& fabric, std::int64_t chunk_bytes, bool against);

  const Steps& steps() const { return steps_; }
  bool is_free(std::int32_t step) const;
  /// How many others that send to the same rank come before the step's sender.
  int turn(const Step& step) const;
  /// The rank is served before time goes on.
  void mark(int rank);
  /// Now, over a step that is free.
  void start(std::int32_t step, std::int64_t chunk);

  /// Until there are `count` moves: serve(rank) lets chunks start towards a rank; freed(step) and
  /// arrived(rank, chunk) mark those that may get something now.
  template <class Serve, class Freed, class Arrived>
  std::vector<Move> run(std::int64_t count, Serve serve, Freed freed, Arrived arrived) {
    moves_.reserve(index(count));
    while (true) {
      std::vector<int> due = std::exchange(due_, {});
      std::ranges::sort(due);
      for (const int rank : due) is_due_[index(rank)] = false;
      for (const int rank : due) serve(rank);
      if (std::ssize(moves_) == count) return std::move(moves_);
      go_on();
      while (!events_.empty() && events_.top().when == now_) {
        const Event event = events_.top();
        events_.pop();
        if (event.trunk < 0) arrived(event.rank, event.chunk);
        if (event.trunk >= 0)
          for (const std::int32_t step : steps_.over(event.trunk)) freed(step);
      }
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
  void go_on();

  const Fabric& fabric_;
  Steps steps_;
  std::vector<Time> free_;  // by trunk
  std::vector<int> next_;   // by rank: whose turn it is to send to it
  std::vector<int> due_;    // ranks to be served now
  std::vector<bool> is_due_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Time now_{0};
  std::vector<Move> moves_;
};

}  // namespace hemiola::plan
