#include "plan/waves.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace hemiola::plan {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct Job {
  std::int64_t start = 0;  // period
  std::int32_t missing = 0;
  std::vector<std::size_t> waiting;
  std::optional<Area> arrives;  // at the rank in question
};

bool writes_to(const Plan& plan, const Transfer& transfer, const Indices& when, int rank) {
  if (transfer.kind != TransferKind::push) return when.rank == rank;
  if (transfer.group < 0) return transfer.peer(when) == rank;
  const std::vector<int>& group = plan.groups[at(transfer.group)];
  return std::find(group.begin(), group.end(), rank) != group.end();
}

std::vector<Job> jobs_of(const Plan& plan, int rank, std::int32_t tensor) {
  std::vector<std::vector<std::size_t>> first(at(plan.ranks));  // by rank and stream
  std::size_t count = 0;
  for (int owner = 0; owner < plan.ranks; ++owner) {
    for (const Stream& stream : plan.code(owner).streams) {
      first[at(owner)].push_back(count);
      count += at(count_transfers(stream));
    }
  }
  std::vector<Job> jobs(count);
  const auto wait = [&](std::size_t job, std::size_t needed) {
    jobs[needed].waiting.push_back(job);
    ++jobs[job].missing;
  };
  for (int owner = 0; owner < plan.ranks; ++owner) {
    for (std::size_t s = 0; s < first[at(owner)].size(); ++s) {
      const std::size_t begin = first[at(owner)][s];
      std::size_t job = begin;
      for_each_transfer(
          plan.code(owner).streams[s], owner, [&](const Transfer& transfer, const Indices& when) {
            if (job > begin) wait(job, job - 1);
            for (const Dependency& needed : transfer.after) {
              if (!needed.computed)
                wait(job,
                     first[at(needed.rank(when))][at(needed.stream)] + at(needed.transfer(when)));
            }
            if (transfer.destination.tensor == tensor && writes_to(plan, transfer, when, rank))
              jobs[job].arrives = evaluate(transfer.destination, when);
            ++job;
          });
    }
  }
  return jobs;
}

}  // namespace

std::vector<std::vector<Area>> waves(const Plan& plan, int rank, std::int32_t tensor) {
  std::vector<std::vector<Area>> waves(1);
  if (const auto& resident = plan.code(rank).resident) {
    for (const Region& region : *resident) {
      if (region.tensor == tensor) waves[0].push_back(evaluate(region, {.rank = rank}));
    }
  } else if (plan.tensors[at(tensor)].role == Role::input) {
    waves[0].push_back(whole(plan, tensor));
  }

  std::vector<Job> jobs = jobs_of(plan, rank, tensor);
  std::vector<std::size_t> ready;
  for (std::size_t job = 0; job < jobs.size(); ++job) {
    if (jobs[job].missing == 0) ready.push_back(job);
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const std::int64_t end = jobs[ready[i]].start + 1;
    for (const std::size_t next : std::exchange(jobs[ready[i]].waiting, {})) {
      jobs[next].start = std::max(jobs[next].start, end);
      if (--jobs[next].missing == 0) ready.push_back(next);
    }
  }
  if (ready.size() < jobs.size())
    throw Failure("plan '" + plan.name + "' has transfers that wait for each other");

  std::map<std::int64_t, std::vector<Area>> by_period;
  for (const Job& job : jobs) {
    if (job.arrives) by_period[job.start].push_back(*job.arrives);
  }
  if (waves[0].empty()) waves.clear();
  for (auto& [period, areas] : by_period) waves.push_back(std::move(areas));
  return waves;
}

}  // namespace hemiola::plan
