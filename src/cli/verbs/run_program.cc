#include "cli/verbs/run_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/interrupt.h"
#include "cli/notices.h"
#include "cli/options/fused_program.h"
#include "core/text.h"
#include "program/built_in.h"
#include "report/page.h"
#include "report/report.h"
#include "report/run_page.h"
#include "sim/result/profile.h"
#include "study/laboratory/job_run.h"
#include "study/laboratory/run_tables.h"
#include "study/profiles/profile_file.h"

namespace hemiola::cli {
namespace {

/// The same, understood.
struct Plan {
  study::RunRequest request;
  std::pair<Time, Time> trace_window{};
  std::vector<int> record_ranks;
  bool record_at_ports = false;
};

void understand_recording(const RunOptions& options, const Session& session, Plan& plan) {
  if (options.record.empty())
    refuse_typed(session, {"--record-rank", "--record-at"}, "says what is recorded, and nothing is",
                 "add --record FILE");
  plan.record_ranks =
      rank_list("--record-rank", options.record_rank.empty() ? "0" : options.record_rank);
  if (!options.record.empty()) plan.request.recorded = plan.record_ranks;
  plan.record_at_ports =
      !options.record_at.empty() &&
      choice_value("--record-at", options.record_at, {"ingress", "port"}) == "port";
}

/// Programs have to have the parameter that this option sets.
void check_places(const study::RunRequest& request, const Session& session) {
  const auto is_it = [](const auto& parameter) { return parameter.name == "in_place"; };
  const auto fail = [](const std::string& what, const std::string& hint) {
    throw Failure(what, {.file = "--in-place-too"}, hint);
  };
  for (const auto& [name, value] : request.parameters)
    if (name == "in_place") fail("--param in_place says where data are, too", "give one of them");
  for (const std::string& name : request.programs) {
    if (!program::is_built_in(name, &session.registry))
      fail("'" + name + "' says itself where its data are", "only built-ins run in both places");
    if (std::ranges::none_of(program::parameters_of(name, &session.registry), is_it))
      fail("'" + name + "' has no parameter in_place", "leave --in-place-too out");
  }
}

Plan understand(const RunOptions& options, const Session& session, Notices& notices) {
  Plan plan;
  study::RunRequest& request = plan.request;
  request.asked_for = options.program.program;
  if (!is_job_file(options.program.program, session))
    request.programs = program_names(options.program.program, session);
  if (is_fused_file(options.program.program))
    request.subject = [fused = std::make_shared<FusedPrograms>(parameters_of(options.program))](
                          const std::string& name, const machine::SharedMachine& machine) {
      return study::Subject(fused->on(name, machine));
    };
  request.combinations = setting_combinations(options.machine.set);
  request.sizes = requested_sizes(options.program);
  request.rounding = options.round_down           ? study::Rounding::down
                     : options.program.round_size ? study::Rounding::up
                                                  : study::Rounding::none;
  request.type = options.program.dtype;
  request.op = options.program.op;
  request.check = !options.no_check;
  request.in_place_too = options.in_place_too;
  request.options = engine_options(options.engine);
  if (request.options.warmup > 0 && request.options.iterations == 0) {
    throw Failure("a warm-up needs measured repetitions after it",
                  SourceLocation{.file = "--warmup"}, "add --iterations N");
  }
  if (!options.skew.empty()) request.options.skew = skew_values(options.skew);
  if (request.options.threads > 1 && request.options.engine != sim::Engine::line)
    notices.note("only the line engine uses more than one thread");
  if (options.seed > 0) notices.note("--seed has no effect: nothing in the engines is random");
  if (!options.trace_lines.empty()) {
    if (options.trace.empty()) {
      throw Failure("a window of requests needs a trace to stand in",
                    SourceLocation{.file = "--trace-lines"}, "add --trace FILE");
    }
    plan.trace_window = window_value(options.trace_lines);
  }
  if (request.in_place_too || request.sizes.size() * request.combinations.size() > 1)
    refuse_typed(session, {"--trace", "--record"}, "is of one run, not of several",
                 "give one --size and one value of each --set, and no --in-place-too");
  understand_recording(options, session, plan);
  request.machine = machine_choice(options.machine);
  request.parameters = parameters_of(options.program);
  request.promise = options.program.promise;
  if (request.in_place_too) check_places(request, session);
  return plan;
}

class Runner {
 public:
  Runner(const RunOptions& options, Session& session)
      : options_(options),
        session_(session),
        is_job_(is_job_file(options.program.program, session)),
        notices_(session),
        plan_(understand(options, session, notices_)) {}

  ExitCode run() {
    if (is_job_) refuse_what_jobs_have_not();
    {
      Progress progress(session_);
      watch_ = watch_of(session_, progress, notices_);
      catch_termination();
      try {
        is_job_ ? run_job() : run_tables(progress);
      } catch (const study::WrongProgram& wrong) {
        report::print_proof(std::cout, wrong.proof());
        throw Failure(
            fmt::format("the {} is wrong and was not simulated", is_job_ ? "job" : "program"),
            wrong.diagnostics().items().front().where, "--no-check simulates it all the same",
            wrong.code());
      } catch (const Interrupted&) {
        keep_what_is_done();
        throw;
      }
      if (!options_.trace.empty()) trace();
      if (!options_.record.empty()) record();
      if (!options_.report.empty()) collect_extras();
    }
    for (const study::RunTable& table : tables_) print(table);
    write_files();
    return ExitCode::done;
  }

 private:
  void refuse_what_jobs_have_not() const;
  void run_job();
  void run_tables(Progress& progress);
  void keep_what_is_done();
  void trace();
  void record();
  void collect_extras();
  report::Run head(const study::RunTable& table) const;
  void print(const study::RunTable& table) const;
  void write_files() const;
  study::RunTable write_tables() const;  ///< JSON and CSV; all as one
  /// Of the last run: of several there is neither trace nor record.
  const program::Bound& last() const { return *tables_.back().last; }

  const RunOptions& options_;
  Session& session_;
  const bool is_job_;
  Notices notices_;
  Plan plan_;
  study::Watch watch_;
  std::vector<study::RunTable> tables_;
  std::string trace_text_, record_text_;
  report::RunPageExtras extras_;  ///< of --report
};

void Runner::run_tables(Progress& progress) {
  study::run_tables(
      session_.laboratory, plan_.request,
      {.experiments = watch_,
       .on_part = [&](double begin, double end) { progress.part(begin, end); },
       .on_runs = [&](std::int64_t done, std::int64_t all) { progress.parts(done, all, "runs"); },
       .on_result =
           [&](const study::RunTable& table) {
             const sim::Result& result = table.results.back();
             progress.finished(fmt::format("done: {} on {}, {} B{}: {:.3f} us",
                                           table.winners.back(), table.machine, result.size.count,
                                           report::is_in_place(result) ? ", in place" : "",
                                           result.time.us()));
           }},
      tables_);
}

/// After a Ctrl-C: rows that are done are printed and written, without a page.
void Runner::keep_what_is_done() {
  std::erase_if(tables_, [](const study::RunTable& table) { return table.results.empty(); });
  if (tables_.empty()) return;
  for (const study::RunTable& table : tables_) print(table);
  write_tables();
  const std::string files = options_.json.empty() && options_.csv.empty() ? "" : ", and its file";
  session_.kept_safe = "the table" + files + ", has those";
}

/// A job says sizes, types and operators of its launches itself.
void Runner::refuse_what_jobs_have_not() const {
  refuse_options_of_programs(session_);
  refuse_typed(session_, {"--in-place-too"}, "is of one program", "launches of a job have theirs");
  if (plan_.request.combinations.size() > 1)
    throw Failure("a job is run with one value of each setting", {.file = "--set"});
  if (!options_.record.empty())
    throw Failure("a job is not recorded", {.file = "--record"}, "record a program that is alone");
}

/// As a table of one result.
void Runner::run_job() {
  study::JobRequest request{.machine = plan_.request.machine,
                            .file = options_.program.program,
                            .check = plan_.request.check,
                            .options = plan_.request.options};
  request.machine.settings = plan_.request.combinations.front();
  const study::Outcome outcome = study::run_job(session_.laboratory, request, watch_);
  tables_ = {{.machine = outcome.bound.machine()->name,
              .results = {outcome.result},
              .winners = {outcome.bound.name()},
              .last = outcome.bound}};
}

void Runner::trace() {
  report::PerfettoTrace trace(*last().machine(), plan_.trace_window.first,
                              plan_.trace_window.second);
  sim::Options options = plan_.request.options;
  options.trace = &trace;
  session_.laboratory.simulate(last(), options, watch_);
  trace_text_ = trace.serialize();
}

/// What the page says beside results. Of one run that is a timeline, too.
void Runner::collect_extras() {
  const sim::Options& asked = plan_.request.options;
  extras_.repetitions = asked.iterations > 0 ? asked.warmup + asked.iterations : 1;
  std::size_t runs = 0;
  for (const study::RunTable& table : tables_) {
    runs += table.results.size();
    extras_.remarks.insert(extras_.remarks.end(), table.remarks.begin(), table.remarks.end());
  }
  extras_.no_timeline = report::why_no_timeline(runs, asked.engine == sim::Engine::sampled);
  if (extras_.no_timeline.empty()) {
    report::RunTimeline timeline(*last().machine());
    sim::Options options = asked;
    options.trace = &timeline;
    session_.laboratory.simulate(last(), options, watch_);
    extras_.timeline = timeline.panels();
    if (extras_.repetitions > 1) {
      extras_.timeline.left_out.insert(
          extras_.timeline.left_out.begin(),
          "All " + std::to_string(extras_.repetitions) + " repetitions are here.");
    }
  }
}

/// What came in at some ranks' GPUs.
void Runner::record() {
  sim::Profile profile;
  sim::Options options = plan_.request.options;
  options.record = &profile;
  options.watched = plan_.record_ranks;
  options.at_ports = plan_.record_at_ports;
  session_.laboratory.simulate(last(), options, watch_);
  const bool json = options_.record.ends_with(".json");
  record_text_ = json ? study::write_profile_json(profile) : study::write_profile_csv(profile);
}

report::Run Runner::head(const study::RunTable& table) const {
  return {.command = session_.command,
          .machine = table.machine,
          .program = study::program_name(plan_.request, table),
          .engine = options_.engine.engine,
          .launch = std::string(name_of(options_.engine.how.launch)),
          .bound = last(),
          .one_host = options_.engine.how.one_host};
}

void Runner::print(const study::RunTable& table) const {
  if (is_job_)
    report::print_launches(std::cout, head(table), table.results.back());
  else
    report::print_table(std::cout, head(table), table.results);
  if (options_.evidence && !is_job_) report::print_evidence(std::cout, head(table), table.results);
  for (const std::string& remark : table.remarks) std::cout << "# " << remark << '\n';
  const auto shown = std::ranges::find_if(table.results.rbegin(), table.results.rend(),
                                          std::not_fn(report::is_in_place));
  if (!session_.quiet && shown != table.results.rend())
    report::print_attribution(std::cout, *shown);
  if (&table != &tables_.back()) std::cout << '\n';
}

void Runner::write_files() const {
  const study::RunTable all = write_tables();
  if (!options_.trace.empty()) write_file(options_.trace, trace_text_);
  if (!options_.record.empty()) write_file(options_.record, record_text_);
  if (!options_.report.empty())
    write_file(options_.report,
               report::page::render(report::run_page(head(all), all.results, extras_)));
}

study::RunTable Runner::write_tables() const {
  study::RunTable all = study::joined_tables(plan_.request, tables_);
  const report::Run run = head(all);
  if (!options_.json.empty()) write_file(options_.json, report::to_json(run, all.results));
  if (!options_.csv.empty()) write_file(options_.csv, report::to_csv(run, all.results));
  return all;
}

}  // namespace

ExitCode run_program(const RunOptions& options, Session& session) {
  return Runner(options, session).run();
}

}  // namespace hemiola::cli
