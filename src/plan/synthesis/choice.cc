#include "plan/synthesis/choice.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "plan/estimate.h"
#include "plan/templates/families.h"

namespace hemiola::plan {
namespace {

bool has_nics(const Fabric& fabric) {
  for (int rank = 1; rank < fabric.ranks(); ++rank)
    if (fabric.island(rank) != fabric.island(0)) return true;
  return false;
}

bool goes_through_switch(const Plan& plan) {
  return std::ranges::find(plan.lowering, kThroughSwitch) != plan.lowering.end();
}

/// That multicast to the plan's groups.
bool has_switches(const machine::Machine& machine, const Plan& plan) {
  return std::ranges::none_of(plan.groups, [&](const std::vector<int>& group) {
    return machine.multicast_switches(group).empty();
  });
}

// Units of work: an estimate, and a judgement.
constexpr std::int64_t kEstimate = 1, kJudgement = 8;

}  // namespace

std::vector<Plan> plans_of_templates(const TemplateArguments& arguments, Fabric& fabric) {
  const bool pushes = has_nics(fabric) || arguments.word("transfer") == "push";
  std::vector<Plan> plans;
  for (const TemplateInfo& info : templates(arguments.parts)) {
    if (info.collective != arguments.collective || !info.in_chunks || info.needs_machine) continue;
    Parameters parameters;
    for (const ParameterInfo& parameter : info.parameters) {
      const auto& choices = parameter.choices;
      // Nothing can be pulled through NICs; and what is pushed is there without having been asked
      // for, where nothing has to be reduced.
      if ((pushes || parameter.name == "gather") &&
          std::ranges::find(choices, "push") != choices.end())
        parameters.emplace_back(parameter.name, "push");
    }
    try {
      Plan plan = make(info.name, arguments.ranks, parameters, arguments.machine, {}, nullptr,
                       arguments.parts);
      if (goes_through_switch(plan) && !has_switches(*arguments.machine, plan)) continue;
      plans.push_back(std::move(plan));
    } catch (const Failure&) {
      continue;  // not for this number of ranks
    }
  }
  return plans;
}

Choice::Choice(const TemplateArguments& arguments, Fabric& fabric, std::size_t count)
    : arguments_(arguments), fabric_(fabric), size_{arguments.number("size")} {
  if (arguments.monitor == nullptr) return;
  arguments.monitor->begin(static_cast<std::int64_t>(count) * (kEstimate + kJudgement));
}

void Choice::worked(std::int64_t work) const {
  if (arguments_.monitor == nullptr) return;
  arguments_.monitor->done.fetch_add(work, std::memory_order_relaxed);
  arguments_.monitor->leave_if_stopping();
}

/// What plans are lowered to unless told otherwise: loads and stores, or the switch.
Time Choice::estimate_of(const Plan& plan) const {
  const std::int64_t chunk_bytes = std::max<std::int64_t>(1, size_.count / plan.chunks_per_size);
  return estimate(plan, fabric_, chunk_bytes, goes_through_switch(plan));
}

void Choice::consider(std::optional<Plan> plan) {
  if (plan) {
    const Time time = estimate_of(*plan);
    candidates_.push_back({*std::move(plan), time});
  }
  worked(kEstimate);
}

/// Of plans that take about as long the first: templates, which the estimate cannot tell apart so
/// finely, are lowered to fewer operations, and schedules of fewer parts have fewer steps.
std::size_t Choice::best_by_estimate() const {
  std::size_t best = 0;
  for (std::size_t i = 1; i < candidates_.size(); ++i) {
    const Time least = candidates_[best].estimate;
    const std::int64_t alike = candidates_[best].plan.name == arguments_.name ? 100 : 32;
    if (least.fs - candidates_[i].estimate.fs > least.fs / alike) best = i;
  }
  return best;
}

/// Own schedules whose estimate is not much longer than the shortest, which leaves out launches and
/// the like; templates whose estimate is not hopeless, for it may be far off: what is chosen shall
/// be no slower than they are.
std::optional<std::size_t> Choice::best_by_judge() const {
  // Own schedules; more where they are for several sizes.
  const std::size_t most_judged = arguments_.word("blocks") == "equal" ? 8 : 12;
  // Of what is judged: lowering a schedule of 4,000 transfers and simulating it takes seconds.
  constexpr std::int64_t kMostTransfers = 10'000;
  const Time slack = Time::from_us(8);
  if (!arguments_.judge || arguments_.word("judge") == "estimate") return std::nullopt;
  std::vector<std::size_t> order(candidates_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    return candidates_[a].estimate < candidates_[b].estimate;
  });
  const Time shortest = candidates_[order.front()].estimate;
  std::optional<std::size_t> best;
  Time least{0};
  struct Seen {
    std::size_t all = 0;
    std::int64_t transfers = 0;
  } own, templates;
  for (const std::size_t i : order) {
    worked(kJudgement);
    const Candidate& candidate = candidates_[i];
    const bool is_own = candidate.plan.name == arguments_.name;
    Seen& seen = is_own ? own : templates;
    if (is_own && seen.all == most_judged) continue;
    if (seen.transfers > kMostTransfers) continue;
    const Time limit = is_own ? Time{shortest.fs + shortest.fs / 2} : 3 * shortest;
    if (candidate.estimate > limit + slack) continue;
    const std::optional<Time> time = arguments_.judge(candidate.plan, size_);
    if (!time) continue;
    ++seen.all;
    seen.transfers += count_transfers(candidate.plan);
    if (best && *time >= least) continue;
    best = i;
    least = *time;
  }
  return best;
}

Plan Choice::best() && {
  const std::optional<std::size_t> judged = best_by_judge();
  Plan plan = std::move(candidates_[judged ? *judged : best_by_estimate()].plan);
  if (plan.name != arguments_.name) plan.name = arguments_.name + " as " + plan.name;
  if (judged) plan.name += " (simulated)";
  return plan;
}

}  // namespace hemiola::plan
