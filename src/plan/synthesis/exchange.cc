#include <algorithm>
#include <numeric>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "plan/synthesis/steps.h"
#include "plan/synthesis/synthesis.h"

namespace hemiola::plan {
namespace {

/// The fewest steps from every rank.
std::vector<int> hops_to(const Steps& steps, int ranks, int to) {
  std::vector<int> hops(index(ranks), -1);
  std::vector<int> queue{to};
  hops[index(to)] = 0;
  for (std::size_t i = 0; i < queue.size(); ++i) {
    for (const std::int32_t step : steps.into(queue[i])) {
      const int before = steps[step].from;
      if (hops[index(before)] >= 0) continue;
      hops[index(before)] = hops[index(queue[i])] + 1;
      queue.push_back(before);
    }
  }
  return hops;
}

/// Paths for all chunks of all pairs of ranks: the fewest steps, and among those the least sum of
/// squares of what the trunks carry.
class Paths {
 public:
  Paths(const Steps& steps, int ranks, std::int64_t parts, std::size_t trunks)
      : steps_(steps), ranks_(ranks), parts_(parts) {
    load_.assign(trunks, 0.0);
    paths_.resize(index(parts * ranks * ranks));
    for (int to = 0; to < ranks; ++to) hops_.push_back(hops_to(steps, ranks, to));
    constexpr int kRounds = 2;  // the first knows nothing of the pairs that come later
    for (int round = 0; round < kRounds; ++round) {
      for (int distance = 1; distance < ranks; ++distance) {
        for (std::int64_t part = 0; part < parts; ++part)
          for (int from = 0; from < ranks; ++from) choose(from, (from + distance) % ranks, part);
      }
    }
  }

  const std::vector<std::int32_t>& path(std::int64_t chunk) const { return paths_[index(chunk)]; }

 private:
  void add(const std::vector<std::int32_t>& path, double sign) {
    for (const std::int32_t step : path)
      for (const Step::Load& load : steps_[step].loads)
        load_[index(load.trunk)] += sign * load.busy.us();
  }

  double cost(std::int32_t step) const {
    double sum = 0;
    for (const Step::Load& load : steps_[step].loads)
      sum += load.busy.us() * (2 * load_[index(load.trunk)] + load.busy.us());
    return sum;
  }

  /// Forward, layer by layer, over the steps that come nearer.
  void choose(int from, int to, std::int64_t part) {
    std::vector<std::int32_t>& path =
        paths_[index((std::int64_t{from} * ranks_ + to) * parts_ + part)];
    add(path, -1);
    path.clear();
    struct Place {
      double cost = 0;
      std::int32_t step = -1;
    };
    std::vector<std::pair<int, Place>> layer{{from, {}}};
    std::vector<std::vector<std::pair<int, Place>>> layers;
    const std::vector<int>& hops = hops_[index(to)];
    for (int left = hops[index(from)]; left > 0; --left) {
      layers.push_back(layer);
      std::vector<std::pair<int, Place>> next;
      for (const auto& [rank, place] : layer) {
        for (const std::int32_t step : direct_or_all(rank, to, left)) {
          const int there = steps_[step].to;
          if (hops[index(there)] != left - 1) continue;
          const double total = place.cost + cost(step);
          auto known =
              std::ranges::find_if(next, [&, there](const auto& p) { return p.first == there; });
          if (known == next.end())
            next.push_back({there, {total, step}});
          else if (total < known->second.cost)
            known->second = {total, step};
        }
      }
      layer = std::move(next);
    }
    layers.push_back(layer);
    int rank = to;
    for (std::size_t i = layers.size() - 1; i > 0; --i) {
      const auto place =
          std::ranges::find_if(layers[i], [&](const auto& p) { return p.first == rank; });
      path.push_back(place->second.step);
      rank = steps_[place->second.step].from;
    }
    std::ranges::reverse(path);
    add(path, 1);
  }

  /// The last step is known: steps into a rank are in order of their senders.
  std::vector<std::int32_t> direct_or_all(int rank, int to, int left) const {
    if (left > 1) return steps_.out_of(rank);
    const auto& into = steps_.into(to);
    const auto found =
        std::lower_bound(into.begin(), into.end(), rank,
                         [&](std::int32_t step, int sender) { return steps_[step].from < sender; });
    return {*found};
  }

  const Steps& steps_;
  int ranks_;
  std::int64_t parts_;
  std::vector<double> load_;                      // by trunk: microseconds
  std::vector<std::vector<int>> hops_;            // by destination, then rank
  std::vector<std::vector<std::int32_t>> paths_;  // by chunk
};

class Exchange {
 public:
  Exchange(Fabric& fabric, const SynthesisOptions& options)
      : options_(options),
        steps_(fabric, options.chunk_bytes, false),
        ranks_(fabric.ranks()),
        paths_(steps_, ranks_, options.parts, fabric.trunks().size()) {
    waiting_.resize(steps_.all().size());
    is_due_.assign(index(ranks_), false);
    for (int rank = 0; rank < ranks_; ++rank) next_.push_back(rank + 1);
    for (std::int64_t chunk = 0; chunk < options.parts * ranks_ * ranks_; ++chunk) {
      total_ += std::ssize(paths_.path(chunk));
      arrive(chunk, 0);
    }
  }

  std::vector<Move> run() {
    moves_.reserve(index(total_));
    while (true) {
      std::vector<int> due = std::exchange(due_, {});
      std::ranges::sort(due);
      for (const int rank : due) is_due_[index(rank)] = false;
      for (const int rank : due) serve(rank);
      if (std::ssize(moves_) == total_) return std::move(moves_);
      now_ = events_.top().when;
      while (!events_.empty() && events_.top().when == now_) {
        const Event event = events_.top();
        events_.pop();
        if (event.trunk >= 0) {
          for (const std::int32_t step : steps_.over(event.trunk))
            if (!waiting_[index(step)].empty()) mark(steps_[step].to);
        } else {
          arrive(event.chunk, event.position);
        }
      }
    }
  }

 private:
  struct Event {
    Time when{0};
    std::int32_t trunk = -1;  // that becomes free; -1: a chunk arrives
    std::int64_t chunk = 0;
    std::int32_t position = 0;  // on its path
    bool operator>(const Event& other) const {
      return std::tie(when, trunk, chunk) > std::tie(other.when, other.trunk, other.chunk);
    }
  };

  void mark(int rank) {
    if (is_due_[index(rank)]) return;
    is_due_[index(rank)] = true;
    due_.push_back(rank);
  }

  /// The chunk is where its path's step number `position` begins.
  void arrive(std::int64_t chunk, std::int32_t position) {
    const auto& path = paths_.path(chunk);
    if (position == std::ssize(path)) return;
    Time left{0};
    for (auto i = index(position); i < path.size(); ++i)
      left += steps_[path[i]].busy + steps_[path[i]].latency;
    // The part first: early parts of all pairs before late ones.
    waiting_[index(path[index(position)])].insert(
        {{-left.fs}, chunk % options_.parts, chunk, position});
    mark(steps_[path[index(position)]].to);
  }

  /// Lets chunks start towards a rank, those with the longest way to go first, senders in turn.
  void serve(int rank) {
    std::vector<std::tuple<Time, int, std::int32_t>> free;
    for (const std::int32_t number : steps_.into(rank)) {
      if (waiting_[index(number)].empty() || !steps_.is_free(number, now_)) continue;
      const int turn = (steps_[number].from - next_[index(rank)] + 2 * ranks_) % ranks_;
      free.emplace_back(std::get<0>(*waiting_[index(number)].begin()), turn, number);
    }
    std::ranges::sort(free);
    for (const auto& [left, turn, number] : free)
      if (steps_.is_free(number, now_)) start(number);
  }

  void start(std::int32_t number) {
    const Step& step = steps_[number];
    const auto first = waiting_[index(number)].begin();
    const auto [left, part, chunk, position] = *first;
    waiting_[index(number)].erase(first);
    next_[index(step.to)] = step.from + 1;
    steps_.take(number, now_, [&](std::int32_t trunk, Time when) {
      events_.push({when, trunk, 0, 0});
    });
    const Time end = now_ + step.busy + step.latency;
    moves_.push_back({chunk, step.from, step.to, now_, end});
    events_.push({end, -1, chunk, position + 1});
  }

  const SynthesisOptions& options_;
  Steps steps_;
  int ranks_;
  Paths paths_;
  /// By step: time left (negative: most first), part, chunk, position.
  std::vector<std::set<std::tuple<Time, std::int64_t, std::int64_t, std::int32_t>>> waiting_;
  std::vector<int> next_;  // by rank: whose turn it is to send to it
  std::vector<int> due_;   // ranks to be served now
  std::vector<bool> is_due_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
  Time now_{0};
  std::int64_t total_ = 0;
  std::vector<Move> moves_;
};

}  // namespace

std::int64_t moves_of_exchange(Fabric& fabric) {
  const Steps steps(fabric, 1, false);
  std::int64_t moves = 0;
  for (int to = 0; to < fabric.ranks(); ++to) {
    const std::vector<int> hops = hops_to(steps, fabric.ranks(), to);
    moves = std::accumulate(hops.begin(), hops.end(), moves);
  }
  return moves;
}

std::vector<Move> schedule_exchange(Fabric& fabric, const SynthesisOptions& options) {
  return Exchange(fabric, options).run();
}

}  // namespace hemiola::plan
