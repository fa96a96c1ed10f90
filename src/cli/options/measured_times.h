// --measured: times that the user measured, and the machine made to meet them. --bench: the program
// that measures them.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "core/data_type.h"
#include "explore/trials/measured_times.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"

namespace hemiola::cli {

struct MetTimes {
  explore::MeasuredTimes own;
  std::vector<std::string> remarks;  ///< how the machine was made to meet them
};
/// Sets of `machine` what meets the products and collectives in the file; of schedules alone
/// nothing. Failure as explore::read_measured_times() and fit_machine().
MetTimes meet_measured(Session& session, const std::string& file, DataType type,
                       study::MachineChoice& machine, const sim::Options& options);

/// Writes the program that times what is in the folder, and `schedules`, the list of it.
void write_bench_program(const std::string& folder, const std::string& schedules);

}  // namespace hemiola::cli
