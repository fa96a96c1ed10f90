#include "study/laboratory/job_run.h"

#include <algorithm>
#include <map>
#include <utility>

#include "program/jobs/job.h"
#include "study/laboratory/job_file.h"

namespace hemiola::study {
namespace {

/// The launch by itself, on the ranks and in the stream that it has.
program::Bound alone(const program::Job& job, std::int32_t number,
                     const machine::SharedMachine& machine) {
  auto one = std::make_shared<program::Job>();
  one->name = job.launches[index(number)].name;
  one->source = job.source;
  one->streams = job.streams;
  one->launches = {job.launches[index(number)]};
  one->launches.front().after.clear();
  one->launches.front().at = {};
  return program::link(std::move(one), machine);
}

/// Everybody who was under way meanwhile, the longest first.
void add_causes(std::vector<sim::LaunchResult>& launches) {
  for (sim::LaunchResult& launch : launches) {
    const Time extra = launch.end - launch.begin - launch.alone;
    if (launch.alone.fs == 0 || extra.fs <= 0) continue;
    __int128 all = 0;
    for (const sim::LaunchResult& other : launches) {
      const Time overlap = std::min(launch.end, other.end) - std::max(launch.begin, other.begin);
      if (&other == &launch || overlap.fs <= 0) continue;
      launch.slowed_by.push_back({other.name, overlap, {}});
      all += overlap.fs;
    }
    for (auto& cause : launch.slowed_by)
      cause.share = {
          static_cast<std::int64_t>(static_cast<__int128>(extra.fs) * cause.overlap.fs / all)};
    std::ranges::stable_sort(launch.slowed_by,
                             [](const auto& a, const auto& b) { return a.share > b.share; });
  }
}

}  // namespace

Outcome run_job(Laboratory& laboratory, const JobRequest& request, const Watch& watch) {
  const machine::SharedMachine machine = laboratory.machine(request.machine);
  const std::shared_ptr<const program::Job> job =
      request.text ? parse_job(*request.text, request.file, machine, laboratory, watch)
                   : read_job(request.file, machine, laboratory, watch);
  Experiment whole{
      .subject = program::link(job, machine), .check = request.check, .options = request.options};
  Outcome outcome = laboratory.run(whole, watch);
  const std::vector<program::JobPart>& parts = *outcome.bound.linked()->parts;
  if (!request.alone || job->launches.size() < 2 || parts.size() > kMostAlone) return outcome;
  sim::Options options = request.options;
  options.trace = nullptr;
  for (const program::JobPart& part : parts) {
    std::map<std::string, sim::LaunchResult> by_stream;  // each may have other compute units
    for (const std::int32_t number : part.launches) {
      const std::string& stream = job->launches[index(number)].stream;
      auto known = by_stream.find(stream);
      if (known == by_stream.end()) {
        const sim::Result result =
            laboratory.simulate(alone(*job, number, machine), options, watch);
        known = by_stream.emplace(stream, result.launches.front()).first;
      }
      sim::LaunchResult& launch = outcome.result.launches[index(number)];
      launch.alone = known->second.end - known->second.begin;
      launch.alone_attribution = known->second.attribution;
    }
  }
  add_causes(outcome.result.launches);
  return outcome;
}

}  // namespace hemiola::study
