// hemiola tune: which fused kernel of a template of plans is the fastest.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "cli/options/kernel.h"
#include "cli/options/measured_times.h"
#include "cli/options/timelines.h"
#include "cli/options/together.h"
#include "cli/verbs/compile_plan.h"
#include "core/text.h"
#include "plan/plan_json.h"
#include "report/bench.h"
#include "report/tuning.h"
#include "tune/database.h"
#include "tune/tuner.h"

namespace hemiola::cli {
namespace {

constexpr const char* kTuneExamples =
    "  hemiola tune examples/kernels/gemm_persistent.py --plan ag-gemm/swizzle --ranks 4 \\\n"
    "      --machine dgx-h100 --param m=1024,4096 --param n=2048 --param k=1024 -o tuned.py\n"
    "  hemiola tune gemm.py --plan gemm-rs/ring --machine mi300x-8 --configs mine.json \\\n"
    "      --param m=8192 --param n=8192 --param k=28672 --budget 60 --database tuned.sqlite\n"
    "Lists of sizes are tuned one by one; lists of anything else are what is tried of it.";

struct TuneOptions {
  KernelOptions kernel;
  std::string configs;
  MachineOptions machine;
  std::vector<std::string> parameters;
  std::string method = "descent";
  tune::Request request{};  ///< plan, timing and effort of the search
  bool no_check = false;
  std::string output, emit, json, csv, report, database, bench, measured;
  TogetherOptions together;
};

void add_options(CLI::App& verb, TuneOptions& options, Session& /*session*/) {
  const AddOptions add(verb);
  add_kernel_options(verb, options.kernel);
  add("--plan", options.request.plan, "the template of plans: 'hemiola plan show' lists them",
      "TEMPLATE");
  add_machine_options(verb, options.machine);
  add("--param", options.parameters,
      "sizes of the template; or what is tried of chunks, realizations, ...: "
      "split=1,2,4",
      "NAME=VALUE,...");
  add("--configs", options.configs,
      "configurations of the kernel, a JSON list of objects; else those of @triton.autotune, else "
      "what --constexpr and the plan give",
      "FILE");
  add("--method", options.method, "how points are chosen: descent, random, exhaustive", "NAME");
  add.count("--budget", options.request.budget, 2, 1'000'000,
            "simulations of each size, by fluid and by sampled");
  add.count("--seed", options.request.seed, 0, INT64_MAX,
            "of restarts, and of the order that follows");
  verb.add_flag("--all-realizations", options.request.any_realization,
                "try also who moves data as the compiler does not write it yet");
  add_search_timing(verb, options.request.options, "points that are simulated at a time");
  add("-o,--output", options.output, "write the fastest fused kernel (of several sizes: each)",
      "FILE");
  add("--emit", options.emit, "write its plan for run, check and compile (likewise)", "FILE");
  verb.add_flag("--no-check", options.no_check, "do not prove the plan before it is written");
  add("--database", options.database,
      "keep simulations here (SQLite): the same command goes on after it was ended", "FILE");
  add("--measured", options.measured,
      "your own times of products, collectives and points (CSV), which the models are made to meet",
      "FILE");
  add("--bench", options.bench,
      "write the points that sampled timed as kernels, and a program that times them with "
      "torchrun, whose times.csv --measured takes",
      "DIR");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per point", "FILE");
  add("--report", options.report, "write a page with tables and charts, for a browser", "FILE");
  add_together(verb, options.together);
}

class TuneVerb {
 public:
  TuneVerb(const TuneOptions& options, Session& session)
      : options_(options), session_(session), request_(options.request) {}

  ExitCode run() {
    understand();
    const Together together(options_.together, session_,
                            options_.database.empty() ? "" : options_.database + ".parts");
    if (together.submitted()) return ExitCode::done;
    open_database(together);
    {
      Progress progress(session_);
      progress.doing("tuning " + request_.plan);
      tune::TuneWatch watch{.watch = {.monitor = &session_.monitor}};
      watch.on_progress = [&](const std::string& bucket, std::int64_t done, std::int64_t all) {
        progress.show(
            "tuning " + request_.plan + " at " + bucket,
            static_cast<double>(done) / static_cast<double>(std::max<std::int64_t>(1, all)));
      };
      tuning_ = tune::tune(session_.laboratory, request_, watch);
      progress.show({}, 1);
    }
    if (!together.is_first()) return ExitCode::done;
    tuning_.remarks = met_.remarks;
    tuning_.measured_us = met_.own.schedules_us;
    for (tune::Bucket& bucket : tuning_.buckets)
      if (!options_.output.empty()) bucket.file = file_of_bucket(options_.output, bucket);
    report::print_tuning(std::cout, tuning_);
    return write_files();
  }

 private:
  void understand() {
    if (options_.kernel.file.empty())
      throw Failure("no kernel is given", {},
                    "for example hemiola tune KERNEL.py --plan ag-gemm/swizzle --machine dgx-h100");
    if (request_.plan.empty())
      throw Failure("is missing", {.file = "--plan"}, "for example --plan ag-gemm/swizzle");
    request_.kernel.describe = describe_request(options_.kernel);
    const plan::TemplateInfo* info = plan::find_template(request_.plan, &session_.registry);
    if (info == nullptr && std::filesystem::exists(request_.plan))
      throw Failure("is a file, and what is tuned is a template, whose chunks are open",
                    {.file = request_.plan},
                    "'hemiola compile KERNEL.py --plan " + request_.plan + "' fuses it as it is");
    if (info != nullptr)
      request_.parameters = tune::asked_of(parameter_values(options_.parameters), *info);
    if (!options_.configs.empty())
      request_.kernel.configurations =
          compile::read_configurations(read_file(options_.configs), options_.configs);
    request_.machine = machine_choice(options_.machine, one_setting(options_.machine.set));
    request_.options = search_options(request_.options);
    using tune::Method;
    request_.method = named_value("--method", options_.method,
                                  {Method::descent, Method::random, Method::exhaustive});
    if (!options_.measured.empty())
      met_ = meet_measured(session_, options_.measured, DataType::float16, request_.machine,
                           request_.options);
    if (met_.own.software_us > 0)
      throw Failure("a row 'software' says nothing of a plan that is tuned",
                    SourceLocation{.file = options_.measured},
                    "it is of the schedules that explore finds");
  }

  void open_database(const Together& together) {
    const bool is_alone = !together.shares();
    if (options_.database.empty() && is_alone) return;
    const machine::SharedMachine machine =
        explore::machine_to_explore(session_.laboratory, request_.machine);
    study::DatabaseHead head = study::head_of_machine(request_.machine, *machine, HEMIOLA_VERSION);
    head.options = {{"ranks", std::to_string(machine->ranks())},
                    {"launch", std::string(sim::name_of(request_.options.launch))},
                    {"warmup", std::to_string(request_.options.warmup)},
                    {"iterations", std::to_string(request_.options.iterations)}};
    const bool is_kept = !options_.database.empty() && together.is_first();
    database_.emplace(is_kept ? options_.database : ":memory:", head);
    request_.database = &*database_;
    if (!is_alone) {
      parts_ = together.open(together.head_of_arguments(head.machine_digest));
      request_.parts = parts_.get();
    }
    if (!is_kept) return;
    session_.kept_safe =
        "what was simulated is in " + options_.database + ": the same command goes on there";
  }

  /// "out.py", or of several sizes "out_m1024.py".
  std::string file_of_bucket(const std::string& file, const tune::Bucket& bucket) const {
    if (tuning_.buckets.size() == 1) return file;
    std::string name;
    for (const char c : bucket.name) {
      if (c == ' ') name += '_';
      if (c != '=' && c != ' ') name += c;
    }
    std::filesystem::path path(file);
    path.replace_filename(path.stem().string() + '_' + name + path.extension().string());
    return path.string();
  }

  plan::Plan plan_of(const tune::Candidate& candidate) {
    return tune::plan_of(session_.laboratory, request_, candidate);
  }

  std::string text_of(const compile::FusedFile& fused, const tune::Candidate& candidate,
                      const std::string& output) const {
    return fused
        .write({.file = request_.plan,
                .command = session_.command,
                .version = HEMIOLA_VERSION,
                .movers = candidate.movers},
               output)
        .text;
  }

  ExitCode write_files() {
    if (!options_.json.empty())
      write_file(options_.json, report::tuning_json(session_.command, tuning_));
    if (!options_.csv.empty()) write_file(options_.csv, report::tuning_csv(tuning_));
    if (!options_.report.empty()) write_page();
    if (!options_.bench.empty()) write_bench();
    for (const tune::Bucket& bucket : tuning_.buckets) {
      const tune::Candidate* winner = bucket.winner();
      if (winner == nullptr || (options_.output.empty() && options_.emit.empty())) continue;
      const plan::Plan plan = plan_of(*winner);
      if (!options_.no_check) {
        const ExitCode code = prove_plan(session_, request_.plan, plan);
        if (code != ExitCode::done && code != ExitCode::not_proven) return code;
      }
      if (!options_.emit.empty())
        write_file(file_of_bucket(options_.emit, bucket), plan::write_plan(plan));
      if (options_.output.empty()) continue;
      const std::string output = file_of_bucket(options_.output, bucket);
      const compile::FusedFile fused = tune::fused_of(request_, *winner, plan);
      const std::string text = text_of(fused, *winner, output);
      if (const ExitCode code =
              options_.no_check ? ExitCode::done : prove_text(session_, fused, output, text);
          code != ExitCode::done)
        return code;
      write_file(output, text);
      std::cout << fmt::format("{}: {} in {}, {}\n", output, request_.plan, options_.kernel.file,
                               winner->text);
    }
    return ExitCode::done;
  }

  void write_page() {
    std::vector<report::RunTimeline::Panels> timelines;
    for (const tune::Bucket& bucket : tuning_.buckets) {
      const tune::Candidate* winner = bucket.winner();
      timelines.push_back(winner == nullptr
                              ? report::RunTimeline::Panels{}
                              : timeline_of_plan(session_, request_.machine, plan_of(*winner),
                                                 DataType::float16, request_.options.launch));
    }
    write_file(options_.report,
               report::page::render(report::tuning_page(session_.command, tuning_, timelines)));
  }

  void write_bench() {
    make_folder(options_.bench);
    std::vector<const tune::Candidate*> chosen;
    for (const tune::Bucket& bucket : tuning_.buckets) {
      for (const tune::Candidate& one : bucket.candidates)
        if (one.is_written && (one.sampled || &one == bucket.winner())) chosen.push_back(&one);
    }
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::string file = options_.bench + '/' + report::bench_file(i);
      write_file(file, text_of(tune::fused_of(request_, *chosen[i], plan_of(*chosen[i])),
                               *chosen[i], file));
    }
    write_bench_program(options_.bench, report::bench_kernels(tuning_, chosen));
  }

  const TuneOptions& options_;
  Session& session_;
  tune::Request request_;
  std::optional<tune::Database> database_;
  std::unique_ptr<study::Parts> parts_;
  tune::Tuning tuning_;
  MetTimes met_;
};

}  // namespace

void add_tune(CLI::App& app, Session& session) {
  add_verb<TuneOptions>(
      app, session, "tune",
      "which chunks, tiles and movers make a fused kernel fast (docs/tune.md)", kTuneExamples,
      add_options, [](const TuneOptions& given, Session& in) { return TuneVerb(given, in).run(); });
}

}  // namespace hemiola::cli
