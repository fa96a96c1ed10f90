// Options that several verbs share, and the machine and programs they name.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "cli/values.h"
#include "machine/machine.h"
#include "plan/plan.h"
#include "program/program.h"
#include "sim/simulate.h"

namespace hemiola::cli {

struct MachineOptions {
  std::string machine;  ///< name or file; empty: none was given
  std::string gpu;
  std::string ranks;
  std::vector<std::string> set;
};
void add_machine_options(CLI::App& verb, MachineOptions& options);

/// How a program is simulated, as typed.
struct EngineOptions {
  std::string engine = "line";
  std::string launch = "stream";
  std::string warmup = "0";
  std::string iterations = "0";
  bool no_fold = false;
  bool one_host = false;
};
/// `iterations`: what the help says of them.
void add_engine_options(CLI::App& verb, EngineOptions& options, const char* iterations);
sim::Options engine_options(const EngineOptions& options, int least_iterations);

/// For verbs whose machine may be left out.
void refuse_settings_of_no_machine(const MachineOptions& options);

/// The machine with --gpu, the given settings and --ranks applied. Failure without --machine.
machine::SharedMachine load_machine(const MachineOptions& options, const Settings& settings);
/// The same; Failure for a machine on which no program can run.
machine::SharedMachine load_machine_with_gpus(const MachineOptions& options,
                                              const Settings& settings);

struct ProgramOptions {
  std::string program;  ///< file or built-in
  std::string size, sizes;
  bool round_size = false;  ///< a size that is not legal stands for the next one that is
  std::string dtype = "float";
  std::string op = "sum";
  std::vector<std::string> parameters;
};
void add_program_options(CLI::App& verb, ProgramOptions& options);

/// The programs that the input names: itself, or, for a bare collective ("all-reduce"), all
/// built-ins of it. Failure for a file that is known to be something else, and for a collective
/// without built-ins.
std::vector<std::string> program_names(const std::string& input);
/// The plan of a plan file; nothing for anything else.
std::optional<plan::Plan> read_plan_file(const std::string& name);
/// `machine`: what built-ins follow; may be null. `size`: what synthesised ones are scheduled for,
/// unless a parameter says so. Those are judged by simulation, until `stop` is set: Interrupted.
program::LoadOptions load_options(const std::string& name, const ProgramOptions& options, int ranks,
                                  machine::SharedMachine machine = nullptr,
                                  std::optional<Bytes> size = std::nullopt,
                                  const std::atomic<bool>* stop = nullptr);
program::Program load_program(const std::string& name, const ProgramOptions& options, int ranks,
                              machine::SharedMachine machine = nullptr,
                              std::optional<Bytes> size = std::nullopt,
                              const std::atomic<bool>* stop = nullptr);

/// Failure if an output cannot be written: found before a long run, not after it. Nothing is
/// created; an empty name is no output.
void check_output(const std::string& option, const std::string& file);

/// --size or --sizes; empty: neither was given.
std::vector<Bytes> requested_sizes(const ProgramOptions& options);
/// The legal size nearest above 1 MiB that the file's own range allows.
Bytes default_size(const program::Program& program, DataType type);

}  // namespace hemiola::cli
