// The fastest of several programs that do the same, and a size that all of them take.
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
  /// "1 MiB: all-reduce/ring 20 us is the fastest of 3; ...", with those others.
  std::string remark(std::size_t candidates) const;
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

/// Loads one of several programs for a look at it: at a size that it may round.
using LoadProgram = std::function<SharedProgram(const std::string& name, Bytes size)>;

/// What stands for a size that not all programs take: the next larger one that they do, or the next
/// smaller one (the smallest of all where there is none), as in nccl-tests.
enum class Rounding : std::uint8_t { none, up, down };

struct CommonSize {
  Bytes size{};
  std::string by;  ///< the program that asked for another one last; empty: none did
};

/// Of both: programs that cannot be loaded (bad input) are left out. Failure where none of them can
/// be: that of the first.
/// The largest of their default sizes.
Bytes default_size_of_all(const std::vector<std::string>& names, DataType type,
                          const LoadProgram& load);
/// The nearest size to `at.size` that all of them take.
CommonSize rounded_for_all(const std::vector<std::string>& names, Rounding way,
                           program::BindOptions at, const LoadProgram& load);

}  // namespace hemiola::study
