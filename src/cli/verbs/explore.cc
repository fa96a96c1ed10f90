// hemiola explore: how to overlap a product with its collective, and whether it is worth it.
#include <fmt/format.h>

#include <cmath>
#include <iostream>
#include <memory>
#include <tuple>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "cli/options/measured_times.h"
#include "cli/options/timelines.h"
#include "cli/verbs/explore_suite.h"
#include "compile/emit/torch.h"
#include "core/lists.h"
#include "core/text.h"
#include "explore/search/explorer.h"
#include "plan/plan_json.h"
#include "report/bench.h"
#include "report/exploration.h"

namespace hemiola::cli {
namespace {

constexpr const char* kExploreExamples =
    "  hemiola explore ag-gemm --gemm 8192,28672,8192 --machine mi300x-8\n"
    "  hemiola explore gemm-rs --local 8192,8192,3584 --machine dgx-h100 --launch graph \\\n"
    "      --emit best.json --report best.html\n"
    "  hemiola explore --suite overlap --machine mi300x-8 --database overlap.sqlite --threads 4\n"
    "M, N and K are those of C[M,N] = A[M,K] B[K,N] over all GPUs; with --local those of one.";

struct ExploreOptions {
  std::string op, gemm, local;
  std::string gather = "a", load = plan::kEvenLoad;
  MachineOptions machine;
  std::string degrees = "2,4,8,16";
  std::string realization, place, transfer, copies;
  std::string losses = "best";
  explore::Request request{};  ///< type, timing and effort of the search
  std::string emit, json, report, thresholds, measured, bench;
  SuiteOptions suite;
};

void add_options(CLI::App& verb, ExploreOptions& options, Session& /*session*/) {
  const AddOptions add(verb);
  add("OPERATOR", options.op, "ag-gemm, gemm-rs, gemm-ar, a2a-gemm or gemm-a2a", "");
  add("--gemm", options.gemm, "sizes of the product over all GPUs; M may be a range, 64:65536:x2",
      "M,N,K");
  add("--local", options.local, "sizes of the product of one GPU", "M,N,K");
  add("--gather", options.gather, "ag-gemm: which operand is gathered, a or b (FSDP)", "a|b");
  add("--load", options.load,
      "a2a-gemm, gemm-a2a: tokens for the experts of each GPU: even, weights as 4/2/1/1, zipf/S",
      "even|LOAD");
  explore::Request& request = options.request;
  add.data_type(request.op.type, "bf16", "type of the elements");
  add_machine_options(verb, options.machine);
  add_search_timing(verb, request.options,
                    "schedules that are simulated at a time; of a suite scenarios");
  add("--degrees", options.degrees, "steps that blocks may go in", "LIST");
  add("--realization", options.realization,
      "who may move data: load-store, bulk, copy-engine, multicast; all but bulk by default",
      "LIST");
  add("--place", options.place, "where workgroups communicate: own, co-located; both by default",
      "LIST");
  add("--transfer", options.transfer, "push, pull; both by default", "LIST");
  add("--copies", options.copies,
      "when copy engines get their commands: in-time, or prelaunched, behind a poll; both by "
      "default",
      "LIST");
  add.count("--fluid", request.fluid, 1, 1'000'000, "schedules that fluid simulates at most");
  add.count(
      "--top", request.top, 0, 1000,
      "so many of the fastest are confirmed by the engine sampled; 3 by default, where that is "
      "little work",
      "K");
  verb.add_flag("--exhaustive", request.exhaustive, "simulate every schedule");
  add("--losses", options.losses,
      "of which schedules it is looked at where they lose: none, the best ones (of all, and of "
      "every family), all that are simulated",
      "none|best|all");
  add("--measured", options.measured,
      "your own times of products, collectives and schedules (CSV), which the models are made to "
      "meet",
      "FILE");
  add("--bench", options.bench,
      "write the fastest schedules (--top, or 5) and a program that times them with torchrun, "
      "whose "
      "times.csv --measured takes",
      "DIR");
  add("--emit", options.emit, "write the fastest schedule as a plan for run, check and compile",
      "FILE");
  add("--thresholds", options.thresholds,
      "of a range of M: write which family is the fastest from where on, as a rule", "FILE");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--report", options.report, "write a page with tables and charts, for a browser", "FILE");
  add_suite_options(verb, options.suite);
}

std::vector<std::string> words(const std::string& option, const std::string& text,
                               const std::vector<std::string>& choices) {
  std::vector<std::string> all;
  if (text.empty()) return all;
  for (const std::string& word : split(text, ','))
    all.push_back(choice_value(option, word, choices));
  return all;
}

class ExploreVerb {
 public:
  ExploreVerb(const ExploreOptions& options, Session& session)
      : options_(options), session_(session), request_(options.request) {}

  ExitCode run() {
    understand();
    if (!options_.measured.empty())
      met_ = meet_measured(session_, options_.measured, request_.op.type, request_.machine,
                           request_.options);
    request_.software = {std::llround(met_.own.software_us * 1e9)};
    if (request_.software.fs > 0)
      met_.remarks.push_back(
          fmt::format("software takes {:.3f} us around every schedule but serial, which is in "
                      "their times",
                      met_.own.software_us));
    if (!options_.suite.suite.empty()) {
      return explore_suite(session_, request_, suite_ranks_, options_.suite,
                           {.json = options_.json, .report = options_.report});
    }
    if (!rows_.empty()) return run_range();
    if (!options_.thresholds.empty())
      throw Failure("thresholds are those of several M", SourceLocation{.file = "--thresholds"},
                    "for example --gemm 64:65536:x2,28672,8192");
    {
      Progress progress(session_);
      progress.doing("exploring " + explore::text_of(request_.op));
      explore::ExploreWatch watch{.watch = {.monitor = &session_.monitor}};
      watch.on_progress = [&](std::int64_t done, std::int64_t all) {
        progress.parts(done, all, "schedules");
      };
      found_ = explore::explore(session_.laboratory, request_, watch);
      if (!options_.report.empty())
        std::tie(timelines_.winner, timelines_.serial) = timelines_of(session_, request_, found_);
    }
    found_.remarks = met_.remarks;
    found_.measured_us = met_.own.schedules_us;
    report::print_exploration(std::cout, found_);
    write_files();
    return ExitCode::done;
  }

 private:
  void understand() {
    options_.suite.suite.empty() ? understand_operator() : understand_suite();
    understand_search();
  }

  void understand_operator() {
    refuse_suite_options(session_);
    explore::Operator& op = request_.op;
    if (options_.op.empty())
      throw Failure("no operator is given", {}, "for example 'hemiola explore ag-gemm ...'");
    op.kind = explore::operator_named(options_.op, {.file = "OPERATOR"});
    op.gathers_b = choice_value("--gather", options_.gather, {"a", "b"}) == "b";
    if (op.gathers_b) explore::check_gathers_b(op.kind, {.file = "--gather"});
    op.load = options_.load;
    explore::check_load(op, {.file = "--load"});
    request_.machine = machine_choice(options_.machine, one_setting(options_.machine.set));
    op.ranks = session_.laboratory.machine(request_.machine)->ranks();
    read_sizes(op);
  }

  /// Scenarios say what is explored.
  void understand_suite() {
    refuse_typed(session_,
                 {"OPERATOR", "--gemm", "--local", "--gather", "--load", "--dtype", "--emit",
                  "--thresholds", "--bench"},
                 "does not go with --suite", "the suite's scenarios say what is explored");
    MachineOptions machine = options_.machine;
    // Each scenario takes the first GPUs of the machine.
    if (!machine.ranks.empty()) suite_ranks_ = int_value("--ranks", machine.ranks, 2, 65536);
    machine.ranks.clear();
    request_.machine = machine_choice(machine, one_setting(machine.set));
  }

  void understand_search() {
    request_.options = search_options(request_.options);
    request_.losses = explore::losses_of(options_.losses, {.file = "--losses"});
    request_.limits.degrees = dimensions_value("--degrees", options_.degrees);
    check_degrees();
    request_.limits.realizations =
        words("--realization", options_.realization, explore::kRealizations);
    request_.limits.places = words("--place", options_.place, explore::kPlaces);
    request_.limits.transfers = words("--transfer", options_.transfer, explore::kTransfers);
    request_.limits.copies = words("--copies", options_.copies, explore::kCopies);
  }

  /// Of an operator, where they were asked for: those of the default suit large ones.
  void check_degrees() const {
    const std::int64_t m = request_.op.m;
    if (m == 0 || options_.degrees == ExploreOptions().degrees) return;
    for (const std::int64_t degree : request_.limits.degrees) {
      if (degree <= m) continue;
      throw Failure(fmt::format("{} steps are more than there are rows (M = {})", degree, m),
                    SourceLocation{.file = "--degrees"},
                    "steps divide the rows of a block, or its columns");
    }
  }

  /// "1:65536:x2,N,K" or "64,N,K" apart: the values of M, and what follows.
  std::vector<std::int64_t> rows_of_range() const {
    const std::string& text = options_.gemm;
    const std::string first = text.substr(0, text.find(','));
    if (first.find(':') == std::string::npos) return {};
    return read_range(first, std::int64_t{1} << 40, {.file = "--gemm"});
  }

  void read_sizes(explore::Operator& op) {
    const bool is_local = !options_.local.empty();
    if (is_local == !options_.gemm.empty())
      throw Failure(is_local ? "sizes are given twice" : "no sizes are given",
                    SourceLocation{.file = "--gemm"},
                    "--gemm M,N,K over all GPUs, or --local M,N,K of one");
    const char* option = is_local ? "--local" : "--gemm";
    std::string text = is_local ? options_.local : options_.gemm;
    if (!is_local) rows_ = rows_of_range();
    // The sizes of the largest M are those that are looked at first.
    if (!rows_.empty()) text = std::to_string(rows_.back()) + text.substr(text.find(','));
    const std::vector<std::int64_t> sizes = dimensions_value(option, text);
    if (sizes.size() != 3)
      throw Failure(std::to_string(sizes.size()) + " sizes are given, not M, N and K",
                    SourceLocation{.file = option}, "for example 8192,28672,8192");
    op.m = sizes[0];
    op.n = sizes[1];
    op.k = sizes[2];
    if (is_local)
      op = explore::from_local(op, {.file = option});
    else if (rows_.empty())
      explore::check(op, {.file = option});
  }

  ExitCode run_range() {
    refuse_typed(session_, {"--emit", "--report", "--bench"}, "is of one M, not of several",
                 "give one M, or leave it out");
    request_.losses = explore::LossesOf::none;
    if (!request_.top) request_.top = 0;
    explore::RangeOfRows range;
    {
      Progress progress(session_);
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        explore::Operator op = request_.op;
        op.m = rows_[i];
        try {
          explore::check(op, {.file = "--gemm"});
        } catch (const Failure&) {
          range.refused.push_back(op.m);
          continue;
        }
        progress.doing("exploring " + explore::text_of(op));
        progress.parts(static_cast<std::int64_t>(i), std::ssize(rows_), "values of M");
        explore::Request one = request_;
        one.op = op;
        range.found.push_back(
            explore::explore(session_.laboratory, one, {.watch = {.monitor = &session_.monitor}}));
      }
    }
    if (range.found.empty()) explore::check(request_.op, {.file = "--gemm"});
    report::print_range(std::cout, range);
    if (!options_.json.empty())
      write_file(options_.json, report::range_json(session_.command, range));
    if (!options_.thresholds.empty())
      write_file(options_.thresholds, explore::threshold_rule(range.found));
    return ExitCode::done;
  }

  void write_files() {
    if (!options_.json.empty())
      write_file(options_.json, report::exploration_json(session_.command, found_));
    if (!options_.report.empty())
      write_file(options_.report, report::page::render(report::exploration_page(
                                      session_.command, found_, timelines_)));
    if (!options_.bench.empty()) write_bench();
    if (options_.emit.empty()) return;
    const explore::Candidate* winner = found_.winner();
    if (winner == nullptr) {
      Notices(session_).note("nothing is written to " + options_.emit +
                             ": serial is the fastest, which is a job and not a plan");
      return;
    }
    write_file(options_.emit,
               plan::write_plan(explore::plan_of(session_.laboratory, request_, winner->schedule)));
  }

  void write_bench() {
    constexpr int kUsual = 5;
    const auto top = index(request_.top.value_or(kUsual));
    make_folder(options_.bench);
    const auto chosen = report::bench_candidates(found_, top > 0 ? top : kUsual);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const explore::Schedule& schedule = chosen[i]->schedule;
      const plan::Plan plan = explore::plan_of(session_.laboratory, request_, schedule);
      write_file(options_.bench + '/' + report::bench_file(i),
                 compile::torch_of(plan, {.file = schedule.text(),
                                          .command = session_.command,
                                          .version = HEMIOLA_VERSION})
                     .text);
    }
    write_bench_program(options_.bench, report::bench_schedules(found_, chosen));
  }

  const ExploreOptions& options_;
  int suite_ranks_ = 0;  ///< of each scenario of a suite; 0: as many as it says
  Session& session_;
  explore::Request request_;
  explore::Exploration found_;
  report::ExplorationTimelines timelines_;
  MetTimes met_;
  std::vector<std::int64_t> rows_;  ///< values of M; empty: one
};

}  // namespace

void add_explore(CLI::App& app, Session& session) {
  add_verb<ExploreOptions>(
      app, session, "explore", "how to overlap a product with its collective", kExploreExamples,
      add_options,
      [](const ExploreOptions& given, Session& in) { return ExploreVerb(given, in).run(); });
}

}  // namespace hemiola::cli
