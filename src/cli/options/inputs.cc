#include "cli/options/inputs.h"

#include <fmt/format.h>

#include <iostream>

#include "core/lists.h"
#include "core/text.h"
#include "plan/plan_json.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/kernels/kernel.h"
#include "study/laboratory/job_file.h"

namespace hemiola::cli {
namespace {

/// Formats that a program can be read from are left to program::load, which says what is wrong
/// inside.
void reject_other_formats(const std::string& file, const Session& session) {
  const std::string content = read_file(file);
  if (program::is_readable(content, &session.registry)) return;
  const Format format = recognise(content);
  std::string hint;
  switch (format) {
    case Format::infragraph:
    case Format::nccl_topology:
    case Format::simai_topology:
      hint = "give it with --machine";
      break;
    case Format::hlo:
      hint = "'hemiola run' takes it as a workload, 'hemiola compile --dot' lifts a product of it";
      break;
    case Format::mlir:
      hint = "what XLA dumps after its optimizations is read: docs/hlo.md";
      break;
    case Format::chakra_et:
    case Format::chakra_json:
    case Format::kineto_trace:
    case Format::astra_text:
    case Format::aicb_csv:
      hint = "a whole iteration is run, not checked: 'hemiola run' takes it (docs/traces.md)";
      break;
    case Format::astra_network:
    case Format::astra_system:
      hint = "machines are given with --machine: 'switch:8 --set link.*.latency=500ns' is one";
      break;
    case Format::simai_configuration:
      hint =
          "Hemiola computes what it states; workloads and topologies of SimAI are read "
          "(docs/simai.md)";
      break;
    case Format::nccl_graph:
      hint = "it says which rings and trees NCCL chose; no program is made from it";
      break;
    default:
      return;
  }
  throw Failure("is " + std::string(describe(format)) + ", not a program",
                SourceLocation{.file = file}, hint);
}

std::string all_built_ins(const Session& session) {
  std::vector<std::string> names = program::built_in_names(&session.registry);
  for (const program::KernelInfo& info : program::kernels(&session.registry))
    names.push_back(info.name);
  return joined(names);
}

}  // namespace

void add_machine_options(CLI::App& verb, MachineOptions& options) {
  const AddOptions add(verb);
  add("-m,--machine", options.machine, "a built-in machine or a file", "NAME|FILE");
  add("--gpu", options.gpu, "device model of GPUs whose file names none", "MODEL");
  add("--ranks", options.ranks, "the first N GPUs, or a list such as 0,2,4-7", "N|LIST");
  add("--set", options.set, "any parameter: gpu.l2.size=25MiB; several values (A,B) make a table",
      "NAME=VALUE");
}

void add_engine_options(CLI::App& verb, EngineOptions& options, int least_iterations,
                        const char* iterations) {
  constexpr int kMostRepetitions = 1'000'000;
  const AddOptions add(verb);
  sim::Options& how = options.how;
  add("--engine", options.engine, "line|sampled|fluid|reference", "ENGINE");
  add.launch(how.launch, "graph|stream");
  add.count("--warmup", how.warmup, 0, kMostRepetitions, "repetitions before the measured ones");
  add.count("--iterations", how.iterations, least_iterations, kMostRepetitions, iterations);
  verb.add_flag("--one-host", how.one_host,
                "one host thread calls the library and starts copies for all ranks in turn");
  verb.add_flag_callback(
      "--no-fold", [&how] { how.fold = false; }, "simulate every rank, even if they behave alike");
}

sim::Options engine_options(const EngineOptions& options) {
  using sim::Engine;
  sim::Options how = options.how;
  how.engine = named_value("--engine", options.engine,
                           {Engine::reference, Engine::line, Engine::sampled, Engine::fluid});
  return how;
}

void add_search_timing(CLI::App& verb, sim::Options& options, const char* threads) {
  const AddOptions add(verb);
  add.launch(options.launch, "how hosts start kernels: stream or graph");
  add.count("--warmup", options.warmup, 0, 1000, "repetitions before those that are timed");
  add.count("--iterations", options.iterations, 0, 1000,
            "repetitions that are timed; 0: one cold run");
  add.count("--threads", options.threads, 1, 4096, threads);
}

sim::Options search_options(sim::Options options) {
  if (options.iterations == 0) options.warmup = 0;
  return options;
}

study::MachineChoice machine_choice(const MachineOptions& options, const Settings& settings) {
  if (options.machine.empty()) {
    throw Failure("no machine is given", SourceLocation{.file = "--machine"},
                  "for example --machine dgx-h100; 'hemiola machine list' lists them");
  }
  return {
      .name = options.machine, .gpu = options.gpu, .settings = settings, .ranks = options.ranks};
}

void add_program_options(CLI::App& verb, ProgramOptions& options) {
  const AddOptions add(verb);
  add("PROGRAM", options.program,
      "a file (MSCCL++ JSON, MSCCL XML, also .gz), a built-in (all-reduce/ring, "
      "auto/nccl), or a\n"
      "collective (all-reduce): all its built-ins",
      "");
  add("--size", options.size,
      "what nccl-tests calls size: 64MiB; 4096 is bytes; a list 1KiB,1MiB, or a range 1KiB:1GiB:x2",
      "SIZE,...");
  verb.add_flag("--round-size", options.round_size,
                "for a size that the program cannot take, the next one that it can");
  add.data_type(options.dtype, "float", "element type");
  add.read(
      "--op", "sum", [&options](const std::string& text) { options.op = reduce_op_value(text); },
      "reduction", "OP");
  add("--param", options.parameters, "parameter of a built-in: channels=8, protocol=ll",
      "NAME=VALUE");
  add("--executor", options.executor,
      "of a file: whose interpreter runs it: msccl|rccl|msccl-slice1|hemiola, of "
      "MSCCL++ mscclpp|hemiola",
      "NAME");
}

void add_promise_option(CLI::App& verb, ProgramOptions& options) {
  AddOptions{verb}("--promise", options.promise,
                   "of a custom program: what it leaves in the outputs (docs/verify.md, promises)",
                   "FILE");
}

std::vector<std::string> program_names(const std::string& input, const Session& session) {
  if (input.empty())
    throw Failure("no program is given", {},
                  "for example\n"
                  "    hemiola run all-reduce/ring --machine dgx-h100 --size 1KiB:1GiB:x2\n"
                  "    hemiola run all_reduce_perf -b 8 -e 128M -f 2 -g 8\n"
                  "    hemiola run ag-gemm/swizzle --machine dgx-h100 --param m=8192\n"
                  "    hemiola run plan.json --machine mi300x-8 --size 16MiB\n"
                  "    hemiola run trace.%d.et --machine dgx-h100 --report iteration.html\n"
                  "  'hemiola plan list' lists the built-ins");
  if (program::is_built_in(input, &session.registry)) return {input};
  if (is_there(input)) {
    reject_other_formats(input, session);
    return {input};
  }
  const std::optional<Collective> collective = parse_collective(input);
  if (!collective) return {input};  // program::load says what is wrong with it
  std::vector<std::string> names = program::algorithms_of(*collective, &session.registry);
  if (names.empty()) {
    throw Failure("there is no built-in for " + std::string(name_of(*collective)), {},
                  "the built-ins are: " + all_built_ins(session));
  }
  return names;
}

bool is_job_file(const std::string& input, const Session& session) {
  return !program::is_built_in(input, &session.registry) && is_there(input) &&
         study::is_job(read_file(input));
}

void refuse_options_of_programs(const Session& session, std::string_view of_what) {
  const bool is_job = of_what == "job";
  refuse_typed(session,
               {"--size", "--round-size", "--dtype", "--op", "--param", "--promise", "--executor"},
               fmt::format("the {} of a {} have sizes, types and parameters of their own",
                           is_job ? "launches" : "calls", of_what),
               is_job ? "write it into the job's file"
                      : "--call-sizes FILE has those that a trace does not say: docs/traces.md");
}

std::optional<plan::Plan> read_plan_file(const std::string& name, const Session& session) {
  if (plan::find_template(name, &session.registry) != nullptr || !is_file(name))
    return std::nullopt;
  const std::string content = read_file(name);
  if (!plan::is_plan(content)) return std::nullopt;
  return plan::read_plan(content, name);
}

Settings parameters_of(const ProgramOptions& options) {
  Settings parameters = parameter_values(options.parameters);
  if (!options.executor.empty())
    parameters.emplace_back(program::kExecutorParameter, options.executor);
  return parameters;
}

study::Experiment experiment_of(const std::string& name, const ProgramOptions& options) {
  return {.subject = name,
          .parameters = parameters_of(options),
          .round_size = options.round_size,
          .type = options.dtype,
          .op = options.op,
          .promise = options.promise};
}

void write_or_print(const std::string& file, const std::string& text) {
  if (file.empty())
    std::cout << text;
  else
    write_file(file, text);
}

std::vector<Bytes> requested_sizes(const ProgramOptions& options) {
  return options.size.empty() ? std::vector<Bytes>{} : size_values(options.size);
}

}  // namespace hemiola::cli
