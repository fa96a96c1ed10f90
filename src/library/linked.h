// What laboratories run of a program that is no built-in.
#pragma once

#include "hemiola/program.h"
#include "study/laboratory/experiment.h"

namespace hemiola {

/// A plan, a program, or a job, which is linked on the experiment's machine. Failure: what is wrong
/// in the job, with its line; a job without a machine, or with a size of its own given.
study::Subject subject_of(study::Laboratory& laboratory, const Program::Implementation& program,
                          const study::Experiment& experiment, const study::Watch& watch);

/// Failure for a size or parameters beside a job.
void refuse_settings_of_jobs(const Job& job, const study::Experiment& experiment);

}  // namespace hemiola
