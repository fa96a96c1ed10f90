// What laboratories run of a program that is no built-in.
#pragma once

#include "hemiola/program.h"
#include "study/experiment.h"

namespace hemiola {

/// A plan, a program, or a job, which is linked on the experiment's machine. Failure: what is wrong
/// in the job, with its line; a job without a machine, or with a size of its own given.
study::Subject subject_of(const Program::Implementation& program,
                          const study::Experiment& experiment, const study::Watch& watch);

}  // namespace hemiola
