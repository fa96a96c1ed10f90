#include <algorithm>
#include <numeric>
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
        timetable_(fabric, options.chunk_bytes, false),
        steps_(timetable_.steps()),
        paths_(steps_, fabric.ranks(), options.parts, fabric.trunks().size()) {
    waiting_.resize(steps_.all().size());
    taken_.resize(index(options.parts * fabric.ranks() * fabric.ranks()));
    for (std::int64_t chunk = 0; chunk < std::ssize(taken_); ++chunk) {
      total_ += std::ssize(paths_.path(chunk));
      arrive(chunk);
    }
  }

  std::vector<Move> run() {
    return timetable_.run(
        total_, [&](int rank) { serve(rank); },
        [&](std::int32_t step) {
          if (!waiting_[index(step)].empty()) timetable_.mark(steps_[step].to);
        },
        [&](int, std::int64_t chunk) { arrive(chunk); });
  }

 private:
  /// The chunk is where its path's next step begins, or at the end.
  void arrive(std::int64_t chunk) {
    const auto& path = paths_.path(chunk);
    const std::size_t position = taken_[index(chunk)];
    if (position == path.size()) return;
    Time left{0};
    for (std::size_t i = position; i < path.size(); ++i)
      left += steps_[path[i]].busy + steps_[path[i]].latency;
    // The part first: early parts of all pairs before late ones.
    waiting_[index(path[position])].insert({{-left.fs}, chunk % options_.parts, chunk});
    timetable_.mark(steps_[path[position]].to);
  }

  /// Lets chunks start towards a rank, those with the longest way to go first, senders in turn.
  void serve(int rank) {
    std::vector<std::tuple<Time, int, std::int32_t>> free;
    for (const std::int32_t number : steps_.into(rank)) {
      if (waiting_[index(number)].empty() || !timetable_.is_free(number)) continue;
      free.emplace_back(std::get<0>(*waiting_[index(number)].begin()),
                        timetable_.turn(steps_[number]), number);
    }
    std::ranges::sort(free);
    for (const auto& [left, turn, number] : free)
      if (timetable_.is_free(number)) start(number);
  }

  void start(std::int32_t number) {
    const auto first = waiting_[index(number)].begin();
    const std::int64_t chunk = std::get<2>(*first);
    waiting_[index(number)].erase(first);
    ++taken_[index(chunk)];
    timetable_.start(number, chunk);
  }

  const SynthesisOptions& options_;
  Timetable timetable_;
  const Steps& steps_;
  Paths paths_;
  /// By step: time left (negative: most first), part, chunk.
  std::vector<std::set<std::tuple<Time, std::int64_t, std::int64_t>>> waiting_;
  std::vector<std::size_t> taken_;  // by chunk: steps of its path
  std::int64_t total_ = 0;
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
