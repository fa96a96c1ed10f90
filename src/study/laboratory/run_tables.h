// Runs as a table: sizes of one machine, or of several that settings set apart; of several programs
// the fastest at each size.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "study/laboratory/experiment.h"
#include "study/laboratory/fastest.h"

namespace hemiola::study {

/// What `hemiola run` is asked for.
struct RunRequest {
  MachineChoice machine;               ///< without settings
  std::vector<Settings> combinations;  ///< one table each; at least one, which may be empty
  std::vector<std::string> programs;   ///< built-ins or files; the fastest of several at each size
  std::string asked_for;               ///< what named them: "all-reduce"
  /// What a name of `programs` stands for on a machine; null: itself.
  std::function<Subject(const std::string& name, const machine::SharedMachine& machine)> subject{};
  Settings parameters;
  std::string promise{};     ///< as of Experiment
  std::vector<Bytes> sizes;  ///< empty: the largest default size of the programs
  Rounding rounding = Rounding::none;
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  bool check = true;
  /// Every size a second time with the parameter in_place=1, right behind the first: its settings
  /// have "in_place" "1".
  bool in_place_too = false;
  sim::Options options;
  std::vector<int> recorded;  ///< ranks that there have to be, because they will be recorded
};

/// One combination's, in order of sizes. Two sizes that are rounded to one are one.
struct RunTable {
  std::string machine;  ///< its name and what was set
  std::vector<sim::Result> results;
  std::vector<std::string> winners;    ///< by result: the name of the program
  std::vector<std::string> remarks;    ///< what was rounded; how the others did
  std::optional<program::Bound> last;  ///< what was run last
};

/// Told in the thread that runs.
struct RunWatch {
  Watch experiments;
  /// What begins now takes the whole from `begin` to `end`, 0 to 1; and how many of how many runs
  /// are done.
  std::function<void(double begin, double end)> on_part;
  std::function<void(std::int64_t done, std::int64_t all)> on_runs;
  std::function<void(const RunTable&)> on_result;  ///< the last of the table's is new
};

/// Failure as Laboratory::run(), at the first size that cannot be run; of several programs those
/// that cannot are left out as long as there is one that can. Interrupted: `tables` has what was
/// done until then.
void run_tables(Laboratory& laboratory, const RunRequest& request, const RunWatch& watch,
                std::vector<RunTable>& tables);

/// Tables as one, in which each result's settings say whose it is.
RunTable joined_tables(const RunRequest& request, const std::vector<RunTable>& tables);
/// "all-reduce/ring", or what was asked for where not all winners are the same.
std::string program_name(const RunRequest& request, const RunTable& table);

}  // namespace hemiola::study
