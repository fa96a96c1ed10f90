// Figures of microbenchmarks: rows of data/measured/calibrate/micro.csv, each beside a program that
// measures the same on a machine.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "study/laboratory/experiment.h"
#include "study/tables/suite.h"

namespace hemiola::study {

/// A row of the table.
struct MicroRow {
  std::string hardware, metric, unit, source;
  double value = 0;  ///< greater than zero
  int line = 0;
};

struct MicroResult {
  std::string name, program;  ///< the program with its parameters, as typed
  std::string machine;
  MicroRow measured;
  double simulated = 0;  ///< in the unit of the row
  double error = 0;      ///< simulated / measured - 1
  std::string checked;   ///< "full", "partial" or "skipped"
};

/// The rows of the shipped table. Failure with line: a missing column, a value that is no number.
std::vector<MicroRow> micro_rows();
/// The one that an entry names. Failure: none, or several.
MicroRow row_of(const MicroEntry& entry, const std::vector<MicroRow>& rows);

/// Runs entries of the suite (docs/fidelity.md, microbenchmarks).
class MicroRunner {
 public:
  /// `set`: parameters of all machines that are not as they are shipped. `doing` is told what
  /// begins.
  MicroRunner(Laboratory& laboratory, bool check, Settings set,
              std::function<void(const std::string&)> doing)
      : laboratory_(laboratory), check_(check), set_(std::move(set)), doing_(std::move(doing)) {}

  /// Failure with the entry's place, and exit codes 3 and 4 for a program that is wrong. Where
  /// `doing` throws Interrupted, those that are done are returned.
  std::vector<MicroResult> run(const Suite& suite, const std::vector<std::string>& names);

 private:
  MicroResult run(const MicroEntry& entry, const MicroRow& row);
  Time time_of(const MicroEntry& entry, const Settings& parameters, Bytes size,
               std::string& checked);

  Laboratory& laboratory_;
  bool check_;
  Settings set_;
  std::function<void(const std::string&)> doing_;
  std::map<std::string, std::pair<Time, std::string>> known_;  ///< by all that the time depends on
};

}  // namespace hemiola::study
