// Which launches of a job are over before which.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <set>

#include "core/index.h"
#include "program/jobs/job.h"

namespace hemiola::program {
namespace {

Failure launch_failure(const Launch& launch, const std::string& message,
                       const std::string& hint = {}) {
  return Failure(fmt::format("launch '{}' {}", launch.name, message), launch.where, hint);
}

void check_ranks(const Launch& launch, int ranks) {
  if (launch.ranks.empty())
    throw launch_failure(launch, "runs on no rank", "name its ranks, or leave them out for all");
  std::set<int> seen;
  for (const int rank : launch.ranks) {
    if (rank < 0 || rank >= ranks)
      throw launch_failure(launch, fmt::format("names rank {}", rank),
                           fmt::format("the machine has ranks 0 to {}", ranks - 1));
    if (!seen.insert(rank).second)
      throw launch_failure(launch, fmt::format("names rank {} twice", rank));
  }
  const int own = launch.program->ranks;
  if (launch.alone ? own != 1 : own != static_cast<int>(launch.ranks.size()))
    throw launch_failure(launch, fmt::format("gives {} ranks to {}, which has {}",
                                             launch.ranks.size(), launch.program->name, own));
}

bool have_common_rank(const Launch& a, const Launch& b) {
  return std::ranges::any_of(
      a.ranks, [&](int rank) { return std::ranges::find(b.ranks, rank) != b.ranks.end(); });
}

/// "a -> b -> a", of launches none of which can be sorted.
std::string circle_of(const Job& job, const std::vector<std::vector<std::int32_t>>& before,
                      std::int32_t start, const std::vector<std::int32_t>& missing) {
  std::vector<std::int32_t> way;
  std::int32_t at = start;
  while (std::ranges::find(way, at) == way.end()) {
    way.push_back(at);
    for (const std::int32_t other : before[index(at)])
      if (missing[index(other)] > 0) at = other;
  }
  const auto begin = std::ranges::find(way, at);
  std::string text = job.launches[index(at)].name;
  for (auto it = std::make_reverse_iterator(way.end()); it != std::make_reverse_iterator(begin);
       ++it)
    text += " -> " + job.launches[index(*it)].name;
  return text;
}

}  // namespace

JobOrder::JobOrder(const Job& job, int ranks) {
  check(job, ranks);
  sort(job, ranks);
  place(job, ranks);
}

void JobOrder::check(const Job& job, int ranks) const {
  if (job.launches.empty())
    throw Failure("a job without launches has nothing to run", {.file = job.source});
  std::set<std::string> names;
  for (const Launch& launch : job.launches) {
    if (!names.insert(launch.name).second)
      throw launch_failure(launch, "has the name of another one", "names are unique in a job");
    check_ranks(launch, ranks);
    for (const std::int32_t other : launch.after) {
      if (other < 0 || other >= std::ssize(job.launches))
        throw launch_failure(
            launch, fmt::format("comes after launch number {}, which is not there", other));
      if (!have_common_rank(launch, job.launches[index(other)]))
        throw launch_failure(
            launch,
            fmt::format("comes after '{}', which runs on none of its ranks",
                        job.launches[index(other)].name),
            "only a communication lets a rank wait for another: launch one between them");
    }
  }
}

// A launch comes after the one before it in each of its streams, and after those that it names.
void JobOrder::sort(const Job& job, int ranks) {
  const auto count = job.launches.size();
  std::vector<std::vector<std::int32_t>> before(count), behind(count);
  std::vector<std::map<std::string, std::int32_t>> last(index(ranks));  // by rank and stream
  for (std::size_t i = 0; i < count; ++i) {
    const Launch& launch = job.launches[i];
    before[i] = launch.after;
    for (const int rank : launch.ranks) {
      const auto [known, is_first] =
          last[index(rank)].try_emplace(launch.stream, static_cast<std::int32_t>(i));
      if (is_first) continue;
      before[i].push_back(known->second);
      known->second = static_cast<std::int32_t>(i);
    }
    std::ranges::sort(before[i]);
    before[i].erase(std::unique(before[i].begin(), before[i].end()), before[i].end());
    for (const std::int32_t other : before[i])
      behind[index(other)].push_back(static_cast<std::int32_t>(i));
  }
  std::vector<std::int32_t> missing;
  std::priority_queue<std::int32_t, std::vector<std::int32_t>, std::greater<>> free;
  for (std::size_t i = 0; i < count; ++i) {
    missing.push_back(static_cast<std::int32_t>(before[i].size()));
    if (before[i].empty()) free.push(static_cast<std::int32_t>(i));
  }
  while (!free.empty()) {
    const std::int32_t next = free.top();
    free.pop();
    sequence_.push_back(next);
    for (const std::int32_t other : behind[index(next)])
      if (--missing[index(other)] == 0) free.push(other);
  }
  if (sequence_.size() == count) return;
  const auto stuck = std::ranges::find_if(missing, [](std::int32_t left) { return left > 0; });
  const auto first = static_cast<std::int32_t>(stuck - missing.begin());
  throw Failure(
      "launches wait for each other in a circle: " + circle_of(job, before, first, missing),
      job.launches[index(first)].where,
      "launches of one stream run in the order of the job; 'after' adds to that",
      ExitCode::deadlock);
}

void JobOrder::place(const Job& job, int ranks) {
  of_rank_.resize(index(ranks));
  streams_.resize(index(ranks));
  places_.resize(job.launches.size());
  std::vector<std::vector<std::int32_t>> last(index(ranks));  // by rank and stream
  for (const std::int32_t number : sequence_) {
    const Launch& launch = job.launches[index(number)];
    auto& places = places_[index(number)];
    for (const int rank : launch.ranks) {
      of_rank_[index(rank)].push_back(number);
      std::vector<std::string>& names = streams_[index(rank)];
      const auto found = std::ranges::find(names, launch.stream);
      Place place{.stream = static_cast<std::int32_t>(found - names.begin())};
      if (found == names.end()) {
        names.push_back(launch.stream);
        last[index(rank)].push_back(-1);
      }
      const auto add = [&](std::int32_t other) {
        const Place& there = place_of(other, rank);
        place.before.resize(
            std::max({place.before.size(), there.before.size(), index(there.stream) + 1}));
        for (std::size_t s = 0; s < there.before.size(); ++s)
          place.before[s] = std::max(place.before[s], there.before[s]);
        place.before[index(there.stream)] =
            std::max(place.before[index(there.stream)], there.position);
      };
      std::int32_t& previous = last[index(rank)][index(place.stream)];
      if (previous >= 0) {
        place.position = place_of(previous, rank).position;
        add(previous);
      }
      ++place.position;
      previous = number;
      for (const std::int32_t other : launch.after) {
        const std::vector<int>& there = job.launches[index(other)].ranks;
        if (std::ranges::find(there, rank) != there.end()) add(other);
      }
      places.emplace_back(rank, std::move(place));
    }
    std::ranges::sort(places, {}, [](const auto& one) { return one.first; });
  }
}

const JobOrder::Place& JobOrder::place_of(std::int32_t launch, int rank) const {
  const auto& places = places_[index(launch)];
  return std::lower_bound(places.begin(), places.end(), rank,
                          [](const auto& place, int r) { return place.first < r; })
      ->second;
}

bool JobOrder::is_before_on(int rank, std::int32_t first, std::int32_t second) const {
  const Place& a = place_of(first, rank);
  const Place& b = place_of(second, rank);
  return index(a.stream) < b.before.size() && b.before[index(a.stream)] >= a.position;
}

}  // namespace hemiola::program
