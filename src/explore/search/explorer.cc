#include "explore/search/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>
#include <utility>

#include "explore/first_of_each.h"
#include "explore/losses/loss_study.h"
#include "explore/space/serial_job.h"
#include "explore/trials/trial.h"
#include "program/jobs/launch_programs.h"
#include "study/laboratory/job_run.h"

namespace hemiola::explore {
namespace {

/// Schedules that are simulated between two looks at what the best is. Fixed, so that the result
/// does not depend on how many threads there are.
constexpr std::size_t kBatch = 8;
/// A schedule whose estimate, corrected by what was learnt of its group (of its family), is so far
/// above the best is not tried.
constexpr double kFar = 1.03, kFarOfFamily = 1.08, kFarOfKernels = 1.3;
constexpr int kMostRefused = 8;  ///< of a family, before it is given up
constexpr double kNear = 1.05;   ///< estimates that differ by less are as good as each other
constexpr int kDefaultTop = 3;
/// Visits of requests to resources that may be simulated without being asked for: a second or two
/// of CPU, a fraction of one where all ranks do the same.
constexpr std::int64_t kLittleWork = 16'000'000;

/// Schedules that differ in hardware only.
using Group = std::tuple<Family, std::int64_t, bool>;
Group group_of(const Schedule& schedule) {
  return {schedule.family, schedule.degree, schedule.copies};
}

Family family_of(const Schedule& schedule) {
  return schedule.family;
}

double as_double(Time time) {
  return static_cast<double>(std::max<std::int64_t>(1, time.fs));
}

class Search {
 public:
  Search(study::Laboratory& laboratory, const Request& request, const ExploreWatch& watch)
      : laboratory_(laboratory), request_(request), watch_(watch) {}

  Exploration run() {
    machine_ = machine_to_explore(laboratory_, request_.machine);
    found_.op = request_.op;
    found_.op.ranks = machine_->ranks();
    check(found_.op, {.file = "--gemm"});
    found_.machine = machine_->name;
    found_.device = machine_->model(0).name;
    if (const auto node = ranks_of_node(*machine_); node > 0)
      found_.nodes = static_cast<int>(machine_->ranks() / node);
    found_.launch = request_.options.launch;
    found_.software = request_.software;
    busiest_ = as_busiest(found_.op);
    trial_.emplace(laboratory_, request_, found_.op, machine_, watch_.watch.monitor);
    bound_all();
    time_serial();
    simulate_promising();
    ask_rules();
    sort_results();
    confirm();
    for (RulePick& pick : found_.picks) pick.regret = regret_of(pick.pick);
    if (request_.losses != LossesOf::none) add_losses();
    return std::move(found_);
  }

 private:
  void bound_all() {
    ClosedForm closed_form(busiest_, *machine_);
    // Of all schedules, though the request may leave only some: serial may be one of the others.
    found_.ideal = closed_form.least_bound(space_of(busiest_, *machine_, {}));
    for (Schedule& schedule : space_of(busiest_, *machine_, request_.limits)) {
      Candidate candidate;
      candidate.schedule = std::move(schedule);
      candidate.parameters = parameters_of(found_.op, candidate.schedule, *machine_);
      candidate.bound = closed_form.bound(candidate.schedule);
      candidate.bound.time = candidate.bound.time + request_.software;
      candidate.estimate = closed_form.estimate(candidate.schedule) + request_.software;
      candidates_.push_back(std::move(candidate));
    }
    found_.space = std::ssize(candidates_) + 1;
    if (request_.limits.realizations.empty() && !has_copy_engines(*machine_))
      found_.not_tried = "copy engines: the GPUs have none (gpu.dma.engines is 0)";
  }

  void time_serial() {
    Serial& serial = found_.serial;
    serial.job = serial_job(busiest_);
    const machine::GemmShape product = local_product(busiest_);
    serial.kernel = program::product_kernel({product.m, product.n, product.k}, found_.op.type,
                                            machine_->model(0));
    const sim::Result result = run_serial(sim::Engine::fluid);
    serial.time = result.time;
    for (const sim::LaunchResult& launch : result.launches) {
      const bool is_product = launch.name == "product";
      (is_product ? serial.product : serial.collective) = launch.alone;
      if (!is_product) serial.program = launch.program;
    }
    best_ = serial.time;
    serial_hops_ = visits_by_line(result);
  }

  sim::Result run_serial(sim::Engine engine) {
    study::JobRequest job{.machine = {.given = machine_},
                          .file = "serial",
                          .text = found_.serial.job,
                          .check = false,
                          .alone = engine == sim::Engine::fluid,
                          .options = request_.options};
    job.options.engine = engine;
    // As schedules are, which are programs alone. Over NICs a library's rings, whose workgroups
    // come apart, would be up to a tenth too slow: nobody is to win by that.
    job.options.fold_workgroups = ranks_of_node(*machine_) == 0;
    job.options.threads = 1;
    return study::run_job(laboratory_, job, watch_.watch).result;
  }

  bool is_done(std::size_t i) const {
    return candidates_[i].fluid.fs > 0 || !candidates_[i].refused.empty();
  }

  /// Simulates so many of `order` as the limit leaves, but not those that cannot win.
  void simulate(const std::vector<std::size_t>& order, bool even_if_slow) {
    for (std::size_t next = 0; next < order.size();) {
      std::vector<std::size_t> batch;
      for (; next < order.size() && batch.size() < kBatch; ++next) {
        const Candidate& candidate = candidates_[order[next]];
        if (is_done(order[next])) continue;
        if (!request_.exhaustive) {
          if (simulated_ + std::ssize(batch) >= request_.fluid) break;
          if (!even_if_slow && candidate.bound.time >= best_) continue;
        }
        batch.push_back(order[next]);
      }
      if (batch.empty()) return;
      if (watch_.watch.monitor != nullptr) watch_.watch.monitor->leave_if_stopping();
      for_each(request_.options.threads, batch.size(),
               [&](std::size_t i) { trial_->simulate(candidates_[batch[i]]); });
      for (const std::size_t i : batch) {
        const Candidate& candidate = candidates_[i];
        if (candidate.fluid.fs > 0) {
          ++simulated_;
          best_ = std::min(best_, candidate.fluid);
        }
      }
      if (watch_.on_progress)
        watch_.on_progress(simulated_,
                           request_.exhaustive ? std::ssize(candidates_) : request_.fluid);
    }
  }

  /// First the most promising of every family, so that each can say why it loses; then, of
  /// persistent kernels, that of every mover; then that of every group that may win; then of these
  /// groups one schedule of every mover, direction and tile, in the order of what was learnt of the
  /// group; at last what is next to the best, and next
  /// to the fastest of families that are near it.
  void simulate_promising() {
    std::vector<std::size_t> all(candidates_.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    // Of equal ones the one with the fewest workgroups: the space has them in that order.
    std::ranges::stable_sort(all, [&](std::size_t a, std::size_t b) {
      return candidates_[a].estimate < candidates_[b].estimate;
    });
    if (request_.exhaustive) return simulate(all, true);
    simulate(of_families(all), true);
    // What cannot be run says nothing of its family: the next one has to.
    for (int again = 0; again < kMostRefused; ++again) simulate(of_families(of_unknown(all)), true);
    simulate(movers_of_kernels(all), false);
    simulate(promising(first_of(all, group_of), family_of, kFarOfFamily), false);
    // What hardware changes where products decide is what the closed form knows least of.
    const auto hardware_of = [](const Schedule& schedule) {
      return std::tuple(group_of(schedule), schedule.realization, schedule.pulls, schedule.tile.m,
                        schedule.tile.n);
    };
    const std::vector<std::size_t> rest = first_of(all, hardware_of);
    simulate(promising(rest, group_of, kFar), false);
    simulate(variants_of_best(all), false);
    simulate(neighbours_of_near(all), false);
  }

  /// Of persistent kernels, where they come near, one of every mover and direction: how far the
  /// closed form is off differs by these.
  std::vector<std::size_t> movers_of_kernels(const std::vector<std::size_t>& order) const {
    std::vector<std::size_t> kernels;
    for (const std::size_t i : promising(order, family_of, kFarOfKernels))
      if (candidates_[i].schedule.family.division == Division::kernel) kernels.push_back(i);
    return first_of(kernels, [](const Schedule& schedule) {
      return std::pair(schedule.realization, schedule.pulls);
    });
  }

  /// Those of families of which none was simulated yet.
  std::vector<std::size_t> of_unknown(const std::vector<std::size_t>& order) const {
    const std::map<Family, double> learnt = learnt_of(family_of);
    std::vector<std::size_t> unknown;
    for (const std::size_t i : order)
      if (!is_done(i) && !learnt.contains(candidates_[i].schedule.family)) unknown.push_back(i);
    return unknown;
  }

  /// Of each family whose fastest is next to the best: that with half and with twice the
  /// workgroups, and that which moves data as the best one does. How many it takes until transfers
  /// get their share of a full L2 or memory decides by more than families differ, and the best one
  /// must not be the only one that was asked.
  std::vector<std::size_t> neighbours_of_near(const std::vector<std::size_t>& order) const {
    std::map<Family, const Candidate*> fastest;
    for (const Candidate& candidate : candidates_) {
      if (candidate.fluid.fs == 0) continue;
      const Candidate*& known = fastest[candidate.schedule.family];
      if (known == nullptr || candidate.fluid < known->fluid) known = &candidate;
    }
    const Candidate* best = fastest_of_all();
    std::vector<std::size_t> neighbours;
    for (const std::size_t i : order) {
      const Schedule& schedule = candidates_[i].schedule;
      const auto of = fastest.find(schedule.family);
      if (of == fastest.end() || as_double(of->second->fluid) > kNear * as_double(best_)) continue;
      Schedule other = of->second->schedule;
      const int workgroups = std::exchange(other.workgroups, schedule.workgroups);
      const bool half_or_twice =
          other == schedule && workgroups > 0 &&
          (schedule.workgroups == 2 * workgroups || workgroups == 2 * schedule.workgroups);
      other.realization = best->schedule.realization;
      other.workgroups = best->schedule.workgroups;
      other.pulls = best->schedule.pulls;
      other.prelaunch = best->schedule.prelaunch;
      if (half_or_twice || other == schedule) neighbours.push_back(i);
    }
    return neighbours;
  }

  /// Null before anything was simulated.
  const Candidate* fastest_of_all() const {
    const Candidate* best = nullptr;
    for (const Candidate& candidate : candidates_)
      if (candidate.fluid.fs > 0 && (best == nullptr || candidate.fluid < best->fluid))
        best = &candidate;
    return best;
  }

  /// The fastest one in the other direction, with more or fewer workgroups, its commands in time:
  /// of that the closed form knows least.
  std::vector<std::size_t> variants_of_best(const std::vector<std::size_t>& order) const {
    const Candidate* best = fastest_of_all();
    std::vector<std::size_t> variants;
    for (const std::size_t i : order) {
      if (best == nullptr) continue;
      Schedule other = candidates_[i].schedule;
      other.workgroups = best->schedule.workgroups;
      other.pulls = best->schedule.pulls;
      other.prelaunch = best->schedule.prelaunch;
      if (other == best->schedule) variants.push_back(i);
    }
    return variants;
  }

  /// Of every family one of the most promising: that with the fewest steps among those whose
  /// estimates are near the best of the family.
  std::vector<std::size_t> of_families(const std::vector<std::size_t>& order) const {
    std::vector<std::size_t> chosen;
    for (const std::size_t first : first_of(order, family_of)) {
      const Candidate& best = candidates_[first];
      std::size_t least = first;
      for (const std::size_t i : order) {
        const Candidate& other = candidates_[i];
        if (other.schedule.family == best.schedule.family &&
            other.schedule.degree < candidates_[least].schedule.degree &&
            as_double(other.estimate) <= kNear * as_double(best.estimate))
          least = i;
      }
      chosen.push_back(least);
    }
    return chosen;
  }

  /// By key: simulated over estimated, of the most promising one that was simulated.
  template <typename Key>
  std::map<Key, double> learnt_of(Key (*key_of)(const Schedule&)) const {
    std::map<Key, const Candidate*> best;
    for (const Candidate& candidate : candidates_) {
      if (candidate.fluid.fs == 0) continue;
      const Candidate*& known = best[key_of(candidate.schedule)];
      if (known == nullptr || candidate.estimate < known->estimate) known = &candidate;
    }
    std::map<Key, double> learnt;
    for (const auto& [key, candidate] : best)
      learnt[key] = as_double(candidate->fluid) / as_double(candidate->estimate);
    return learnt;
  }

  /// Those whose estimate, corrected by what was learnt of their key, is at most `far` times the
  /// best time; in that order. Of a key of which nothing is known none.
  template <typename Key>
  std::vector<std::size_t> promising(const std::vector<std::size_t>& order,
                                     Key (*key_of)(const Schedule&), double far) const {
    const std::map<Key, double> learnt = learnt_of(key_of);
    std::vector<std::pair<double, std::size_t>> corrected;
    for (const std::size_t i : order) {
      const auto known = learnt.find(key_of(candidates_[i].schedule));
      if (is_done(i) || known == learnt.end()) continue;
      const double time = as_double(candidates_[i].estimate) * known->second;
      if (time <= far * as_double(best_)) corrected.emplace_back(time, i);
    }
    std::ranges::stable_sort(corrected, {}, [](const auto& one) { return one.first; });
    std::vector<std::size_t> chosen;
    for (const auto& [time, i] : corrected) chosen.push_back(i);
    return chosen;
  }

  /// Those in `order` whose key no earlier one has.
  template <typename KeyOf>
  std::vector<std::size_t> first_of(const std::vector<std::size_t>& order,
                                    const KeyOf& key_of) const {
    std::vector<std::size_t> first;
    for (const std::size_t at :
         first_of_each(order, [&](std::size_t i) { return key_of(candidates_[i].schedule); }))
      first.push_back(order[at]);
    return first;
  }

  void sort_results() {
    for (Candidate& candidate : candidates_)
      if (candidate.fluid.fs > 0)
        found_.candidates.push_back(std::move(candidate));
      else if (!candidate.refused.empty())
        found_.refused.push_back(std::move(candidate));
      else if (candidate.bound.time >= best_)
        ++found_.pruned[candidate.bound.by];
      else
        ++found_.left_out;
    std::ranges::stable_sort(found_.candidates, {}, &Candidate::fluid);
  }

  void confirm() {
    auto& all = found_.candidates;
    const auto top = std::min<std::size_t>(all.size(), index(request_.top.value_or(kDefaultTop)));
    if (top == 0) {
      found_.not_confirmed = "it was not asked for";
      return;
    }
    if (!request_.top) {
      std::int64_t work = serial_hops_;
      for (std::size_t i = 0; i < top; ++i) work += trial_->line_hops(all[i]);
      if (work > kLittleWork) {
        found_.not_confirmed = fmt::format(
            "{} schedules and serial are some {:.0f} million visits of cache lines; "
            "--top {} asks for it",
            top, static_cast<double>(work) / 1e6, top);
        return;
      }
    }
    found_.serial.confirmed = run_serial(sim::Engine::sampled).time;
    for_each(request_.options.threads, top, [&](std::size_t i) { trial_->confirm(all[i]); });
    std::stable_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(top),
                     [](const Candidate& a, const Candidate& b) { return a.time() < b.time(); });
  }

  void add_losses() {
    LossStudy study(*trial_, found_, busiest_, *machine_);
    std::vector<std::size_t> chosen = found_.shown();
    if (request_.losses == LossesOf::all) {
      chosen.resize(found_.candidates.size());
      std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    }
    for_each(request_.options.threads, chosen.size(),
             [&](std::size_t i) { study.add(found_.candidates[chosen[i]]); });
  }

  /// What rules say, and that there is a time of it.
  void ask_rules() {
    const RuleMachine constants = RuleMachine::of(*machine_, found_.op.type);
    found_.features = features_of(busiest_, constants);
    for (auto& [rule, pick] : picks_of(laboratory_.parts(), busiest_, constants)) {
      simulate_pick(pick);
      found_.picks.push_back({std::move(rule), pick, {}});
    }
    found_.analytic = analytic_times(busiest_, constants);
  }

  /// Whoever follows a rule runs what it says, whether or not the search found that promising.
  void simulate_pick(const Pick& pick) {
    Candidate* promising = nullptr;
    for (Candidate& candidate : candidates_) {
      if (!is_of(candidate.schedule, pick)) continue;
      if (candidate.fluid.fs > 0) return;
      if (candidate.refused.empty() &&
          (promising == nullptr || candidate.estimate < promising->estimate))
        promising = &candidate;
    }
    if (promising == nullptr) return;
    trial_->simulate(*promising);
    if (promising->fluid.fs > 0) best_ = std::min(best_, promising->fluid);
  }

  static bool is_of(const Schedule& schedule, const Pick& pick) {
    return schedule.family == pick.family && schedule.degree == pick.degree;
  }

  std::optional<double> regret_of(const Pick& pick) const {
    const auto over_best = [&](Time time) {
      return as_double(time) / as_double(found_.best()) - 1;
    };
    if (pick.family.division == Division::serial)
      return over_best(found_.serial.confirmed.value_or(found_.serial.time));
    for (const Candidate& candidate : found_.candidates)  // the fastest first
      if (is_of(candidate.schedule, pick)) return over_best(candidate.time());
    return std::nullopt;
  }

  study::Laboratory& laboratory_;
  const Request& request_;
  const ExploreWatch& watch_;
  machine::SharedMachine machine_;
  /// What everything but plans goes by: that of which all ranks have as much to do as the busiest.
  Operator busiest_;
  std::optional<Trial> trial_;
  std::vector<Candidate> candidates_;
  Time best_{};
  std::int64_t simulated_ = 0, serial_hops_ = 0;
  Exploration found_;
};

}  // namespace

Exploration explore(study::Laboratory& laboratory, const Request& request,
                    const ExploreWatch& watch) {
  return Search(laboratory, request, watch).run();
}

}  // namespace hemiola::explore
