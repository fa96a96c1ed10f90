// Several experiments at a time, in threads.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "hemiola/experiment.h"

namespace hemiola {

using RunOne = std::function<Outcome(const Experiment&, const Watch&)>;

/// Laboratory::run_all() with `run`, which several threads call.
std::vector<Point> run_points(std::span<const Experiment> experiments, int threads,
                              const Watch& watch, const RunOne& run);

}  // namespace hemiola
