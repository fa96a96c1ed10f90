// Communications as PyTorch's traces describe them: the arguments of `record_param_comms` and of
// NCCL's kernels (pytorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp and
// torch/csrc/profiler/util.cpp, saveNcclMeta).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "workload/traces/assembly.h"
#include "workload/traces/groups.h"
#include "workload/traces/sizes.h"

namespace hemiola::workload {

enum class TorchCallKind : std::uint8_t {
  none,  ///< "wait", "init": no communication
  all_reduce,
  all_gather,
  reduce_scatter,
  all_to_all,
  broadcast,
  reduce,
  barrier,
  gather,
  scatter,
  send,
  receive,
  unknown
};
/// Of "allreduce", "nccl:_all_gather_base", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)".
TorchCallKind torch_call_kind(std::string_view name);
Collective collective_of(TorchCallKind kind);
/// Sets the kind of a call that is known by `name`. A barrier sums up one number, as PyTorch does
/// it. Failure, if not `lenient`: a gather or a scatter, which are taken as what moves as much at
/// the root then.
void set_kind(CollectiveCall& call, TorchCallKind kind, std::string_view name, bool lenient,
              Tally& tally, const NodeOfFile& at);

/// Whether it is one of NCCL, RCCL or MSCCL.
bool is_communication_kernel(std::string_view name);

/// What a trace says of a call by name. Texts refer to the file's content.
struct CallArguments {
  std::string_view collective, type, group;
  std::optional<std::int64_t> sent, received, group_size, first, stride;
};

struct TorchCall {
  void take(const CallArguments& said);

  std::string name;                                   ///< what the kind is told by
  std::optional<std::int64_t> sent, received;         ///< elements, of this rank
  bool says_counts = false;                           ///< these are said, and not of its tensors
  std::string type;                                   ///< of an element: "Float"
  std::string group;                                  ///< its name
  std::vector<int> ranks;                             ///< of the group; empty: not said
  std::int64_t size = 0;                              ///< of the group; 0: not said
  std::int64_t first = -1, stride = -1;               ///< of the group's ranks; -1: not said
  std::optional<std::int64_t> source, destination{};  ///< of a message
  std::vector<std::int64_t> sent_splits{};  ///< of an uneven all-to-all, by rank; or empty
  bool splits_are_cut = false;              ///< they are said, and cannot be read
  /// What it receives, by rank; empty: as much from each. Nothing: it does not say.
  std::optional<std::vector<std::int64_t>> received_splits{};
};
/// "[0, 1]" to `ranks`. Long lists are cut ("[0, 1, ..., 63]"): these are left empty.
std::vector<int> parse_rank_list(std::string_view text);
/// "[4096, 1024]"; of lists that are cut nothing.
std::vector<std::int64_t> parse_splits(std::string_view text);

/// Makes communications of a file's calls.
class TorchCalls {
 public:
  /// `sizes` may be empty.
  TorchCalls(TraceAssembly& assembly, ProcessGroups& groups, const CallSizes& sizes, Tally& tally);

  /// Kind and work of the node. Of a call without a size (lenient), or that moves nothing
  /// (lenient): a kernel that takes the time that was recorded. Failure: a kind that is not known,
  /// a group without ranks.
  void set(Node& node, const TorchCall& call, const NodeOfFile& at);

  /// Failure if calls were without a size: says how many, and the first.
  void finish() const;
  std::int64_t communications() const { return count_; }

 private:
  void define_group(const TorchCall& call, const NodeOfFile& at);
  std::optional<std::int64_t> bytes_of(const TorchCall& call, TorchCallKind kind, int ranks) const;
  void set_collective(Node& node, const TorchCall& call, TorchCallKind kind, const NodeOfFile& at);
  void set_message(Node& node, const TorchCall& call, bool is_send, const NodeOfFile& at);
  static void check_shares(const TorchCall& call, TorchCallKind kind, std::int64_t ranks,
                           const NodeOfFile& at);
  void set_splits(CollectiveCall& collective, const TorchCall& call, int ranks,
                  const NodeOfFile& at);
  void note_parts(const TorchCall& call, int ranks, const NodeOfFile& at);
  /// The size, or nothing: then the node keeps its time.
  std::optional<std::int64_t> size_of_call(Node& node, const TorchCall& call, TorchCallKind kind,
                                           int ranks, const NodeOfFile& at);

  TraceAssembly& assembly_;
  ProcessGroups& groups_;
  const CallSizes& sizes_;
  Tally& tally_;
  std::int64_t count_ = 0;
  std::int64_t without_size_ = 0;
  std::string first_without_size_;  ///< "node 8 'nccl:all_reduce' at 12 us"
  std::string file_;
};

}  // namespace hemiola::workload
