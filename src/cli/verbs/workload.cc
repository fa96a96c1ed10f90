// hemiola workload: iterations of models, made, run, searched.
#include <fmt/format.h>

#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/models.h"
#include "cli/options/values.h"
#include "cli/verbs/iteration.h"
#include "core/text.h"
#include "report/iteration.h"
#include "report/workload_search.h"
#include "study/laboratory/database_head.h"
#include "workload/iteration/search.h"
#include "workload/traces/chakra/writer.h"

namespace hemiola::cli {
namespace {

constexpr const char* kMakeExamples =
    "  hemiola workload make llama-70b --tp 8 --pp 2 --dp 2 --zero 1 --global-batch 32 \\\n"
    "      --machine dgx-h100:4\n"
    "  hemiola workload make llama-8b --cp 8 --context-parallel ring --sequence 131072 \\\n"
    "      --recompute full --machine dgx-h100\n"
    "  hemiola workload make config.json --tp 8 --phase decode --micro-batch 64 --context 4096 \\\n"
    "      --machine dgx-h100 --report decode.html";
constexpr const char* kSearchExamples =
    "  hemiola workload search llama-70b --gpus 64 --machine dgx-h100 --global-batch 512\n"
    "  hemiola workload search mixtral-8x7b --machine dgx-h100:2 --global-batch 64 --top 5";

struct MakeOptions {
  ModelIteration model;
  MachineOptions machine;
  IterationOptions iteration;
  std::string out;
};

ExitCode make(const MakeOptions& options, Session& session) {
  const auto workload =
      std::make_shared<const workload::Workload>(make_workload(make_request(options.model)));
  const auto write_traces = [&] {
    if (!options.out.empty()) workload::write_chakra(*workload, options.out);
  };
  if (options.machine.machine.empty()) {
    if (!options.iteration.together.parts.empty() || options.iteration.together.slurm)
      throw Failure("goes with --machine only: there is nothing to simulate",
                    {.file = "--parts, --slurm"});
    Notices notices(session);
    notices.show(workload->notices);
    report::print_workload(std::cout, *workload);
    write_traces();
    return ExitCode::done;
  }
  MachineOptions machine = options.machine;
  if (machine.ranks.empty()) machine.ranks = std::to_string(workload->ranks);
  // A command that is refused leaves no file.
  return run_iteration_verb(workload, machine, options.iteration, session, write_traces);
}

void add_options(CLI::App& verb, MakeOptions& options, Session&) {
  add_model_options(verb, options.model);
  add_machine_options(verb, options.machine);
  add_iteration_basics(verb, options.iteration);
  add_iteration_options(verb, options.iteration);
  AddOptions{verb}("-o,--output", options.out,
                   "write it as Chakra execution traces: PREFIX.<rank>.et, PREFIX.json", "PREFIX");
}

struct SearchOptions {
  ModelIteration model;
  MachineOptions machine;
  IterationOptions iteration;
  int top = 10;
  std::optional<int> gpus;
  std::int64_t memory = 0;  ///< 0: that of the device model
};

/// --gpus: as many nodes of the machine as have so many GPUs. (A DGX H100, if none is named.)
MachineOptions machine_of(const SearchOptions& options, Session& session) {
  MachineOptions machine = options.machine;
  if (!options.gpus) return machine;
  const int gpus = *options.gpus;
  if (!machine.ranks.empty())
    throw Failure("is said twice, by --ranks too", {.file = "--gpus"}, "leave one of them out");
  if (machine.machine.empty()) machine.machine = "dgx-h100";
  const machine::SharedMachine node =
      session.laboratory.machine(machine_choice(machine, cli::one_setting(machine.set)));
  const int each = node->ranks();
  if (each < gpus) {
    if (machine.machine.find(':') != std::string::npos)
      throw Failure(fmt::format("{} has {} GPUs", machine.machine, each), {.file = "--gpus"},
                    "name one node: dgx-h100");
    machine.machine += fmt::format(":{}", (gpus + each - 1) / each);
  }
  machine.ranks = std::to_string(gpus);
  return machine;
}

ExitCode search(const SearchOptions& options, Session& session) {
  const Together together(options.iteration.together, session, {});
  if (together.submitted()) return ExitCode::done;
  workload::SearchRequest request{.make = make_request(options.model)};
  const workload::IterationRequest iteration =
      iteration_request(nullptr, name_of(request.make.phase), machine_of(options, session),
                        options.iteration, session);
  request.machine = iteration.machine;
  request.costs = iteration.costs;
  request.schedule = iteration.schedule;
  request.without = iteration.without;
  request.memory = options.memory;
  std::unique_ptr<study::Parts> parts;
  if (together.shares()) {
    const machine::SharedMachine machine = session.laboratory.machine(request.machine);
    if (machine != nullptr)
      parts = together.open(together.head_of_arguments(
          study::head_of_machine(request.machine, *machine, HEMIOLA_VERSION).machine_digest));
    request.parts = parts.get();
  }
  workload::SearchOutcome outcome;
  {
    Progress progress(session);
    progress.doing("searching");
    outcome = workload::search(
        session.laboratory, request,
        [&](const std::string& what, double share) { progress.show(what, share); });
  }
  if (!together.is_first()) return ExitCode::done;
  report::print_search(std::cout, outcome, index(options.top));
  if (!options.iteration.json.empty())
    write_file(options.iteration.json, report::search_json(session.command, outcome));
  return ExitCode::done;
}

void add_options(CLI::App& verb, SearchOptions& options, Session&) {
  const AddOptions add(verb);
  add_model_options(verb, options.model);
  add_machine_options(verb, options.machine);
  add("--engine", options.iteration.words.engine,
      "how launches are timed: estimate|fluid|sampled|line", "ENGINE");
  add_iteration_options(verb, options.iteration);
  add.count("--top", options.top, 1, 1 << 20, "rows of the table");
  add.count("--gpus", options.gpus, 1, 1 << 20,
            "how many: nodes of the machine that have them (dgx-h100 without --machine)");
  add.read(
      "--memory", {},
      [&options](const std::string& text) {
        const auto bytes = parse_bytes(text);
        if (!bytes) throw Failure("'" + text + "' is no size", {.file = "--memory"}, "80GB");
        options.memory = bytes->count;
      },
      "of a GPU; that of its device model by default", "SIZE");
  add("--json", options.iteration.json, "write one JSON object", "FILE");
}

}  // namespace

void add_workload(CLI::App& app, Session& session) {
  CLI::App* verb = add_verb(app, "workload", "iterations of training and inference",
                            std::string(kMakeExamples) + "\n" + kSearchExamples);
  verb->require_subcommand(1);
  add_verb<MakeOptions>(*verb, session, "make",
                        "one iteration of a model; with --machine it is run", kMakeExamples,
                        add_options, make);
  add_verb<SearchOptions>(*verb, session, "search",
                          "parallelisms of a model that fit into memory, the fastest first",
                          kSearchExamples, add_options, search);
}

}  // namespace hemiola::cli
