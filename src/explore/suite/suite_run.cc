#include "explore/suite/suite_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>

#include "study/laboratory/database_head.h"
#include "study/laboratory/preparation.h"
#include "study/support/digest.h"
#include "study/support/task_pool.h"

namespace hemiola::explore {
namespace {

study::Settings options_of(const Request& request) {
  const SpaceLimits& limits = request.limits;
  const auto list = [](const auto& values) {
    return values.empty() ? std::string("all") : fmt::format("{}", fmt::join(values, ","));
  };
  return {{"launch", std::string(sim::name_of(request.options.launch))},
          {"warmup", std::to_string(request.options.warmup)},
          {"iterations", std::to_string(request.options.iterations)},
          {"degrees", list(limits.degrees)},
          {"realization", list(limits.realizations)},
          {"place", list(limits.places)},
          {"transfer", list(limits.transfers)},
          {"copies", list(limits.copies)},
          {"fluid", std::to_string(request.fluid)},
          {"top", request.top ? std::to_string(*request.top) : "where it is little work"},
          {"exhaustive", request.exhaustive ? "true" : "false"},
          {"losses", std::string(name_of(request.losses))},
          {"software", to_string(request.software)}};
}

/// Scenarios in threads, and the thread that writes what they bring.
class SuiteRun {
 public:
  SuiteRun(study::Laboratory& laboratory, const Suite& suite, const Request& request,
           SuiteDatabase& database, const SuiteRunOptions& options)
      : machine_(laboratory.machine(request.machine)),
        parts_(laboratory.parts()),
        suite_(suite),
        request_(request),
        database_(database),
        options_(options) {
    const std::vector<std::int64_t> known = database.known();
    progress_.all = std::ssize(suite.scenarios);
    progress_.done = std::ssize(known);
    for (std::int64_t number = 0; number < progress_.all; ++number)
      if (!std::binary_search(known.begin(), known.end(), number)) to_do_.push_back(number);
  }

  void run() {
    if (options_.stop != nullptr && options_.stop->load()) throw Interrupted();
    if (options_.parts != nullptr) {
      for (const std::int64_t number : to_do_)
        tasks_.push_back("scenario-" + std::to_string(number));
      shared_.emplace(*options_.parts, tasks_);
    }
    study::TaskPool<ScenarioRow> pool(options_.threads, to_do_.size(),
                                      shared_ ? &*shared_ : nullptr);
    for (std::size_t i = 0; i < pool.threads(); ++i) members_.emplace_back(pool.halt());
    pool.run(
        [this](std::size_t thread, std::size_t task) {
          ScenarioRow row = explored(members_[thread], to_do_[task]);
          if (shared_) options_.parts->put(shared_->name(task), part_of(row));
          return row;
        },
        [this](const std::vector<ScenarioRow>& rows, const std::vector<std::size_t>& at) {
          take(rows, at);
        },
        options_.stop);
    if (shared_)
      options_.parts->join(
          tasks_, [this](const std::string& part) { database_.add(part); }, options_.stop);
    else if (progress_.done < progress_.all)
      throw Interrupted();
  }

 private:
  /// Of a thread.
  struct Member {
    explicit Member(const std::atomic<bool>& halt) { monitor.stop = &halt; }
    Monitor monitor;
    std::atomic<double> share{0};  ///< of its scenario that is done
  };

  std::string part_of(const ScenarioRow& row) const {
    SuiteDatabase part(":memory:", database_.head());
    part.write(row);
    return part.image();
  }

  const Scenario& scenario(std::int64_t number) const { return suite_.scenarios[index(number)]; }

  /// What a scenario throws becomes its row; not what is no fault of it.
  ScenarioRow explored(Member& member, std::int64_t number) const {
    const Scenario& one = scenario(number);
    ScenarioRow row{.number = number, .scenario = one};
    member.share = 0;
    try {
      return row_of(number, one, found(member, one));
    } catch (const Failure& failure) {
      row.status =
          failure.code() == ExitCode::internal ? ScenarioStatus::internal : ScenarioStatus::refused;
      row.error = study::error_text(failure);
    } catch (const Interrupted&) {
      throw;
    } catch (const std::bad_alloc&) {
      throw;
    } catch (const std::exception& error) {
      row.status = ScenarioStatus::internal;
      row.error = error.what();
    }
    return row;
  }

  Exploration found(Member& member, const Scenario& one) const {
    Request request = request_;
    request.op = one.op;
    request.options.threads = 1;
    request.machine = {.given = machine_, .ranks = std::to_string(one.op.ranks)};
    study::Laboratory laboratory(parts_);
    ExploreWatch watch{.watch = {.monitor = &member.monitor}};
    watch.on_progress = [&](std::int64_t done, std::int64_t all) {
      laboratory.forget();  // schedules share no programs, which are large
      member.monitor.leave_if_stopping();
      if (all > 0) member.share = static_cast<double>(done) / static_cast<double>(all);
    };
    return explore(laboratory, request, watch);
  }

  void take(const std::vector<ScenarioRow>& rows, const std::vector<std::size_t>& at) {
    if (!shared_)
      for (const ScenarioRow& row : rows) database_.write(row);
    progress_.done += std::ssize(rows);
    written_ += std::ssize(rows);
    double done = static_cast<double>(written_);
    progress_.doing.clear();
    for (std::size_t thread = 0; thread < at.size(); ++thread) {
      if (at[thread] == study::TaskPool<ScenarioRow>::kNone) continue;
      done += std::min(1.0, members_[thread].share.load());
      if (progress_.doing.empty())
        progress_.doing = "exploring " + scenario(to_do_[at[thread]]).name;
    }
    if (shared_) done = static_cast<double>(shared_->gone());  // others do their part
    progress_.share = std::min(1.0, done / static_cast<double>(to_do_.size()));
    if (options_.on_progress) options_.on_progress(progress_);
  }

  machine::SharedMachine machine_;
  const parts::Registry* parts_;
  const Suite& suite_;
  const Request& request_;
  SuiteDatabase& database_;
  const SuiteRunOptions& options_;
  std::vector<std::int64_t> to_do_;  ///< numbers of scenarios
  std::deque<Member> members_;       ///< by thread
  std::vector<std::string> tasks_;   ///< names of scenarios for other processes
  std::optional<study::SharedTasks> shared_;
  SuiteProgress progress_;
  std::int64_t written_ = 0;  ///< by this run
};

ScheduleRow schedule_row(const Operator& op, const Candidate& candidate) {
  ScheduleRow row{.schedule = candidate.schedule.text(),
                  .family = candidate.schedule.family.text(),
                  .degree = candidate.schedule.degree,
                  .program = template_of(op, candidate.schedule),
                  .parameters = candidate.parameters,
                  .time = candidate.time(),
                  .fluid = candidate.fluid,
                  .confirmed = candidate.confirmed,
                  .bound = candidate.bound.time,
                  .estimate = candidate.estimate,
                  .buffers = candidate.buffers,
                  .extra_traffic = candidate.extra_traffic};
  if (!candidate.losses) return row;
  const Losses& losses = *candidate.losses;
  row.dil_product = losses.dil_product;
  row.dil_communication = losses.dil_communication;
  row.cil_product = losses.cil_product;
  row.cil_communication = losses.cil_communication;
  for (std::size_t i = 0; i < kLosses; ++i)
    row.losses.emplace_back(name_of(static_cast<Loss>(i)), Time{losses.parts[i]});
  return row;
}

double times_as_fast(Time a, Time b) {
  return static_cast<double>(a.fs) / static_cast<double>(std::max<std::int64_t>(1, b.fs));
}

}  // namespace

double ScenarioRow::speedup_of(const ScheduleRow& schedule) const {
  return times_as_fast(schedule.confirmed && serial_confirmed ? *serial_confirmed : serial,
                       schedule.time);
}

Time ScenarioRow::serial_of_best() const {
  const bool confirmed =
      serial_confirmed && (best_family == "serial" || schedules.front().confirmed.has_value());
  return confirmed ? *serial_confirmed : serial;
}

ScenarioRow row_of(std::int64_t number, const Scenario& scenario, const Exploration& found) {
  ScenarioRow row{.number = number,
                  .scenario = scenario,
                  .serial_program = found.serial.program,
                  .serial = found.serial.time,
                  .collective = found.serial.collective,
                  .product = found.serial.product,
                  .ideal = found.ideal.time,
                  .serial_confirmed = found.serial.confirmed,
                  .best = "serial",
                  .best_family = "serial",
                  .best_time = found.best(),
                  .speedup = 1,
                  .simulated = std::ssize(found.candidates) + 1,
                  .space = found.space};
  if (const Candidate* winner = found.winner()) {
    row.best = winner->schedule.text();
    row.best_family = winner->schedule.family.text();
    row.speedup = found.speedup(*winner);
  }
  nlohmann::ordered_json features, picks;
  for (std::size_t i = 0; i < kFeatures; ++i)
    features[std::string(name_of(static_cast<Feature>(i)))] = found.features[i];
  for (const RulePick& pick : found.picks) {
    nlohmann::ordered_json& of_rule = picks[pick.rule];
    of_rule["family"] = pick.pick.family.text();
    of_rule["degree"] = pick.pick.degree;
    of_rule["regret"] = pick.regret ? nlohmann::ordered_json(*pick.regret) : nullptr;
  }
  nlohmann::ordered_json& analytic = features["analytic"];
  for (std::size_t i = 0; i < kFamilies; ++i)
    if (std::isfinite(found.analytic.time[i]))
      analytic[families()[i].text()] = found.analytic.time[i];
  row.features = features.dump();
  row.picks = picks.dump();
  for (const Candidate& candidate : found.candidates)
    row.schedules.push_back(schedule_row(found.op, candidate));
  return row;
}

SuiteDatabase::Head head_of(study::Laboratory& laboratory, const Suite& suite,
                            const Request& request, const std::string& version) {
  const machine::SharedMachine machine = laboratory.machine(request.machine);
  SuiteDatabase::Head head{study::head_of_machine(request.machine, *machine, version),
                           study::digest(suite.text), std::ssize(suite.scenarios)};
  head.options = options_of(request);
  return head;
}

void run_suite(study::Laboratory& laboratory, const Suite& suite, const Request& request,
               SuiteDatabase& database, const SuiteRunOptions& options) {
  SuiteRun(laboratory, suite, request, database, options).run();
}

}  // namespace hemiola::explore
