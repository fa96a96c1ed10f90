#include "sim/result/launches.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/result/period_shares.h"
#include "sim/support/index.h"

namespace hemiola::sim {
namespace {

constexpr auto kBefore = index(Reason::finished);
constexpr auto kLater = index(Reason::skew);

std::int64_t sum_of(const Attribution& spent) {
  return std::accumulate(spent.begin(), spent.end(), std::int64_t{0});
}

}  // namespace

LaunchLog::LaunchLog(const program::Bound& program) : linked_(program.linked()) {
  if (linked_ == nullptr) return;
  runs_.resize(index(program.ranks()));
  for (int rank = 0; rank < program.ranks(); ++rank) codes_.push_back(&program.code(rank));
}

Attribution LaunchLog::begin(int rank, std::int32_t launch, std::int64_t now,
                             const Attribution& spent) {
  runs_[index(rank)].push_back({.launch = launch, .begin = now, .before = spent});
  Attribution anew{};
  anew[kBefore] = now;
  return anew;
}

void LaunchLog::end(int rank, std::int32_t launch, std::int64_t now, const Attribution& spent) {
  std::vector<Run>& runs = runs_[index(rank)];
  const auto run = std::find_if(runs.rbegin(), runs.rend(), [&](const Run& known) {
    return known.launch == launch && known.end < 0;
  });
  run->end = now;
  run->inside = spent;
}

// Launches that began at the same time came to it by ways that are equally long; the first rank's
// is taken.
Attribution LaunchLog::whole(const Attribution& spent) const {
  Attribution all{};
  Attribution rest = spent;
  while (true) {
    const std::int64_t began = std::exchange(rest[kBefore], 0);
    for (std::size_t r = 0; r < kReasons; ++r) all[r] += rest[r];
    if (began == 0) return all;
    const Run* origin = nullptr;
    for (std::size_t rank = 0; rank < runs_.size() && origin == nullptr; ++rank) {
      const std::vector<Run>& runs = runs_[rank];
      auto run = std::lower_bound(runs.begin(), runs.end(), began,
                                  [](const Run& r, std::int64_t time) { return r.begin < time; });
      for (; run != runs.end() && run->begin == began && origin == nullptr; ++run)
        if (run->before[kBefore] < began) origin = &*run;
    }
    if (origin == nullptr) {  // cannot be: an attribution only begins with the begin of a launch
      all[index(Reason::launch)] += began;
      return all;
    }
    rest = origin->before;
  }
}

const LaunchLog::Run* LaunchLog::last_run(int rank, std::int32_t launch) const {
  const std::vector<Run>& runs = runs_[index(rank)];
  const auto run = std::find_if(runs.rbegin(), runs.rend(),
                                [&](const Run& known) { return known.launch == launch; });
  return run == runs.rend() ? nullptr : &*run;
}

// A rank that another one stands for does the same, in launches that stand at the same places.
std::int32_t LaunchLog::counterpart(int rank, std::int32_t launch, int there) const {
  std::map<std::int32_t, std::int32_t>& known = counterparts_[rank];
  if (known.empty()) {
    const auto& streams = codes_[index(rank)]->streams;
    for (std::size_t s = 0; s < streams.size(); ++s)
      for (std::size_t i = 0; i < streams[s].size(); ++i)
        if (streams[s][i].kind == program::StreamItem::Kind::launch_begin)
          known[linked_->frames[index(streams[s][i].frame)].launch] =
              linked_->frames[index(codes_[index(there)]->streams[s][i].frame)].launch;
  }
  return known.at(launch);
}

std::vector<LaunchResult> LaunchLog::results(const std::vector<int>& home) const {
  std::vector<LaunchResult> results;
  if (linked_ == nullptr) return results;
  for (std::size_t l = 0; l < linked_->launches.size(); ++l) {
    const program::Linked::Launch& launch = linked_->launches[l];
    LaunchResult result{
        .name = launch.name, .program = launch.what, .ranks = launch.ranks, .size = launch.size};
    const Run* latest = nullptr;
    for (const int rank : launch.ranks) {
      const int there = home[index(rank)];
      const Run* run =
          last_run(there, there == rank ? static_cast<std::int32_t>(l)
                                        : counterpart(rank, static_cast<std::int32_t>(l), there));
      if (run == nullptr) continue;
      if (latest == nullptr || run->begin < result.begin.fs) result.begin = {run->begin};
      if (latest == nullptr || run->end > result.end.fs) {
        latest = run;
        result.end = {run->end};
        result.latest = rank;
      }
    }
    if (latest != nullptr) {
      // Whoever its end hung on may have begun later than the first rank, or hung on a launch
      // before this one.
      result.attribution = latest->inside;
      const std::int64_t from = std::exchange(result.attribution[kBefore], 0);
      const std::int64_t time = (result.end - result.begin).fs;
      if (from >= result.begin.fs)
        result.attribution[kLater] += from - result.begin.fs;
      else
        scale_to_period(result.attribution, sum_of(result.attribution), {time});
    }
    results.push_back(std::move(result));
  }
  return results;
}

}  // namespace hemiola::sim
