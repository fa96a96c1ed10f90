// Which parallelism is the fastest: all that fit into memory, each run as an iteration.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "study/laboratory/experiment.h"
#include "study/support/parts.h"
#include "workload/iteration/iteration.h"
#include "workload/models/generate.h"

namespace hemiola::workload {

struct SearchRequest {
  MakeRequest make;  ///< its parallelism is what is searched; everything else holds for all
  study::MachineChoice machine{};
  CostOptions costs{};
  ScheduleOptions schedule{};
  LeftOut without{};
  std::int64_t memory = 0;  ///< bytes of a GPU; 0: hbm.size of its device model
  /// Where iterations are shared out among processes, all of which come to the same result; null:
  /// they are not.
  study::Parts* parts = nullptr;
};

struct SearchRow {
  Parallelism parallelism{};
  std::int64_t memory = 0;  ///< bytes of the fullest GPU
  Time time{};
  double tokens_per_second_and_gpu = 0;
  double model_flop_utilisation = 0;
  std::string refused{};  ///< why it was not run; empty: it was
};

struct SearchOutcome {
  std::string model, machine;
  int ranks = 0;
  std::int64_t memory = 0;  ///< of a GPU, that had to do
  std::vector<SearchRow>
      rows;  ///< those that ran, the most tokens per second first; then the others
};

/// `watch` is told what begins, and which share is done. Failure: none fits; what the machine and
/// the model refuse. Interrupted.
SearchOutcome search(study::Laboratory& laboratory, const SearchRequest& request,
                     const std::function<void(const std::string&, double)>& watch = {});

}  // namespace hemiola::workload
