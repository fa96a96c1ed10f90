#include "explore/space/serial_job.h"

#include <fmt/format.h>

#include "explore/space/schedule.h"
#include "study/laboratory/job_run.h"

namespace hemiola::explore {

std::string collective_launch(std::string_view name, Collective collective, Bytes size) {
  return fmt::format("  - {{name: {}, run: auto/nccl, param: {{collective: {}}}, size: {}B}}\n",
                     name, name_of(collective), size.count);
}

std::string product_launch(std::string_view name, const machine::GemmShape& shape) {
  return fmt::format("  - {{name: {}, product: {{m: {}, n: {}, k: {}}}}}\n", name, shape.m, shape.n,
                     shape.k);
}

std::string job_of(std::string_view name, DataType type, const std::string& launches) {
  return fmt::format("name: {}\ndtype: {}\nlaunches:\n{}", name, name_of(type), launches);
}

sim::Result run_text(study::Laboratory& laboratory, const machine::SharedMachine& machine,
                     const JobText& job, const sim::Options& options, sim::Engine engine,
                     const study::Watch& watch) {
  study::JobRequest request{.machine = {.given = machine},
                            .file = job.name,
                            .text = job.text,
                            .check = false,
                            .alone = job.alone,
                            .options = options};
  request.options.engine = engine;
  // As schedules are, which are programs alone. Over NICs a library's rings, whose workgroups come
  // apart, would be up to a tenth too slow: nobody is to win by that.
  request.options.fold_workgroups = ranks_of_node(*machine) == 0;
  request.options.threads = 1;
  return study::run_job(laboratory, request, watch).result;
}

std::string collective_job(Collective collective, Bytes size, DataType type) {
  return job_of("collective", type, collective_launch("collective", collective, size));
}

std::string product_job(const machine::GemmShape& shape) {
  return job_of("product", shape.type, product_launch("product", shape));
}

std::string serial_job(const Operator& op) {
  const std::string collective =
      collective_launch("collective", collective_of(op.kind), collective_size(op));
  const std::string product = product_launch("product", local_product(op));
  return job_of("serial", op.type,
                communicates_first(op.kind) ? collective + product : product + collective);
}

}  // namespace hemiola::explore
