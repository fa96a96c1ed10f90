#include "explore/search/block_explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "core/lists.h"
#include "explore/first_of_each.h"
#include "explore/losses/explained.h"
#include "explore/space/serial_job.h"
#include "explore/trials/isolated.h"

namespace hemiola::explore {
namespace {

/// What is a line of its own in the table.
std::tuple<std::int64_t, bool, std::string> key_of(const BlockSchedule& schedule) {
  return {schedule.degree, schedule.hetero, schedule.realization};
}

double over(Time a, Time b) {
  return b.fs == 0 ? 1 : static_cast<double>(a.fs) / static_cast<double>(b.fs);
}

class BlockSearch {
 public:
  BlockSearch(study::Laboratory& laboratory, const BlockRequest& request, const ExploreWatch& watch)
      : laboratory_(laboratory), request_(request), watch_(watch) {}

  BlockExploration run() {
    machine_ = machine_to_explore(laboratory_, request_.machine);
    Block& block = found_.block = request_.block;
    block.ranks = machine_->ranks();
    check(block);
    found_.machine = machine_->name;
    found_.launch = request_.options.launch;
    plans_.emplace(laboratory_, request_.options, block.type, machine_, watch_.watch.monitor);
    for (const BlockSchedule& schedule : space_of(block, *machine_, request_.limits)) {
      BlockCandidate& candidate = candidates_.emplace_back();
      candidate.schedule = schedule;
      candidate.parameters = parameters_of(block, schedule);
    }
    found_.space = std::ssize(candidates_);
    const auto first = least_parts(first_operator(block)), last = least_parts(last_operator(block));
    found_.ideal = std::max(first.products + last.products, first.links + last.links);
    time_serial();
    time_apart();
    simulate_chains();
    sort_results();
    confirm();
    if (request_.losses != LossesOf::none) add_losses();
    return std::move(found_);
  }

 private:
  ClosedForm::Parts least_parts(const Operator& op) const {
    return ClosedForm(op, *machine_).least_parts(space_of(op, *machine_, {}));
  }

  // --- What chains are compared with.

  void time_serial() {
    found_.serial.job = serial_job(found_.block);
    run_job(found_.serial, sim::Engine::fluid);
  }

  /// Times of the job and, by fluid, of its parts.
  void run_job(BlockJob& job, sim::Engine engine) {
    const sim::Result result =
        run_text(laboratory_, machine_, {"block", job.job, job.parts.empty()}, request_.options,
                 engine, watch_.watch);
    if (engine == sim::Engine::sampled) {
      job.confirmed = result.time;
      return;
    }
    job.time = result.time;
    if (!job.parts.empty()) return;
    for (const sim::LaunchResult& launch : result.launches)
      job.parts.push_back({launch.name, launch.program, launch.alone});
  }

  /// What each part takes alone is known already: only all together are simulated.
  void time_apart() {
    BlockJob& apart = found_.apart;
    std::string launches = add_best_alone(first_operator(found_.block), 0, found_.apart_first);
    apart.parts.push_back(found_.serial.parts[2]);
    launches += middle_launch(found_.block);
    launches += add_best_alone(last_operator(found_.block), 3, found_.apart_last);
    apart.job = job_of("apart", found_.block.type, launches);
    run_job(apart, sim::Engine::fluid);
  }

  /// The launches of the operator's best schedule, which are parts of `apart` then: one, or, where
  /// that is serial, the two of serial from `part` on.
  std::string add_best_alone(const Operator& op, std::size_t part, std::string& schedule) {
    const bool gathers = communicates_first(op.kind);
    const auto names = parts_of(found_.block.kind);
    const Exploration found = explore(laboratory_,
                                      {.op = op,
                                       .machine = {.given = machine_},
                                       .options = request_.options,
                                       .limits = request_.limits,
                                       .fluid = std::max(1, request_.fluid / 4),
                                       .top = 0,
                                       .losses = LossesOf::none},
                                      {.watch = watch_.watch});
    const Candidate* best = found.winner();
    if (best == nullptr) {
      schedule = "serial";
      for (const std::size_t i : {part, part + 1})
        found_.apart.parts.push_back(found_.serial.parts[i]);
      const std::string collective = collective_launch(names[gathers ? part : part + 1],
                                                       collective_of(op.kind), collective_size(op));
      const std::string product =
          product_launch(names[gathers ? part + 1 : part], local_product(op));
      return gathers ? collective + product : product + collective;
    }
    schedule = best->schedule.text();
    const std::string_view name = names[gathers ? part + 1 : part];
    const TemplatePlan plan{template_of(op, best->schedule), best->parameters};
    found_.apart.parts.push_back({std::string(name), plan.name, best->fluid});
    const std::string parameters =
        joined(plan.parameters, [](const auto& one) { return one.first + ": " + one.second; });
    return fmt::format("  - {{name: {}, run: {}, param: {{{}}}, size: {}B}}\n", name, plan.name,
                       parameters, plans_->size_of(plan).count);
  }

  // --- Chains.

  /// First every number of steps of every mover, with own rows at the ends, as what is usual; the
  /// fastest of each mover with uniform steps; then what it leaves open: directions, workgroups and
  /// tiles, one of them at a time, and what was the best in one with what was in another.
  void simulate_chains() {
    std::vector<std::size_t> all(candidates_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    if (request_.exhaustive) return simulate(all);
    std::vector<std::size_t> usual;
    for (const std::size_t i :
         first_of_each(candidates_, [](const BlockCandidate& one) { return key_of(one.schedule); }))
      if (candidates_[i].schedule.hetero) usual.push_back(i);
    simulate(usual);
    simulate(like_the_fastest([](BlockSchedule a, const BlockSchedule& b) {
      a.hetero = b.hetero;
      a.first = b.first;
      a.last = b.last;
      a.own_first = b.own_first;
      a.own_last = b.own_last;
      return a == b;
    }));
    for (int round = 0; round < 2; ++round) simulate(like_the_fastest(differs_in_one));
  }

  /// What is like the fastest of some mover, the fastest mover first. Of uniform steps, whose tiles
  /// are others, the first one.
  std::vector<std::size_t> like_the_fastest(bool (*alike)(BlockSchedule,
                                                          const BlockSchedule&)) const {
    std::vector<std::size_t> chosen;
    for (const std::size_t best : fastest_of_movers()) {
      std::set<bool> seen;
      for (std::size_t i = 0; i < candidates_.size(); ++i) {
        const BlockSchedule& one = candidates_[i].schedule;
        const BlockSchedule& fastest = candidates_[best].schedule;
        if (!alike(one, fastest)) continue;
        if (one.hetero != fastest.hetero && !seen.insert(one.hetero).second) continue;
        chosen.push_back(i);
      }
    }
    return chosen;
  }

  /// In directions, in workgroups, or in tiles, but in nothing else.
  static bool differs_in_one(BlockSchedule a, const BlockSchedule& b) {
    const int ways = (a.gather_pulls != b.gather_pulls || a.scatter_pulls != b.scatter_pulls) +
                     (a.workgroups != b.workgroups) + (a.first != b.first || a.last != b.last);
    a.gather_pulls = b.gather_pulls;
    a.scatter_pulls = b.scatter_pulls;
    a.workgroups = b.workgroups;
    a.first = b.first;
    a.last = b.last;
    return ways == 1 && a == b;
  }

  /// The fastest one first.
  std::vector<std::size_t> fastest_of_movers() const {
    std::map<std::string, std::size_t> fastest;
    const auto time_of = [&](std::size_t i) { return candidates_[i].fluid; };
    for (std::size_t i = 0; i < candidates_.size(); ++i) {
      if (time_of(i).fs == 0) continue;
      const auto [known, is_new] = fastest.try_emplace(candidates_[i].schedule.realization, i);
      if (!is_new && time_of(i) < time_of(known->second)) known->second = i;
    }
    std::vector<std::size_t> all;
    for (const auto& [realization, i] : fastest) all.push_back(i);
    std::ranges::stable_sort(all,
                             [&](std::size_t a, std::size_t b) { return time_of(a) < time_of(b); });
    return all;
  }

  /// Those of them that were not yet, as long as the limit leaves any.
  void simulate(const std::vector<std::size_t>& order) {
    std::vector<std::size_t> chosen;
    for (const std::size_t i : order) {
      const Measured& known = candidates_[i];
      if (known.fluid.fs > 0 || !known.refused.empty()) continue;
      if (!request_.exhaustive && simulated_ + std::ssize(chosen) >= request_.fluid) break;
      chosen.push_back(i);
    }
    if (watch_.watch.monitor != nullptr) watch_.watch.monitor->leave_if_stopping();
    for_each(request_.options.threads, chosen.size(), [&](std::size_t i) {
      BlockCandidate& candidate = candidates_[chosen[i]];
      static_cast<Measured&>(candidate) =
          plans_->simulate({template_of(found_.block), candidate.parameters}, false);
    });
    simulated_ += std::ssize(chosen);
    if (watch_.on_progress)
      watch_.on_progress(simulated_,
                         request_.exhaustive ? std::ssize(candidates_) : request_.fluid);
  }

  void sort_results() {
    for (BlockCandidate& candidate : candidates_)
      if (candidate.fluid.fs > 0)
        found_.candidates.push_back(std::move(candidate));
      else if (!candidate.refused.empty())
        found_.refused.push_back(std::move(candidate));
    std::ranges::stable_sort(found_.candidates, {}, &BlockCandidate::fluid);
  }

  void confirm() {
    auto& all = found_.candidates;
    const auto top = std::min<std::size_t>(all.size(), index(request_.top.value_or(0)));
    if (top == 0) return;
    run_job(found_.serial, sim::Engine::sampled);
    run_job(found_.apart, sim::Engine::sampled);
    for_each(request_.options.threads, top, [&](std::size_t i) {
      all[i].confirmed = plans_->confirm({template_of(found_.block), all[i].parameters}).time;
    });
    std::stable_sort(
        all.begin(), all.begin() + static_cast<std::ptrdiff_t>(top),
        [](const BlockCandidate& a, const BlockCandidate& b) { return a.time() < b.time(); });
  }

  // --- Losses.

  void add_losses() {
    std::vector<std::size_t> chosen = found_.shown();
    if (request_.losses == LossesOf::all) {
      chosen.resize(found_.candidates.size());
      std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    }
    for_each(request_.options.threads, chosen.size(),
             [&](std::size_t i) { add_losses(found_.candidates[chosen[i]]); });
  }

  void add_losses(BlockCandidate& candidate) {
    const TemplatePlan of{template_of(found_.block), candidate.parameters};
    const plan::Plan plan = plans_->plan_of(of);
    KernelTimes times(plan);
    BlockLosses losses;
    losses.computes = plans_->run(of, only_computes(plan), &times).time;
    losses.communication = plans_->run(of, only_transfers(plan), nullptr).time;
    losses.dil_compute = over(losses.computes, found_.compute());
    losses.dil_communication = over(losses.communication, found_.communication());
    losses.cil_compute = over(candidate.computing, times.computing());
    const std::int64_t time = candidate.fluid.fs;
    const std::int64_t longer = std::max(losses.computes, losses.communication).fs;
    const std::int64_t apart = std::min(time, longer);
    losses.decomposition = std::max<std::int64_t>(0, apart - found_.ideal.fs);
    Explained beyond(time - std::max(apart, found_.ideal.fs));
    if (losses.computes >= losses.communication) {
      losses.contention =
          beyond.take(static_cast<double>((candidate.computing - times.computing()).fs));
      losses.exposed = beyond.left();
    } else {
      losses.exposed =
          beyond.take(static_cast<double>(without_contention(candidate.schedule, losses) - apart));
      losses.contention = beyond.left();
    }
    candidate.losses = losses;
  }

  /// With pieces as long as they are alone: products and what is between them in the proportions of
  /// serial, own rows a share of the ranks.
  std::int64_t without_contention(const BlockSchedule& schedule, const BlockLosses& losses) const {
    const Block& block = found_.block;
    const auto& parts = found_.serial.parts;
    const double all = static_cast<double>(losses.computes.fs);
    const auto share = [&](std::size_t part) {
      return all * over(parts[part].alone, found_.compute());
    };
    const double own = schedule.hetero ? 1.0 / block.ranks : 0;
    const double steps = static_cast<double>(schedule.degree);
    const bool mixes = block.kind == BlockKind::attention;
    const double moved = static_cast<double>(losses.communication.fs) / 2;
    ChainPipeline chain{.gather = moved / steps,
                        .scatter = moved / steps,
                        .first = share(1) * (1 - own) / steps,
                        .middle = share(2) * (mixes ? 1 : 1 - own) / steps,
                        .last = share(3) * (1 - own) / steps,
                        .own_first = own * (share(1) + (mixes ? 0 : share(2))),
                        .own_last = own * share(3)};
    chain.groups = mixes ? std::min(schedule.degree, block.sequences) : schedule.degree;
    chain.group = schedule.degree / chain.groups;
    return static_cast<std::int64_t>(chain.time());
  }

  study::Laboratory& laboratory_;
  const BlockRequest& request_;
  const ExploreWatch& watch_;
  machine::SharedMachine machine_;
  std::optional<PlanTrial> plans_;
  std::vector<BlockCandidate> candidates_;
  std::int64_t simulated_ = 0;
  BlockExploration found_;
};

}  // namespace

Time BlockExploration::compute() const {
  return serial.parts.at(1).alone + serial.parts.at(2).alone + serial.parts.at(3).alone;
}

Time BlockExploration::communication() const {
  return serial.parts.at(0).alone + serial.parts.at(4).alone;
}

const BlockCandidate* BlockExploration::winner() const {
  if (candidates.empty()) return nullptr;
  const BlockCandidate& first = candidates.front();
  const auto time_of = [&](const BlockJob& job) {
    return first.confirmed && job.confirmed ? *job.confirmed : job.time;
  };
  return first.time() < std::min(time_of(serial), time_of(apart)) ? &first : nullptr;
}

double BlockExploration::speedup(const BlockCandidate& candidate) const {
  return over(candidate.confirmed && serial.confirmed ? *serial.confirmed : serial.time,
              candidate.time());
}

std::vector<std::size_t> BlockExploration::shown() const {
  std::vector<std::size_t> positions =
      first_of_each(candidates, [](const BlockCandidate& one) { return key_of(one.schedule); });
  positions.resize(std::min(positions.size(), kShown));
  return positions;
}

BlockExploration explore_block(study::Laboratory& laboratory, const BlockRequest& request,
                               const ExploreWatch& watch) {
  return BlockSearch(laboratory, request, watch).run();
}

plan::Plan plan_of(study::Laboratory& laboratory, const BlockRequest& request,
                   const BlockSchedule& schedule) {
  const machine::SharedMachine machine = laboratory.machine(request.machine);
  Block block = request.block;
  block.ranks = machine->ranks();
  return PlanTrial(laboratory, request.options, block.type, machine, nullptr)
      .plan_of({template_of(block), parameters_of(block, schedule)});
}

}  // namespace hemiola::explore
