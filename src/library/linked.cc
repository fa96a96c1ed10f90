#include "library/linked.h"

#include "library/implementations.h"
#include "program/jobs/job.h"
#include "study/laboratory/job_file.h"

namespace hemiola {

void refuse_settings_of_jobs(const Job& job, const study::Experiment& experiment) {
  if (experiment.size || experiment.round_size || !experiment.parameters.empty())
    throw Failure("the launches of a job have sizes and parameters of their own",
                  {.file = job.file()}, "write it into the job");
}

study::Subject subject_of(study::Laboratory& laboratory, const Program::Implementation& program,
                          const study::Experiment& experiment, const study::Watch& watch) {
  if (program.plan != nullptr) return program.plan;
  if (program.program != nullptr) return program.program;
  const Job& job = *program.job;
  const machine::SharedMachine& machine = experiment.machine.given;
  refuse_settings_of_jobs(job, experiment);
  if (machine == nullptr)
    throw Failure("a job needs a machine", {.file = job.file()}, "its ranks are a machine's");
  return program::link(study::parse_job(job.text(), job.file(), machine, laboratory, watch),
                       machine);
}

}  // namespace hemiola
