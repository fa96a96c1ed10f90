// A collective without an algorithm: its built-ins, of which the fastest is taken.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hemiola/experiment.h"
#include "study/laboratory/experiment.h"

namespace hemiola {

/// The smallest size from the experiment's on that all of its built-ins take which the machine
/// takes (with round_size), or its size; without one the largest of their default sizes. Failure
/// where none of several can be made: that of the first.
Bytes size_for_all(study::Laboratory& laboratory, const study::Experiment& experiment,
                   const std::vector<std::string>& names, const study::Watch& watch);

/// Runs `run` for each name and keeps the fastest outcome, with a note on how the others did. A
/// built-in that does not fit machine or size is passed over; a wrong one is not (Failure).
Outcome fastest(const std::vector<std::string>& names, Bytes size,
                const std::function<Outcome(const std::string&)>& run);

}  // namespace hemiola
