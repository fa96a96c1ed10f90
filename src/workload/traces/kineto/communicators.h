// Which ranks the calls of an older Kineto trace are among, where it does not name their process
// groups. Nothing is assumed: a group is inferred from what the trace says, with the reason, or it
// is not known.
//
// Each of PyTorch's NCCL communicators has a stream of its own, so that the calls of a stream are
// among the same ranks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "workload/traces/groups.h"
#include "workload/traces/pytorch_calls.h"

namespace hemiola::workload {

/// A call whose group the trace does not name.
struct UnnamedCall {
  TorchCallKind kind = TorchCallKind::unknown;
  std::optional<std::int64_t> sent, received{};  ///< elements, of this rank
  std::int64_t shares = 0;          ///< amounts that it lists, one for each rank; 0: none
  std::int64_t size = 0;            ///< ranks that it says; 0: it does not
  std::int64_t begin = 0, end = 0;  ///< nanoseconds, of the kernel
};
/// The unnamed calls of a stream of one rank, in their order.
struct Communicator {
  std::int64_t stream = 0;
  std::vector<UnnamedCall> calls;
  bool is_given = false;  ///< --groups says its ranks: there is nothing to infer
};
struct CommunicatorsOfRank {
  std::string file{};
  int rank = 0;
  int world = 0;                      ///< ranks of the recorded job; 0: not said
  std::int64_t first = 0;             ///< when its first event was, nanoseconds
  std::vector<Communicator> unnamed;  ///< by stream, ascending
  std::vector<Communicator> all{};    ///< with those whose calls name their group
  bool has_named = false;             ///< other calls name their groups
  std::vector<ProcessGroup> groups;   ///< of distributedInfo
};

/// "stream 84": what --groups calls the group of a stream.
std::string group_of_stream(std::int64_t stream);

struct InferredGroups {
  /// By stream. Groups are called as the stream of the first rank, and say their reason.
  std::map<std::int64_t, ProcessGroup> known;
  /// Of the first stream of which nothing is known: why not.
  std::optional<std::string> problem;
  /// When the job began, where the ranks have one clock: their calls were under way together.
  std::optional<std::int64_t> start{};
};
/// Of each rank's streams. In this order:
///   * distributedInfo has one process group;
///   * a call says how many ranks there are, or its shares do: a gather makes eight times of what
///     it is given, so there are eight; less than all are taken to be neighbours;
///   * traces of several ranks: those whose calls agree in kind, size and order, and were under way
///     at one moment;
///   * the trace has one communicator, or it is the one with the lowest stream, which PyTorch makes
///     first, for its default group: all ranks of the job.
/// Failure (bad input): calls that contradict each other about the number of ranks.
std::vector<InferredGroups> infer_groups(const std::vector<CommunicatorsOfRank>& ranks);

}  // namespace hemiola::workload
