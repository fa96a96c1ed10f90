// hemiola run: how long a program takes on a machine, and where the time goes.
#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "cli/cli.h"
#include "cli/verbs/network.h"
#include "cli/verbs/run_program.h"
#include "core/expansion.h"
#include "core/text.h"
#include "workload/scheduler/fold.h"
#include "workload/trace_reader.h"

namespace hemiola::cli {
namespace {

constexpr const char* kRunExamples =
    "  hemiola run all-reduce/ring --machine dgx-h100 --size 1KiB:1GiB:x2 --csv ring.csv\n"
    "  hemiola run plan.json --machine dgx-h100 --size 16MiB --set gpu.l2.size=25MiB,50MiB \\\n"
    "      --json result.json\n"
    "  hemiola run trace.%d.et --machine dgx-h100 --report iteration.html   # what each rank did\n"
    "  hemiola run rank0.pt.trace.json.gz --machine dgx-h100 --replicate 8 --without '*norm*'";

void add_options(CLI::App& verb, RunOptions& options, Session& /*session*/) {
  add_program_options(verb, options.program);
  add_promise_option(verb, options.program);
  verb.get_option("PROGRAM")->description(
      "a file (MSCCL++ JSON, MSCCL XML, also .gz), a built-in (all-reduce/ring, auto/nccl), a\n"
      "collective (all-reduce): all its built-ins; or traces of an iteration (Chakra, PyTorch, "
      "Kineto):\n"
      "a file, folder, archive, prefix of PREFIX.<rank>.et, or name.%d.et (docs/traces.md)");
  add_machine_options(verb, options.machine);
  verb.add_flag("--round-down", options.round_down,
                "for a size that the program cannot take, the next smaller one: as nccl-tests do")
      ->excludes("--round-size");
  verb.add_flag("--in-place-too", options.in_place_too,
                "every size also with input and output in one memory, in columns beside it");
  const AddOptions add(verb);
  add_engine_options(verb, options.engine, 0, "measured repetitions; 0: one cold run");
  add("--skew", options.skew, "later starts of rank 0, 1, ...: 0ns,5us", "TIMES");
  add.count("--threads", options.engine.how.threads, 1, 4096, "threads of the engine");
  add.count("--seed", options.seed, 0, INT64_MAX, "seed of random choices");
  verb.add_flag("--no-check", options.no_check, "do not check the program first");
  verb.add_flag("--evidence", options.evidence, "list the measured rows that are like this");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--csv", options.csv, "write one line per size", "FILE");
  add("--trace", options.trace, "write a timeline for ui.perfetto.dev", "FILE");
  add("--report", options.report, "write a page with tables and charts, for a browser", "FILE");
  add("--trace-lines", options.trace_lines, "requests too, in a window of time", "T0:T1");
  add("--record", options.record, "write what comes in at a rank's GPU, for 'replay'", "FILE");
  add("--record-rank", options.record_rank, "of which rank, or ranks; else of rank 0", "R,...");
  add("--record-at", options.record_at,
      "ingress of that GPU (else it is), or the port of whoever sends", "ingress|port");
  add_iteration_options(verb, options.iteration);
  add("--network", options.network,
      "the messages of a plan over ns-3's network (docs/ns3.md), lossless or with queues",
      "ns-3[:QUEUE,ack]");
  verb.add_flag("--lenient", options.lenient,
                "of a trace: what can be left out of a damaged one is, and counted");
  add("--groups", options.groups, "of a trace: its process groups, if not beside it", "FILE");
  add("--call-sizes", options.call_sizes, "of a trace: bytes of calls that it does not say",
      "FILE");
  add.count("--replicate", options.replicate, 1, 1 << 20,
            "of a trace of one rank, or a text that does not say it: so many ranks do the same");
}

IterationOptions iteration_options(const RunOptions& options, const Session& session) {
  IterationOptions iteration = options.iteration;
  if (is_typed(session, "--engine")) iteration.words.engine = options.engine.engine;
  iteration.words.launch = static_cast<LaunchMode>(options.engine.how.launch);
  iteration.json = options.json;
  iteration.csv = options.csv;
  iteration.trace = options.trace;
  iteration.report = options.report;
  return iteration;
}

/// A workload is scheduled above the engines: what is said of one program's run has no meaning
/// there, and what is said of workloads none for a program.
void refuse_options_of_engines(const Session& session) {
  refuse_typed(
      session,
      {"--warmup", "--in-place-too", "--iterations", "--skew", "--threads", "--seed", "--no-check",
       "--one-host", "--no-fold", "--trace-lines", "--record", "--record-rank", "--record-at"},
      "is of one program's run, and this is a workload",
      "--job FILE writes its launches as a job, which takes it");
}

void refuse_options_of_workloads(const Session& session) {
  refuse_typed(session,
               {"--detail", "--collectives", "--compute", "--scale-compute", "--without", "--job",
                "--no-contention", "--lenient", "--groups", "--replicate", "--call-sizes",
                "--parts", "--slurm", "--slurm-script", "--slurm-option"},
               "is of workloads, and this is a program", "docs/workloads.md");
}

/// Whether it can only be meant as a trace: what is wrong with it the reader of traces says.
bool is_meant_as_trace(const std::string& input, const Session& session) {
  std::error_code ignored;
  const std::string start = read_start(input);  // an archive is one, though it cannot be unpacked
  const bool is_archive = recognise(start) == Format::binary && is_readable_start(start);
  return is_archive || workload::is_trace(input, &session.registry) ||
         input.find("%d") != std::string::npos || std::filesystem::is_directory(input, ignored);
}

/// What is neither text nor a trace.
void refuse_binary(const std::string& input) {
  if (!is_file(input)) return;
  const Format format = recognise(read_start(input));
  if (format == Format::binary)
    throw Failure(fmt::format("is {}: neither a program nor a trace", describe(format)),
                  {.file = input},
                  "programs are text (docs/inputs.md); of traces docs/traces.md says what is read");
}

/// A trace of a workload (docs/traces.md) has calls of its own.
ExitCode run_trace(const RunOptions& options, Session& session) {
  refuse_options_of_programs(session, "trace");
  workload::TraceRequest request{.path = options.program.program,
                                 .lenient = options.lenient,
                                 .sizes = options.call_sizes,
                                 .groups = options.groups,
                                 .parts = &session.registry};
  if (options.replicate) request.replicate = *options.replicate;
  return run_iteration_verb(
      std::make_shared<const workload::Workload>(workload::fold(workload::read_workload(request))),
      options.machine, iteration_options(options, session), session);
}

ExitCode run_network(const RunOptions& options, Session& session) {
  refuse_typed(
      session,
      {"--engine", "--launch", "--warmup", "--iterations", "--skew", "--threads", "--seed",
       "--no-check", "--one-host", "--no-fold", "--csv", "--trace", "--trace-lines",
       "--in-place-too", "--report", "--record", "--record-rank", "--record-at", "--round-size"},
      "is of programs on GPUs, and --network runs the messages of a plan", "docs/ns3.md");
  return run_network_verb(options.network, options.machine, options.program, options.json, session);
}

ExitCode run(const RunOptions& options, Session& session) {
  if (is_meant_as_trace(options.program.program, session)) {
    refuse_options_of_engines(session);
    return run_trace(options, session);
  }
  refuse_options_of_workloads(session);
  refuse_binary(options.program.program);
  if (!options.network.empty()) return run_network(options, session);
  return run_program(options, session);
}

}  // namespace

void add_run(CLI::App& app, Session& session) {
  add_verb<RunOptions>(app, session, "run", "how long a program takes on a machine, and why",
                       kRunExamples, add_options, run);
}

}  // namespace hemiola::cli
