#include "workload/iteration/iteration.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/index.h"
#include "machine/devices/gemm_model.h"
#include "workload/costs/fuse.h"
#include "workload/models/memory.h"

namespace hemiola::workload {
namespace {

void check_ranks(const Workload& workload, const machine::Machine& machine) {
  if (machine.ranks() == workload.ranks) return;
  const SourceLocation where{.file = workload.source.empty() ? "--machine" : workload.source};
  if (machine.ranks() < workload.ranks)
    throw Failure(fmt::format("{} has {} ranks, but {} has {} GPUs", workload.name, workload.ranks,
                              machine.name, machine.ranks()),
                  where, "choose a larger machine: NAME:N is N nodes of it");
  const bool is_one = workload.ranks == 1;
  throw Failure(fmt::format("{} has {} {}, and {} has {} GPUs", workload.name, workload.ranks,
                            is_one ? "rank" : "ranks", machine.name, machine.ranks()),
                where,
                fmt::format("say which GPUs they are: --ranks {}{}", workload.ranks,
                            is_one ? fmt::format("; or that all do what it does: --replicate {}",
                                                 machine.ranks())
                                   : ""));
}

ComputeSources sources_of(const Workload& workload, const ScheduleResult& result,
                          ComputeSource source) {
  ComputeSources sources;
  for (std::size_t c = 0; c < workload.classes.size(); ++c) {
    const RankClass& one = workload.classes[c];
    const auto ranks = static_cast<std::int64_t>(one.ranks.size());
    for (std::size_t n = 0; n < one.trace->nodes.size(); ++n) {
      const Node& node = one.trace->nodes[n];
      if (node.kind != NodeKind::compute) continue;
      const NodeTimes& times = result.nodes[c][n];
      // As a mean, since the sum over thousands of ranks may be more femtoseconds than there are.
      const Time all{static_cast<std::int64_t>(static_cast<__int128>((times.end - times.begin).fs) *
                                               ranks / workload.ranks)};
      const Time recorded{static_cast<std::int64_t>(static_cast<__int128>(node.recorded.fs) *
                                                    ranks / workload.ranks)};
      sources.all_recorded = sources.all_recorded + recorded;
      switch (time_from(workload, node, source)) {
        case TimeFrom::nothing:
          sources.unknown += ranks;
          sources.unknown_recorded = sources.unknown_recorded + recorded;
          break;
        case TimeFrom::recorded:
          sources.recorded = sources.recorded + all;
          break;
        case TimeFrom::work: {
          const Compute& compute = workload.computes[index(node.work)];
          Time& sum = compute.kind == Compute::Kind::other ? sources.roofline : sources.products;
          sum = sum + all;
        }
      }
    }
  }
  return sources;
}

std::vector<CallRow> calls_of(const Workload& workload, Places& places, Costs& costs,
                              const ScheduleResult& result) {
  std::map<std::pair<NodeKind, std::int32_t>, CallRow> rows;
  for (std::size_t c = 0; c < workload.classes.size(); ++c) {
    const RankClass& one = workload.classes[c];
    std::set<std::pair<NodeKind, std::int32_t>> seen;
    for (std::size_t n = 0; n < one.trace->nodes.size(); ++n) {
      const Node& node = one.trace->nodes[n];
      if (node.kind != NodeKind::collective && node.kind != NodeKind::send) continue;
      if (result.nodes[c][n].meeting == kNoNode) continue;  // left out
      CallRow& row = rows[{node.kind, node.work}];
      row.kind = node.kind;
      row.work = node.work;
      const auto& groups =
          workload.families[index(call_of(workload, node.kind, node.work).family)].groups;
      row.groups = static_cast<int>(groups.size());
      row.group = static_cast<int>(groups.front().size());
      // A class has a share of each call: its ranks of those of a group.
      row.calls += static_cast<std::int64_t>(one.ranks.size());
      if (node.recorded.fs > 0 && (row.recorded.fs == 0 || node.recorded < row.recorded))
        row.recorded = node.recorded;
      if (!seen.insert({node.kind, node.work}).second) continue;
      const std::int32_t place = places.of_call(static_cast<std::int32_t>(c), node);
      row.alone = costs.alone({.kind = node.kind, .work = node.work, .place = place},
                              Follows::other_stream);
    }
  }
  std::vector<CallRow> sorted;
  for (auto& [key, row] : rows) {
    if (row.kind == NodeKind::collective) row.calls /= row.group;
    sorted.push_back(row);
  }
  std::ranges::stable_sort(sorted, [](const CallRow& a, const CallRow& b) {
    return a.alone.fs / 1000 * a.calls > b.alone.fs / 1000 * b.calls;
  });
  return sorted;
}

/// A group that a reader has inferred is refuted by a call that was faster than the machine on
/// which it was recorded can be.
void refute_groups(const Workload& workload, Places& places, Costs& bounds,
                   const ScheduleResult& result) {
  constexpr std::int64_t kLong = 1 << 20;  // of short calls latencies count, and these are modelled
  std::set<std::int32_t> seen;
  for (std::size_t c = 0; c < workload.classes.size(); ++c) {
    const Trace& trace = *workload.classes[c].trace;
    for (std::size_t n = 0; n < trace.nodes.size(); ++n) {
      const Node& node = trace.nodes[n];
      if (node.kind != NodeKind::collective || node.recorded.fs == 0) continue;
      const CollectiveCall& call = workload.collectives[index(node.work)];
      const GroupFamily& family = workload.families[index(call.family)];
      if (family.inferred.empty() || call.bytes < kLong || result.nodes[c][n].meeting == kNoNode)
        continue;
      const LaunchKind kind{.kind = node.kind,
                            .work = node.work,
                            .place = places.of_call(static_cast<std::int32_t>(c), node)};
      const Time least = bounds.alone(kind, Follows::other_stream);
      if (node.recorded.fs >= least.fs / 10 * 9) continue;
      throw Failure(
          fmt::format("{} of {} among the {} ranks of '{}' was recorded in {}, and takes {} at "
                      "least: it is among other ranks. They were inferred: {}",
                      name_of(call.kind), to_string(Bytes{call.bytes}),
                      family.groups.front().size(), family.name, to_string(node.recorded),
                      to_string(least), family.inferred),
          {.file = workload.source},
          fmt::format("--groups FILE says which they are: {{\"{}\": [0, 1]}}", family.name));
    }
  }
}

/// What a reader would not think of when a table has no time in it.
void note_what_is_missing(const Workload& workload, IterationOutcome& outcome) {
  const auto warn = [&](std::string text, std::string hint) {
    outcome.notices.push_back(
        {Severity::warning, std::move(text), {.file = workload.source}, std::move(hint)});
  };
  if (outcome.result.unreceived > 0)
    warn(fmt::format("{} message{} sent, and nobody receives {}", outcome.result.unreceived,
                     outcome.result.unreceived == 1 ? " is" : "s are",
                     outcome.result.unreceived == 1 ? "it" : "them"),
         {});
  if (outcome.result.time.fs > 0) return;
  std::int64_t hosts = 0, kernels = 0, others = 0;
  for (const RankClass& one : workload.classes) {
    for (const Node& node : one.trace->nodes) {
      hosts += node.kind == NodeKind::host ? 1 : 0;
      kernels += is_kernel(node.kind) ? 1 : 0;
      others += node.kind != NodeKind::host && !is_kernel(node.kind) ? 1 : 0;
    }
  }
  warn(fmt::format("nothing in it takes time: {} kernels without shape, bytes, flop and time, {} "
                   "operations of the CPU without a time, {} other nodes",
                   kernels, hosts, others),
       "a time of zero is what is left when all of it was left out, and no result");
}

/// 0 where a trace has durations, and does not say when they began.
Time recorded_time(const Workload& workload) {
  Time begin{std::numeric_limits<std::int64_t>::max()}, last_begin{}, end{};
  std::int64_t count = 0;
  for (const RankClass& one : workload.classes) {
    for (const Node& node : one.trace->nodes) {
      if (node.recorded.fs == 0) continue;
      ++count;
      begin = std::min(begin, node.recorded_begin);
      last_begin = std::max(last_begin, node.recorded_begin);
      end = std::max(end, node.recorded_begin + node.recorded);
    }
  }
  const bool is_known = count == 1 || (count > 1 && last_begin > begin);
  return is_known ? end - begin : Time{};
}

/// What a model needs, where a GPU has less: the class that lacks most.
std::optional<Diagnostic> lack_of_memory(const Workload& workload,
                                         const machine::Machine& machine) {
  if (!workload.facts || workload.facts->memory.empty()) return std::nullopt;
  const std::int64_t there = machine.model(0).hbm_size.count;
  const auto& memory = workload.facts->memory;
  const auto fullest = std::ranges::max_element(
      memory, [](const auto& a, const auto& b) { return sum_of(a) < sum_of(b); });
  const auto where = index(fullest - memory.begin());
  const std::int64_t most = sum_of(*fullest);
  if (there == 0 || most <= there) return std::nullopt;
  const auto gigabytes = [](std::int64_t bytes) { return static_cast<double>(bytes) * 1e-9; };
  return Diagnostic{
      .severity = Severity::warning,
      .message =
          fmt::format("{} does not fit: {} needs {:.1f} GB on each GPU, and {} has {:.1f} GB",
                      workload.facts->model, workload.classes[where].name, gigabytes(most),
                      machine.model(0).name, gigabytes(there)),
      .where = {},
      .hint = "its time is what it would take if it did; 'workload search' finds what fits"};
}

}  // namespace

std::vector<PathName> IterationOutcome::path_by_name() const {
  std::map<std::int32_t, PathName> sums;
  for (const PathStep& step : path) {
    const Node& node = workload->classes[index(step.rank_class)].trace->nodes[step.node];
    const NodeTimes& times = result.nodes[index(step.rank_class)][step.node];
    PathName& sum = sums[static_cast<std::int32_t>(node.name)];
    sum.name = workload->names[node.name];
    ++sum.nodes;
    sum.time = sum.time + (times.end - times.begin);
  }
  std::vector<PathName> sorted;
  for (auto& [number, sum] : sums) sorted.push_back(std::move(sum));
  std::ranges::stable_sort(sorted,
                           [](const PathName& a, const PathName& b) { return a.time > b.time; });
  return sorted;
}

double IterationOutcome::tokens_per_second_and_gpu() const {
  if (!workload->facts || result.time.fs == 0) return 0;
  return static_cast<double>(workload->facts->tokens) /
         (static_cast<double>(result.time.fs) * 1e-15) / workload->ranks;
}

std::optional<study::Likeness> IterationOutcome::likeness() const {
  if (!workload->facts || workload->facts->phase != "train") return std::nullopt;
  const bool has_experts = std::ranges::any_of(
      workload->collectives,
      [](const CollectiveCall& call) { return call.kind == Collective::all_to_all; });
  return study::iteration_likeness(machine->model(0).name, workload->ranks, workload->facts->flop,
                                   has_experts);
}

double IterationOutcome::model_flop_utilisation() const {
  if (!workload->facts || result.time.fs == 0) return 0;
  const machine::GpuModel& model = machine->model(0);
  const double peak = static_cast<double>(machine::matrix_rate(model, workload->facts->type)) *
                      static_cast<double>(model.cu_count) *
                      static_cast<double>(model.cu_clock.hertz);
  if (peak <= 0) return 0;
  return workload->facts->flop / (static_cast<double>(result.time.fs) * 1e-15) / workload->ranks /
         peak;
}

CostOptions usual_costs(std::string_view phase) {
  CostOptions costs;
  if (phase != "prefill" && phase != "decode") return costs;
  costs.rules = {{.kind = Collective::all_reduce, .program = "auto/custom-allreduce"}};
  if (phase == "decode") costs.launch = sim::Launch::graph;
  return costs;
}

IterationOutcome run_iteration(study::Laboratory& laboratory, const IterationRequest& request) {
  IterationOutcome outcome;
  outcome.machine = laboratory.machine(request.machine);
  if (outcome.machine == nullptr)
    throw Failure("a workload runs on a machine", {.file = "--machine"},
                  "for example --machine dgx-h100");
  check_ranks(*request.workload, *outcome.machine);
  outcome.notices = study::notices_of(outcome.machine->warnings);
  outcome.notices.insert(outcome.notices.end(), request.workload->notices.begin(),
                         request.workload->notices.end());
  const auto scaled = on_machine(request.workload, *outcome.machine, request.schedule.compute,
                                 request.scale_recorded, outcome.notices);
  const std::size_t before = scaled->notices.size();
  outcome.workload = fuse_products(leave_out(scaled, request.without), request.costs.rules,
                                   request.schedule.without);
  const Workload& workload = *outcome.workload;
  for (std::size_t n = before; n < workload.notices.size(); ++n)
    outcome.notices.push_back(workload.notices[n]);
  if (const auto lack = lack_of_memory(workload, *outcome.machine))
    outcome.notices.push_back(*lack);
  Places places(workload);
  const auto costs = simulated_costs(workload, places, outcome.machine, laboratory, request.costs);
  ScheduleOptions options = request.schedule;
  options.calls_recorded = request.calls_recorded.value_or(
      options.compute == ComputeSource::recorded && is_recorded_on(workload, *outcome.machine));
  outcome.calls_recorded = options.calls_recorded;
  costs->in_passes([&] { outcome.result = schedule(workload, places, *costs, options); });
  outcome.sources = sources_of(workload, outcome.result, request.schedule.compute);
  outcome.calls = calls_of(workload, places, *costs, outcome.result);
  note_what_is_missing(workload, outcome);
  const bool has_inferred = std::ranges::any_of(
      workload.families, [](const GroupFamily& family) { return !family.inferred.empty(); });
  if (has_inferred && is_recorded_on(workload, *outcome.machine)) {
    CostOptions estimate = request.costs;
    estimate.level = Level::estimate;
    estimate.detail.clear();
    estimate.parts = nullptr;
    const auto bounds = simulated_costs(workload, places, outcome.machine, laboratory, estimate);
    refute_groups(workload, places, *bounds, outcome.result);
  }
  outcome.path = critical_path(workload, outcome.result);
  outcome.links = link_shares(workload, places, *costs, *outcome.machine, outcome.result);
  outcome.recorded = recorded_time(*request.workload);
  outcome.launch = request.costs.launch;
  outcome.simulations = costs->simulations();
  return outcome;
}

}  // namespace hemiola::workload
