// Which call of the host launched what the GPU did, and which operators were around the call.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/traces/kineto/events.h"

namespace hemiola::workload {

/// The operators around a call of the runtime: indices of KinetoEvents::host, the innermost of its
/// kind; -1: none.
struct KinetoSurroundings {
  std::int32_t inner = -1;        ///< operator of any kind
  std::int32_t product = -1;      ///< a matrix product that says its shapes
  std::int32_t parameters = -1;   ///< record_param_comms
  std::int32_t call = -1;         ///< "nccl:all_reduce"
  std::int32_t around_call = -1;  ///< "c10d::_allgather_base_", with what it gives and takes
};

struct KinetoLaunches {
  /// By GPU event: index of KinetoEvents::runtime; -1: the trace has no such call.
  std::vector<std::int32_t> runtime_of;
  std::vector<KinetoSurroundings> around;  ///< by call of the runtime
};

KinetoLaunches find_launches(const KinetoEvents& events);

}  // namespace hemiola::workload
