// Options that several verbs share, and the machine and programs they name.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/options/values.h"
#include "plan/plan.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"

namespace hemiola::cli {

/// Adds options whose values are texts, which the verb understands when it is carried out. The help
/// shows what they are by default.
class TextOptions {
 public:
  explicit TextOptions(CLI::App& verb) : verb_(verb) {}
  CLI::Option* operator()(const char* name, std::string& value, const char* description,
                          const char* type) const {
    return verb_.add_option(name, value, description)->type_name(type)->capture_default_str();
  }
  /// A repeatable option, each time with one value.
  void operator()(const char* name, std::vector<std::string>& values, const char* description,
                  const char* type) const {
    verb_.add_option(name, values, description)
        ->type_name(type)
        ->take_all()
        ->allow_extra_args(false);
  }

 private:
  CLI::App& verb_;
};

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

/// How a search times what it tries, as typed. Which engine does it is the search's affair.
struct SearchTimingOptions {
  std::string launch = "stream";
  std::string warmup = "1", iterations = "1";
  std::string threads = "1";
};
/// `threads`: what the help says of them.
void add_search_timing(CLI::App& verb, SearchTimingOptions& options, const char* threads);
sim::Options search_options(const SearchTimingOptions& options);

/// For verbs whose machine may be left out.
void refuse_settings_of_no_machine(const MachineOptions& options);

/// What they choose, with the given settings. Failure without --machine.
study::MachineChoice machine_choice(const MachineOptions& options, const Settings& settings = {});

struct ProgramOptions {
  std::string program;  ///< file or built-in
  std::string size;
  bool round_size = false;  ///< a size that is not legal stands for the next one that is
  std::string dtype = "float";
  std::string op = "sum";
  std::vector<std::string> parameters;
  std::string promise;   ///< a file that says what a custom program leaves
  std::string executor;  ///< of a file; "": what its format is for
};
void add_program_options(CLI::App& verb, ProgramOptions& options);
/// `--promise`, of verbs that prove what a program leaves.
void add_promise_option(CLI::App& verb, ProgramOptions& options);

/// The programs that the input names: itself, or, for a bare collective ("all-reduce"), all
/// built-ins of it. Failure for a file that is known to be something else, and for a collective
/// without built-ins.
std::vector<std::string> program_names(const std::string& input);
/// Whether it is a file that holds a job (study/laboratory/job_file.h).
bool is_job_file(const std::string& input);
/// Failure for a size, a type, an operator or parameters: a job's launches have their own.
void refuse_options_of_programs(const ProgramOptions& options, std::string_view of_what = "job");
/// The plan of a plan file; nothing for anything else.
std::optional<plan::Plan> read_plan_file(const std::string& name);
/// --param, and --executor as the parameter that it is.
Settings parameters_of(const ProgramOptions& options);
/// The experiment that they ask for with `name`, one of program_names(), but for its machine and
/// size.
study::Experiment experiment_of(const std::string& name, const ProgramOptions& options);

/// To the file, or to standard output where none is named.
void write_or_print(const std::string& file, const std::string& text);

/// Of --size; empty: it was not given.
std::vector<Bytes> requested_sizes(const ProgramOptions& options);

}  // namespace hemiola::cli
