// Costs of launches by simulation: each distinct launch and each distinct situation once, as a job
// (program/jobs/job.h) of some ranks that stand for all.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/monitor.h"
#include "machine/machine.h"
#include "program/jobs/job.h"
#include "study/laboratory/experiment.h"
#include "study/support/parts.h"
#include "workload/costs/traffic.h"
#include "workload/scheduler/costs.h"
#include "workload/scheduler/places.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// How exactly something is timed.
enum class Level : std::uint8_t { estimate, fluid, sampled, line };
std::string_view name_of(Level level);

/// The program that a collective runs, from so many bytes on, in groups of so many ranks. Or that
/// it runs together with a product (fuse.h): `ag-gemm`, `gemm-rs`, `gemm-ar`, or a plan of one.
struct CollectiveRule {
  Collective kind = Collective::all_reduce;
  int ranks = 0;           ///< 0: any
  std::int64_t least = 0;  ///< bytes
  std::string program;     ///< "all-reduce/ring", or a file
  study::Settings parameters{};
  bool is_fused = false;  ///< with a product
  /// Of these m, n, k alone, as `explore --gemm` counts them. None: of any.
  std::optional<machine::GemmShape> product{};
};

struct CostOptions {
  Level level = Level::fluid;
  std::map<Collective, Level> detail{};  ///< of collectives that are timed otherwise
  /// The last one that fits is taken; none: what the library chooses (`auto/nccl`).
  std::vector<CollectiveRule> rules{};
  sim::Launch launch = sim::Launch::stream;
  bool roofline = false;  ///< kernels by their bytes and flop alone, not by their shapes
  /// Launches that are under way together have the speeds that they have alone.
  bool contention = true;
  const Monitor* monitor = nullptr;
  /// Where simulations are shared out among processes, all of which come to the same costs; null:
  /// they are not. Its head says all that simulations depend on but the launches themselves.
  study::Parts* parts = nullptr;
  /// Told what is simulated next: "product 8192x4096x1024 beside all-reduce of 64 MiB".
  std::function<void(const std::string&)> on_simulation{};
};

class SimulatedCosts : public Costs {
 public:
  /// Calls `pass`, which asks for costs, until all that it asks for is known. What is not known in
  /// a pass is guessed, noted down, and simulated behind it: each distinct launch alone behind the
  /// first pass, situations behind the next ones. Few passes are enough, since what meets what
  /// hardly depends on how fast it is then. All processes of `parts` make the same passes.
  virtual void in_passes(const std::function<void()>& pass) = 0;

  /// As counted in the simulation that timed it: a mean over its ranks, headers and control packets
  /// among it, in the order of links. Empty where a launch was not simulated (Level::estimate), or
  /// uses no link.
  virtual const std::vector<Traffic>& traffic(const LaunchKind& kind) = 0;

  /// How many simulations the costs of the last pass are made of, of launches alone and of
  /// situations.
  virtual std::int64_t simulations() const = 0;
};

/// What is given by reference outlives the costs. Places of kinds count in `places`.
std::unique_ptr<SimulatedCosts> simulated_costs(const Workload& workload, const Places& places,
                                                machine::SharedMachine machine,
                                                study::Laboratory& laboratory,
                                                CostOptions options = {});

}  // namespace hemiola::workload
