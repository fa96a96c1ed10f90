#include "sim/fluid/fluid.h"

#include <optional>
#include <string>
#include <utility>

#include "sim/fluid/agents.h"
#include "sim/fluid/count.h"
#include "sim/fluid/not_modelled.h"

namespace hemiola::sim {

Result run_fluid(const machine::Machine& machine, const program::Bound& program,
                 const Options& options) {
  if (const std::string name = not_modelled_by_fluid(machine); !name.empty())
    throw Failure("not modelled by the engine fluid: " + name, {.file = "--engine"},
                  "--engine line has it; or leave the parameter as it was");
  const auto run = [&](AlikeBy by) { return fluid::Agents(machine, program, options, by).run(); };
  std::optional<Result> result = run(options.fold ? AlikeBy::time : AlikeBy::nothing);
  if (!result) result = run(AlikeBy::nothing);  // what waits, and for whom, is said of all ranks
  if (!options.counts) return *std::move(result);
  Carried carried = count_requests(machine, program, options);
  result->links = std::move(carried.links);
  result->counters = std::move(carried.counters);
  result->line_hops = carried.hops;
  return *std::move(result);
}

}  // namespace hemiola::sim
