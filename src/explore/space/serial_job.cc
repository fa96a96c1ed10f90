#include "explore/space/serial_job.h"

#include <fmt/format.h>

namespace hemiola::explore {
namespace {

// Lines of a job file, one for each launch.
std::string collective_launch(Collective collective, Bytes size) {
  return fmt::format(
      "  - {{name: collective, run: auto/nccl, param: {{collective: {}}}, size: {}B}}\n",
      name_of(collective), size.count);
}

std::string product_launch(const machine::GemmShape& shape) {
  return fmt::format("  - {{name: product, product: {{m: {}, n: {}, k: {}}}}}\n", shape.m, shape.n,
                     shape.k);
}

/// A job of such lines, one after the other on one stream.
std::string job_of(std::string_view name, DataType type, const std::string& launches) {
  return fmt::format("name: {}\ndtype: {}\nlaunches:\n{}", name, name_of(type), launches);
}

}  // namespace

std::string collective_job(Collective collective, Bytes size, DataType type) {
  return job_of("collective", type, collective_launch(collective, size));
}

std::string product_job(const machine::GemmShape& shape) {
  return job_of("product", shape.type, product_launch(shape));
}

std::string serial_job(const Operator& op) {
  const std::string collective = collective_launch(collective_of(op.kind), collective_size(op));
  const std::string product = product_launch(local_product(op));
  return job_of("serial", op.type,
                communicates_first(op.kind) ? collective + product : product + collective);
}

}  // namespace hemiola::explore
