// Jobs, run: all launches together, and each alone, so that a launch that the others slow down says
// so.
#pragma once

#include <optional>
#include <string>

#include "study/laboratory/experiment.h"

namespace hemiola::study {

struct JobRequest {
  MachineChoice machine;
  std::string file;
  std::optional<std::string> text{};  ///< of the job; none: it is read from the file
  bool check = true;
  /// Distinct launches are run alone as well (LaunchResult::alone), where there are no more than
  /// kMostAlone of them.
  bool alone = true;
  sim::Options options{};
};
constexpr std::size_t kMostAlone = 16;

/// Failure as read_job(), program::link(), sim::simulate(); WrongProgram. Interrupted.
Outcome run_job(Laboratory& laboratory, const JobRequest& request, const Watch& watch = {});

}  // namespace hemiola::study
