// How an iteration is timed, as people say it: words of the command line and of the library.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workload/iteration/iteration.h"

namespace hemiola::workload {

struct IterationWords {
  std::string engine = "fluid";                 ///< "estimate", "fluid", "sampled", "line"
  std::optional<sim::Launch> launch{};          ///< nothing: usual_costs()
  std::map<std::string, std::string> detail{};  ///< engine by kind of call
  std::string collectives;                      ///< file of collective_rules.h; may be empty
  std::string compute = "automatic";            ///< "automatic", "recorded", "model", "roofline"
  std::string calls = "automatic";              ///< "automatic", "simulated", "recorded"
  std::string scale_recorded{};                 ///< "none", "model", "bytes"; empty: as it is usual
  double scale_compute = 1;                     ///< 0.001 to 1000
  std::vector<std::string> without{};           ///< kinds of calls or kernels, '*name*'
  bool contention = true;
};

/// Costs and schedule of `request`, from usual_costs(phase) on. Failure: its place is "detail" or
/// the like behind `prefix` ("--" on the command line).
void apply(const IterationWords& words, std::string_view phase, const std::string& prefix,
           IterationRequest& request);

}  // namespace hemiola::workload
