// The fastest of several programs that do the same.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "study/laboratory/experiment.h"

namespace hemiola::study {

struct Fastest {
  Outcome fastest;  ///< of equals the first
  /// How the others did, in the order in which that was found out: "all-reduce/ring 20 us,
  /// all-reduce/one-shot takes 30 us at least, all-reduce/nvls cannot: ...".
  std::string others;
};

/// Runs `candidates`, which differ in the program and have the same size, until no other one can
/// be faster than the fastest: one whose bound (sim::lower_bound()) is above its time, or, where it
/// is large, whose fluid cost is beyond the errors of that engine above its time (CostError), is
/// neither proven nor simulated. Searches of the engine fluid run all.
///
/// Failure: a program that is wrong, a wait that cannot end, an error of ours; where no candidate
/// can be run, why the first cannot. Of a single one every failure. `on_turn` is told which of them
/// (in order of turns) is looked at.
Fastest find_fastest(Laboratory& laboratory, const std::vector<Experiment>& candidates,
                     const Watch& watch = {}, const std::function<void(std::size_t)>& on_turn = {});

}  // namespace hemiola::study
