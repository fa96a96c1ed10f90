// What the communication kernels of a Kineto trace do, as far as it says: arguments of the kernel
// or of record_param_comms; in older traces the shapes of the operators around the launch.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/traces/kineto/communicators.h"
#include "workload/traces/kineto/events.h"
#include "workload/traces/kineto/launches.h"
#include "workload/traces/pytorch_calls.h"

namespace hemiola::workload {

struct KinetoCall {
  /// One; of a kernel that sends and receives, each message that was recorded around its launch.
  std::vector<TorchCall> calls;
  bool is_named = false;  ///< the trace says the process group, or the peer of each message
  bool is_told = true;    ///< something but the kernel's name tells what it does
};

class KinetoCalls {
 public:
  /// Both outlive this.
  KinetoCalls(const KinetoEvents& events, const KinetoLaunches& launches);

  /// By GPU event: whether it is a kernel of NCCL, RCCL or MSCCL.
  const std::vector<bool>& communicates() const { return communicates_; }
  KinetoCall call(std::int32_t gpu_event) const;

  /// For infer_groups(), as the rank of the trace sees them.
  CommunicatorsOfRank communicators(int rank, int world) const;

 private:
  const HostEvent& host(std::int32_t index) const {
    return events_.host[static_cast<std::size_t>(index)];
  }
  const KinetoArguments* arguments_of(std::int32_t host_event) const;
  const KinetoArguments* said_of(std::int32_t gpu_event) const;
  TorchCall call_by_shapes(const HostEvent& call, std::int32_t around) const;
  std::vector<TorchCall> messages_around(std::int32_t runtime) const;

  const KinetoEvents& events_;
  const KinetoLaunches& launches_;
  std::vector<bool> communicates_;
  /// By thread: host events of messages, and launches of communication kernels, by their begins.
  std::vector<std::vector<std::int32_t>> messages_;
  std::vector<std::vector<std::int64_t>> launched_;
};

}  // namespace hemiola::workload
