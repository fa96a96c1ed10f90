// Options that several verbs share, and the machine and programs they name.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/cli.h"
#include "cli/options/values.h"
#include "plan/plan.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"

namespace hemiola::cli {

/// Adds options to a verb. Texts stay as they are typed until the verb is carried out; of numbers
/// and names the values are made where the line is read, with a Failure whose place is the option.
/// The help shows what they are by default.
class AddOptions {
 public:
  explicit AddOptions(CLI::App& verb) : verb_(verb) {}
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

  /// What `read` makes of the text; the help shows `by_default`.
  void read(const char* name, std::string by_default,
            const std::function<void(const std::string& text)>& read, const char* description,
            const char* type) const {
    verb_.add_option_function(name, read, description)
        ->type_name(type)
        ->default_str(std::move(by_default));
  }
  /// From `least` to `most`. Where `value` is optional: nothing by default.
  template <typename Value>
  void count(const char* name, Value& value, std::int64_t least, std::int64_t most,
             const char* description, const char* type = "N") const {
    constexpr bool kIsOptional = requires {
      value.has_value();
    };
    std::string by_default;
    if constexpr (!kIsOptional) by_default = std::to_string(value);
    read(
        name, by_default,
        [=, &value](const std::string& text) {
          value = static_cast<Value>(count_value(name, text, least, most));
        },
        description, type);
  }
  /// --launch.
  void launch(sim::Launch& value, const char* description) const {
    read(
        "--launch", std::string(name_of(value)),
        [&value](const std::string& text) { value = launch_value(text); }, description, "MODE");
  }
  /// --dtype, by default `name`.
  void data_type(DataType& value, const char* name, const char* description) const {
    value = data_type_value(name);
    read(
        "--dtype", name, [&value](const std::string& text) { value = data_type_value(text); },
        description, "TYPE");
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

/// How a program is simulated.
struct EngineOptions {
  std::string engine = "line";  ///< as typed: a verb may have others than programs do
  sim::Options how{};           ///< all but the engine
};
/// `iterations`: what the help says of them; they are `least_iterations` at least.
void add_engine_options(CLI::App& verb, EngineOptions& options, int least_iterations,
                        const char* iterations);
sim::Options engine_options(const EngineOptions& options);

/// How a search times what it tries: launch, warmup, iterations and threads of `options`. Which
/// engine does it is the search's affair. `threads`: what the help says of them.
void add_search_timing(CLI::App& verb, sim::Options& options, const char* threads);
/// One cold run has no warm-up.
sim::Options search_options(sim::Options options);

/// What they choose, with the given settings. Failure without --machine.
study::MachineChoice machine_choice(const MachineOptions& options, const Settings& settings = {});

struct ProgramOptions {
  std::string program;  ///< file or built-in
  std::string size;
  bool round_size = false;  ///< a size that is not legal stands for the next one that is
  DataType dtype = DataType::float32;
  ReduceOp op = ReduceOp::sum;
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
std::vector<std::string> program_names(const std::string& input, const Session& session);
/// Whether it is a file that holds a job (study/laboratory/job_file.h).
bool is_job_file(const std::string& input, const Session& session);
/// Failure for a size, a type, an operator or parameters: a job's launches have their own.
void refuse_options_of_programs(const Session& session, std::string_view of_what = "job");
/// The plan of a plan file; nothing for anything else.
std::optional<plan::Plan> read_plan_file(const std::string& name, const Session& session);
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
