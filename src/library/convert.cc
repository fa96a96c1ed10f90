#include "library/convert.h"

namespace hemiola {
namespace {

// Both are listed in the same order.
static_assert(static_cast<int>(Verdict::deadlock) == static_cast<int>(verify::Verdict::deadlock));
static_assert(static_cast<int>(Engine::reference) == static_cast<int>(sim::Engine::reference));
static_assert(static_cast<int>(Engine::fluid) == static_cast<int>(sim::Engine::fluid));
static_assert(static_cast<int>(Engine::sampled) == static_cast<int>(sim::Engine::sampled));
static_assert(static_cast<int>(LaunchMode::graph) == static_cast<int>(sim::Launch::graph));

LinkUse public_link(const sim::LinkUse& link) {
  return {.from = link.from,
          .to = link.to,
          .lane = link.lane,
          .link_class = link.link_class,
          .payload_bytes = link.payload_bytes,
          .wire_bytes = link.wire_bytes,
          .busy = link.busy,
          .max_queue = link.max_queue};
}

Attribution public_attribution(const sim::Attribution& reasons) {
  Attribution all;
  for (std::size_t i = 0; i < sim::kReasons; ++i)
    all.emplace(sim::name_of(static_cast<sim::Reason>(i)), Time{reasons[i]});
  return all;
}

LaunchResult public_launch(const sim::LaunchResult& launch) {
  LaunchResult all{.name = launch.name,
                   .program = launch.program,
                   .ranks = launch.ranks,
                   .size = launch.size,
                   .begin = launch.begin,
                   .end = launch.end,
                   .latest_rank = launch.latest,
                   .attribution = public_attribution(launch.attribution),
                   .alone = launch.alone};
  if (launch.alone.fs > 0) all.alone_attribution = public_attribution(launch.alone_attribution);
  for (const auto& cause : launch.slowed_by)
    all.slowed_by.push_back({cause.launch, cause.overlap, cause.share});
  return all;
}

}  // namespace

Proof public_proof(const verify::Proof& proof, const std::string& program) {
  Proof all{.program = program,
            .verdict = static_cast<Verdict>(proof.verdict),
            .summary = proof.summary,
            .proven = proof.proven,
            .reasons = proof.reasons,
            .warnings = proof.warnings.items(),
            .calls = proof.calls,
            .executor = proof.executor,
            .rules = proof.rules};
  for (const verify::Witness& step : proof.counterexample)
    all.counterexample.push_back({.rank = step.rank,
                                  .part = std::string(step.part),
                                  .number = step.workgroup,
                                  .operation = step.operation,
                                  .where = step.where,
                                  .text = step.text});
  return all;
}

verify::Proof inner_proof(const Proof& proof) {
  verify::Proof all;
  all.verdict = static_cast<verify::Verdict>(proof.verdict);
  all.executor = proof.executor;
  all.rules = proof.rules;
  all.summary = proof.summary;
  all.proven = proof.proven;
  all.reasons = proof.reasons;
  for (const Diagnostic& warning : proof.warnings)
    all.warnings.warning(warning.message, warning.where, warning.hint);
  for (const ProofStep& step : proof.counterexample)
    all.counterexample.push_back({.rank = step.rank,
                                  .workgroup = step.number,
                                  .operation = step.operation,
                                  .where = step.where,
                                  .text = step.text,
                                  .part = step.part});
  return all;
}

Result public_result(const sim::Result& result) {
  Result all{.size = result.size,
             .count = result.count,
             .time = result.time,
             .algbw_GBps = result.algbw_GBps,
             .busbw_GBps = result.busbw_GBps,
             .bandwidth_bound = result.bound.bandwidth,
             .latency_bound = result.bound.latency,
             .bottleneck = result.bound.bottleneck,
             .ideal = result.ideal,
             .checked = result.checked,
             .line_hops = result.line_hops,
             .visited_hops = result.visited_hops,
             .simulated_ranks = result.simulated_ranks,
             .sampled = {.share = result.sampled.share,
                         .windows = result.sampled.windows,
                         .error = result.sampled.error},
             .wall_s = result.wall_s,
             .peak_rss_bytes = result.peak_rss_bytes,
             .counters = result.counters,
             .rank_end = result.rank_end};
  for (const sim::LinkUse& link : result.links) all.links.push_back(public_link(link));
  for (const sim::Attribution& reasons : result.attribution)
    all.attribution.push_back(public_attribution(reasons));
  for (const sim::LaunchResult& launch : result.launches)
    all.launches.push_back(public_launch(launch));
  return all;
}

sim::Options inner_options(const Experiment& experiment) {
  sim::Options options;
  options.engine = static_cast<sim::Engine>(experiment.engine);
  options.launch = static_cast<sim::Launch>(experiment.launch);
  options.warmup = experiment.warmup;
  options.iterations = experiment.iterations;
  options.skew = experiment.skew;
  options.one_host = experiment.one_host;
  options.fold = experiment.fold;
  options.threads = experiment.threads;
  return options;
}

std::string name_of(Verdict verdict) {
  return std::string(verify::name_of(static_cast<verify::Verdict>(verdict)));
}
std::string name_of(Engine engine) {
  return std::string(sim::name_of(static_cast<sim::Engine>(engine)));
}
std::string name_of(LaunchMode launch) {
  return std::string(sim::name_of(static_cast<sim::Launch>(launch)));
}

std::optional<Engine> parse_engine(const std::string& name) {
  for (const Engine engine : {Engine::reference, Engine::line, Engine::fluid, Engine::sampled})
    if (name_of(engine) == name) return engine;
  return std::nullopt;
}
std::optional<LaunchMode> parse_launch_mode(const std::string& name) {
  for (const LaunchMode launch : {LaunchMode::stream, LaunchMode::graph})
    if (name_of(launch) == name) return launch;
  return std::nullopt;
}

}  // namespace hemiola
