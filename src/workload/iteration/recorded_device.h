// The GPU on which a trace was recorded, beside the one on which it is run: times of one are no
// times of the other.
#pragma once

#include <cstdint>
#include <memory>

#include "machine/machine.h"
#include "study/laboratory/experiment.h"
#include "workload/scheduler/schedule.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// What becomes of times that were recorded on another GPU.
enum class ScaleRecorded : std::uint8_t {
  automatic,  ///< as model, where ComputeSource is automatic; else an error
  none,       ///< they are taken as they are
  model,      ///< by what the models say of a kernel on both GPUs; by memory where it has no shape
  bytes       ///< by the bandwidth of the memories
};

/// The workload with times of kernels as this machine's GPUs would have them, and notices about it.
/// The same object where the trace says no device, or the machine has the same one.
///
/// Failure (bad input): recorded times are asked for, on another GPU, and nobody says how to scale
/// them; a scale by models for a device that has none.
std::shared_ptr<const Workload> on_machine(std::shared_ptr<const Workload> workload,
                                           const machine::Machine& machine, ComputeSource source,
                                           ScaleRecorded scale, study::Notices& notices);

/// Whether the machine's GPUs are of the model on which the trace was recorded.
bool is_recorded_on(const Workload& workload, const machine::Machine& machine);

}  // namespace hemiola::workload
