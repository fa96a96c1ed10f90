#include "workload/costs/scene_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <utility>

#include "core/index.h"
#include "core/json.h"
#include "sim/simulate.h"

namespace hemiola::workload {
namespace {

sim::Engine engine_of(Level level) {
  switch (level) {
    case Level::sampled:
      return sim::Engine::sampled;
    case Level::line:
      return sim::Engine::line;
    case Level::estimate:
    case Level::fluid:
      break;
  }
  return sim::Engine::fluid;
}

/// A call of very many ranks or bytes and nothing else. As a program and not as a job the engines
/// fold it: an all-reduce of 1,024 ranks takes a second, and as a job, where all pairs of ranks
/// count, hours; one of 10 GB on 32 ranks eight seconds instead of 77.
bool is_large(const Scene& scene) {
  constexpr std::size_t kManyRanks = 64;
  constexpr std::int64_t kManyBytes = std::int64_t{256} << 20;  // how it begins hardly matters
  const ScenePart& part = scene.parts.front();
  return scene.parts.size() == 1 && !is_local(part.kind.kind) &&
         (scene.ranks.size() > kManyRanks || part.bytes >= kManyBytes) && part.groups.size() == 1 &&
         part.groups.front().size() == scene.ranks.size();
}

/// Ranks that take part, each as often as it does: in a ring a rank sends and receives.
std::size_t members_of(const ScenePart& part) {
  std::size_t members = 0;
  for (const auto& group : part.groups) members += group.size();
  return members;
}

}  // namespace

std::string text_of(const SceneTimes& times) {
  nlohmann::json text = {
      {"first_fs", times.first.fs},           {"next_fs", times.next.fs},
      {"after_fs", times.after.fs},           {"latency_fs", times.latency.fs},
      {"simulations", times.simulations},     {"traffic", nlohmann::json::array()},
      {"lengths_fs", nlohmann::json::array()}};
  for (const Traffic& one : times.traffic)
    text["traffic"].push_back({one.link_class, one.wire_bytes});
  for (const Time length : times.lengths) text["lengths_fs"].push_back(length.fs);
  return text.dump();
}

SceneTimes scene_times_of(const std::string& text) {
  try {
    const JsonText file(text, "--parts");
    const JsonValue said = file.root();
    const auto time = [&](const char* key) {
      return Time{said.integer(key, INT64_MIN, INT64_MAX)};
    };
    SceneTimes times{.first = time("first_fs"),
                     .next = time("next_fs"),
                     .after = time("after_fs"),
                     .latency = time("latency_fs"),
                     .simulations = static_cast<int>(said.integer("simulations", 0, INT32_MAX))};
    for (const JsonValue& one : said.at("traffic").items()) {
      const std::vector<JsonValue> pair = one.items();
      if (pair.size() != 2) one.fail("a class of links and its bytes are needed here");
      times.traffic.push_back({pair[0].text(), pair[1].number()});
    }
    for (const JsonValue& length : said.at("lengths_fs").items())
      times.lengths.push_back({length.integer(INT64_MIN, INT64_MAX)});
    return times;
  } catch (const Failure&) {
    throw Failure("a part is no simulation of launches", {.file = "--parts"},
                  "remove this folder, or give another one");
  }
}

LaunchPrograms::Made SceneTimer::program_of(const ScenePart& part, const std::vector<int>& ranks) {
  if (part.is_any_kernel) return programs_.any_kernel(ranks.front());
  if (is_kernel(part.kind.kind)) return programs_.kernel(part.kind.work, ranks.front());
  if (part.kind.kind == NodeKind::receive) return programs_.copy(part.bytes, ranks.front());
  return programs_.call(part.kind, part.bytes, ranks);
}

void SceneTimer::begin(const Scene& scene) {
  if (options_.monitor != nullptr) options_.monitor->leave_if_stopping();
  if (options_.on_simulation) options_.on_simulation(scenes_.text_of(scene));
}

/// Each part on a stream of its own, `times` times one after the other. The launch of part p's
/// first group that comes r-th is p * times + r of the result. `after`: of one part, then a short
/// kernel and, on a stream that waits for it, the part once more; both are in the result.
sim::Result SceneTimer::simulate(const Scene& scene, int times, sim::Engine engine, bool after) {
  begin(scene);
  auto job = std::make_shared<program::Job>();
  job->name = "launches of " + workload_.name;
  job->source = workload_.source;
  std::vector<std::size_t> own;
  for (std::size_t p = 0; p < scene.parts.size(); ++p) {
    const std::string stream = "stream " + std::to_string(p);
    for (int t = 0; t < times; ++t) {
      own.push_back(job->launches.size());
      add_launches(*job, scene, scene.parts[p], stream, stream + " " + std::to_string(t));
    }
  }
  if (after) {
    std::vector<std::int32_t> last;
    for (std::size_t l = own.back(); l < job->launches.size(); ++l)
      last.push_back(static_cast<std::int32_t>(l));
    const LaunchPrograms::Made probe = programs_.short_kernel(scene.ranks.front());
    own.push_back(job->launches.size());
    std::vector<int> all(scene.ranks.size());
    std::iota(all.begin(), all.end(), 0);
    job->launches.push_back({.name = "probe",
                             .program = probe.program,
                             .options = probe.options,
                             .ranks = std::move(all),
                             .alone = true,
                             .stream = "probe",
                             .after = std::move(last)});
    own.push_back(job->launches.size());
    add_launches(*job, scene, scene.parts.front(), "after", "after");
    for (std::size_t l = own.back(); l < job->launches.size(); ++l)
      job->launches[l].after = {static_cast<std::int32_t>(own.back()) - 1};
  }
  const machine::SharedMachine ranks = machine::select_ranks(machine_, scene.ranks);
  const program::Bound bound = program::link(std::move(job), ranks);
  // Links count in what is alone, and nobody asks for bounds: they were half of the work.
  sim::Result result = laboratory_.simulate(bound, {.engine = engine,
                                                    .launch = options_.launch,
                                                    .counts = after,
                                                    .bound = false,
                                                    .touched = touched_});
  std::vector<sim::LaunchResult> launches;
  for (const std::size_t l : own) launches.push_back(result.launches[l]);
  result.launches = std::move(launches);
  return result;
}

/// One for each group of the part; kernels of the same program are one launch of all ranks.
void SceneTimer::add_launches(program::Job& job, const Scene& scene, const ScenePart& part,
                              const std::string& stream, const std::string& name) {
  const std::size_t first = job.launches.size();
  // What a rank sends and what it receives in a ring are under way at the same time.
  const std::vector<int> sets = disjoint_sets(part.groups);
  for (std::size_t g = 0; g < part.groups.size(); ++g) {
    const LaunchPrograms::Made made = program_of(part, scene.real(part.groups[g]));
    if (is_local(part.kind.kind) && job.launches.size() > first &&
        job.launches.back().program == made.program) {
      job.launches.back().ranks.push_back(part.groups[g].front());
      continue;
    }
    job.launches.push_back({.name = name + " " + std::to_string(g),
                            .program = made.program,
                            .options = made.options,
                            .ranks = part.groups[g],
                            .alone = is_local(part.kind.kind),
                            .stream = sets[g] == 0 ? stream : fmt::format("{} {}", stream, sets[g]),
                            .communicator = "calls"});
  }
}

SceneTimes SceneTimer::large(const Scene& scene, sim::Engine engine) {
  begin(scene);
  const LaunchPrograms::Made made =
      program_of(scene.parts.front(), scene.real(scene.parts.front().groups.front()));
  const program::Bound bound =
      program::bind(made.program, machine::select_ranks(machine_, scene.ranks), made.options);
  sim::Options options{
      .engine = engine, .launch = options_.launch, .bound = false, .touched = touched_};
  const sim::Result alone = laboratory_.simulate(bound, options);
  const Time cold = alone.time;
  options.counts = false;
  options.warmup = options.iterations = 1;
  const Time next = laboratory_.simulate(bound, options).time;
  const machine::GpuModel& model = machine_->model(scene.ranks.front());
  const Time latency = options_.launch == sim::Launch::graph ? model.launch_graph_latency
                                                             : model.launch_stream_latency;
  const Time first = cold > latency ? cold - latency : Time{1};
  return {.first = first,
          .next = next,
          .after = first,
          .latency = latency,
          .traffic = traffic_of(alone, scene.ranks.size(), 1),
          .simulations = 2};
}

/// Products by their model, everything else by the bound that no engine is below.
SceneTimes SceneTimer::estimate(const Scene& scene) {
  const ScenePart& part = scene.parts.front();
  const std::vector<int> ranks = scene.real(part.groups.front());
  Time time{};
  if (is_kernel(part.kind.kind) && !options_.roofline &&
      workload_.computes[index(part.kind.work)].kind == Compute::Kind::product) {
    time = machine::estimate_gemm(machine_->model(ranks.front()),
                                  workload_.computes[index(part.kind.work)].product)
               .time;
  } else {
    const LaunchPrograms::Made made = program_of(part, ranks);
    const program::Bound bound =
        program::bind(*made.program, machine::select_ranks(machine_, ranks), made.options);
    time = sim::lower_bound(bound, {.launch = options_.launch}).time();
  }
  return {.first = time, .next = time, .after = time};
}

SceneTimes SceneTimer::alone(const Scene& scene, Level level) {
  SceneTimes found;
  if (level == Level::estimate) {
    found = estimate(scene);
  } else if (is_large(scene)) {
    return large(scene, engine_of(level));
  } else {
    const sim::Result result = simulate(scene, 2, engine_of(level), true);
    const sim::LaunchResult& first = result.launches[0];
    const sim::LaunchResult& second = result.launches[1];
    found.after = result.launches[3].end - result.launches[2].end;
    found.next = second.end - first.end;
    found.first = first.end - first.begin;
    found.latency = first.begin;
    found.simulations = 1;
    if (!is_local(scene.parts.front().kind.kind))
      // Twice, and once after a kernel.
      found.traffic = traffic_of(result, members_of(scene.parts.front()), 3);
  }
  found.next = std::max(found.next, Time{1});
  found.first = std::max(found.first, Time{1});
  found.after = std::max(found.after, Time{1});
  return found;
}

SceneTimes SceneTimer::at_once(const Scene& scene) {
  const sim::Result run = simulate(scene, 1, sim::Engine::fluid, false);
  SceneTimes found{.simulations = 1};
  for (const sim::LaunchResult& launch : run.launches)
    found.lengths.push_back(launch.end - launch.begin);
  return found;
}

}  // namespace hemiola::workload
