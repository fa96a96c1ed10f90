#include "tune/tuner.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "tune/descent.h"
#include "tune/trials.h"

namespace hemiola::tune {
namespace {

/// Points between two looks at what the best is, where no line of a descent says it. Fixed, so that
/// the result does not depend on how many threads there are.
constexpr std::size_t kBatchOfPoints = 8;

compile::KernelRequest with_configurations(const compile::KernelRequest& kernel) {
  compile::KernelRequest all = kernel;
  if (all.configurations.empty()) all.configurations = compile::configurations_of(kernel);
  return all;
}

void check_template(const std::string& name, const parts::Registry* parts) {
  if (plan::find_template(name, parts) != nullptr) return;
  std::vector<std::string> names;
  for (const plan::TemplateInfo& one : plan::templates(parts)) names.push_back(one.name);
  const std::string like = suggest(name, names);
  throw Failure(
      "'" + name + "' is no template of plans", {.file = "--plan"},
      like.empty() ? "for example ag-gemm/swizzle; 'hemiola plan show' lists them" : like);
}

/// Nothing was simulated.
[[noreturn]] void refuse_all(const Request& request, const Bucket& bucket) {
  const auto most = std::max_element(
      bucket.dropped.begin(), bucket.dropped.end(),
      [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
  if (most == bucket.dropped.end())
    throw Failure("nothing was simulated", {.file = "--budget"}, "give more");
  throw Failure(
      fmt::format("none of {} points can be tried; of {} of them the {} is the reason, "
                  "first of {}",
                  bucket.space, most->second.count, name_of(most->first), most->second.first),
      {.file = request.kernel.describe.file},
      "other configurations (--configs), or other values with --param");
}

/// Of a template that makes a plan at some point. Failure, the first one, where it makes none.
std::vector<std::string> tiles_of(const plan::TemplateInfo& info, const Space& space,
                                  const std::vector<Point>& points,
                                  const machine::Machine& machine) {
  std::optional<Failure> first;
  std::set<study::Settings> tried;
  for (const Point& point : points) {
    const study::Settings parameters = space.plan_parameters(point);
    if (!tried.insert(parameters).second) continue;
    try {
      return tile_parameters(info, machine.ranks(), parameters, &machine);
    } catch (const Failure& failure) {
      if (!first) first = failure;
    }
  }
  throw *first;
}

std::string timing_of(const sim::Options& options) {
  const std::string launch = options.launch == sim::Launch::graph ? " --launch graph" : "";
  if (options.iterations == 0) return launch;
  return launch + fmt::format(" --warmup {} --iterations {}", options.warmup, options.iterations);
}

}  // namespace

std::string_view name_of(Method method) {
  constexpr std::string_view kNames[] = {"descent", "random", "exhaustive"};
  return kNames[static_cast<std::size_t>(method)];
}

std::string_view name_of(Dropped why) {
  constexpr std::string_view kNames[] = {"plan", "fusion", "realization", "lowering"};
  return kNames[static_cast<std::size_t>(why)];
}

const Candidate* Bucket::winner() const {
  for (const Candidate& one : candidates)
    if (one.is_written) return &one;
  return nullptr;
}

std::vector<std::size_t> Bucket::pareto() const {
  std::vector<std::size_t> front;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& one = candidates[i];
    const auto beats = [&](const Candidate& other) {
      return other.buffers <= one.buffers && other.workgroups <= one.workgroups;
    };
    // Candidates are in the order of time.
    const bool is_beaten = std::any_of(
        front.begin(), front.end(), [&](std::size_t before) { return beats(candidates[before]); });
    if (!is_beaten) front.push_back(i);
  }
  return front;
}

Tuning tune(study::Laboratory& laboratory, const Request& asked, const TuneWatch& watch) {
  check_template(asked.plan, laboratory.parts());
  Request request = asked;
  request.kernel = with_configurations(asked.kernel);
  const machine::SharedMachine machine = explore::machine_to_explore(laboratory, request.machine);
  const plan::TemplateInfo& info = *plan::find_template(request.plan, laboratory.parts());
  Tuning tuning{.kernel = request.kernel.describe.file,
                .plan = request.plan,
                .machine = machine->name,
                .ranks = machine->ranks(),
                .method = request.method,
                .budget = request.budget,
                .timing = timing_of(request.options)};
  std::optional<Point> before;
  for (std::size_t i = 0; i < request.parameters.buckets.size(); ++i) {
    const study::Settings& sizes = request.parameters.buckets[i];
    const Space space(info, sizes, request.parameters.choices, request.kernel.configurations,
                      *machine);
    const std::vector<Point> points = space.points();
    const std::vector<std::string> tiles = tiles_of(info, space, points, *machine);
    tuning.dimensions = space.dimensions();
    Bucket bucket{.name = bucket_name(request.parameters.buckets, i),
                  .sizes = sizes,
                  .space = std::ssize(points)};
    Trials trials(laboratory, request, space, tiles, machine, watch, bucket);
    Draws draws(request.seed);
    if (request.method == Method::descent) {
      // Neighbouring sizes have like winners.
      Descent(space, trials, draws, bucket).run(before.value_or(space.usual()));
    } else {
      std::vector<Point> order = points;
      if (request.method == Method::random) draws.shuffle(order);
      for (std::size_t next = 0; next < order.size() && trials.left() > 0;) {
        const std::size_t end = std::min(order.size(), next + kBatchOfPoints);
        trials.simulate_and_sample({order.begin() + static_cast<std::ptrdiff_t>(next),
                                    order.begin() + static_cast<std::ptrdiff_t>(end)});
        next = end;
      }
    }
    trials.finish();
    if (bucket.candidates.empty()) refuse_all(request, bucket);
    if (const Candidate* winner = bucket.winner()) before = winner->point;
    tuning.buckets.push_back(std::move(bucket));
  }
  return tuning;
}

plan::Plan plan_of(study::Laboratory& laboratory, const Request& request,
                   const Candidate& candidate) {
  explore::PlanTrial plans(laboratory, request.options, DataType::float32,
                           explore::machine_to_explore(laboratory, request.machine), nullptr);
  return plans.plan_of(candidate.plan);
}

compile::FusedFile fused_of(const Request& request, const Candidate& candidate,
                            const plan::Plan& plan) {
  compile::KernelRequest kernel = request.kernel;
  kernel.configurations = {candidate.configuration};
  kernel.carries = candidate.movers.carried;
  return {kernel, plan, request.plan};
}

}  // namespace hemiola::tune
