// One iteration of a workload on a machine: the whole of `hemiola run TRACE`.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "study/evidence/evidence.h"
#include "study/laboratory/experiment.h"
#include "workload/costs/simulated_costs.h"
#include "workload/iteration/link_shares.h"
#include "workload/iteration/recorded_device.h"
#include "workload/scheduler/leave_out.h"
#include "workload/scheduler/schedule.h"
#include "workload/workload.h"

namespace hemiola::workload {

struct IterationRequest {
  std::shared_ptr<const Workload> workload;
  study::MachineChoice machine{};  ///< as many ranks as the workload has
  CostOptions costs{};
  ScheduleOptions schedule{};
  LeftOut without{};  ///< kernels, copies, the CPU; calls are the schedule's
  ScaleRecorded scale_recorded = ScaleRecorded::automatic;
  /// As ScheduleOptions::calls_recorded; nothing: where kernels are as recorded, and the machine
  /// has the GPUs on which they were.
  std::optional<bool> calls_recorded{};
};

/// How much of the kernels' time, of ranks in the mean, is known from where.
struct ComputeSources {
  Time products{};           ///< the models of products and attention
  Time roofline{};           ///< bytes and flop
  Time recorded{};           ///< of the trace
  std::int64_t unknown = 0;  ///< kernels, of all ranks, of which nothing is known: no time
  /// Of these, and of all kernels of the trace: what was recorded, and is not used.
  Time unknown_recorded{}, all_recorded{};
};

/// A distinct collective or message: how often each rank calls it, and what it takes.
struct CallRow {
  NodeKind kind = NodeKind::collective;
  std::int32_t work = -1;
  std::int64_t calls = 0;  ///< of all groups
  int group = 0;           ///< ranks
  int groups = 0;
  Time alone{};
  Time recorded{};  ///< the shortest in the trace, which waited least for its peers; 0: not known
};

/// Nodes of one name on the critical path.
struct PathName {
  std::string name;
  std::int64_t nodes = 0;
  Time time{};  ///< of all of them
};

struct IterationOutcome {
  std::shared_ptr<const Workload> workload;
  machine::SharedMachine machine;
  ScheduleResult result;
  ComputeSources sources;
  std::vector<CallRow> calls;  ///< the longest in all first
  std::vector<PathStep> path;  ///< critical
  std::vector<LinkShares> links;
  Time recorded{};  ///< of the trace: from its first node to its last; 0: not known
  sim::Launch launch = sim::Launch::stream;
  bool calls_recorded = false;  ///< ScheduleOptions::calls_recorded
  std::int64_t simulations = 0;
  study::Notices notices{};

  /// How much of the critical path nodes of one name take, the most first.
  std::vector<PathName> path_by_name() const;

  // Of ModelFacts; 0 where there are none.
  double tokens_per_second_and_gpu() const;
  /// Model flop per second over what the matrix units can do in the model's type.
  double model_flop_utilisation() const;
  /// What evidence knows an iteration of training by. Nothing: the model is not known, or this is
  /// inference, of which no iteration was measured.
  std::optional<study::Likeness> likeness() const;
};

/// As frameworks run a phase (ModelFacts; "": not known): of inference, all-reduces inside a node
/// are their own kernels and not the library's (`auto/custom-allreduce`), and a decode step is one
/// CUDA graph.
CostOptions usual_costs(std::string_view phase);

/// Failure: ranks that the machine does not have, or more of them than the workload has and none
/// chosen; what on_machine(), schedule() and the costs refuse; a group that a reader has inferred
/// and that a recorded time refutes. Interrupted.
IterationOutcome run_iteration(study::Laboratory& laboratory, const IterationRequest& request);

}  // namespace hemiola::workload
