#include "library/linked.h"

#include "library/implementations.h"
#include "program/job.h"
#include "study/job_file.h"

namespace hemiola {

study::Subject subject_of(const Program::Implementation& program,
                          const study::Experiment& experiment, const study::Watch& watch) {
  if (program.plan != nullptr) return program.plan;
  if (program.program != nullptr) return program.program;
  const Job& job = *program.job;
  const machine::SharedMachine& machine = experiment.machine.given;
  if (machine == nullptr)
    throw Failure("a job needs a machine", {.file = job.file()}, "its ranks are a machine's");
  if (experiment.size || !experiment.parameters.empty())
    throw Failure("the launches of a job have sizes and parameters of their own",
                  {.file = job.file()}, "write it into the job");
  const std::atomic<bool>* stop = watch.monitor != nullptr ? watch.monitor->stop : nullptr;
  return program::link(study::parse_job(job.text(), job.file(), machine, stop), machine);
}

}  // namespace hemiola
