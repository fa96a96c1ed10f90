// Workloads: what each rank of a training or inference job computes and communicates, read from
// traces or generated from a model. docs/workloads.md is the manual.
//
// A workload is not linked into one program: a scheduler above the engines takes its nodes as
// launches (scheduler/schedule.h).
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hemiola/error.h"
#include "hemiola/parts/gemm_shape.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola::workload {

/// What a kernel does, on one GPU. Kinds that have no shape are known by their bytes and flop.
struct Compute {
  enum class Kind : std::uint8_t {
    product,    ///< a matrix product: `product`
    attention,  ///< of a head dimension at a time, without a matrix of scores in memory
    other       ///< bytes and flop
  };
  Kind kind = Kind::other;
  machine::GemmShape product{};
  /// Of attention: `batch` x `heads` times `queries` x `keys` x `head_dim`; backward does 2.5 times
  /// the flop.
  std::int64_t batch = 1, heads = 0, kv_heads = 0, queries = 0, keys = 0, head_dim = 0;
  bool causal = false, backward = false;
  DataType type = DataType::bfloat16;
  /// Of all kinds. 0: not known.
  std::int64_t flop = 0;
  std::int64_t read = 0, written = 0;  ///< bytes
  /// Bytes are concluded from the arguments of an operator, and shared out among its kernels: where
  /// a time was recorded, that goes before them (ComputeSource::automatic).
  bool concluded = false;

  auto operator<=>(const Compute&) const = default;
  /// Takes no time, but for what was recorded.
  bool is_nothing() const { return kind == Kind::other && flop == 0 && read == 0 && written == 0; }
};

struct Amounts {
  std::int64_t flop = 0;
  std::int64_t bytes = 0;  ///< 0: not known, or none
};
/// What the compute says; of products and attention that do not say it, what their shape says.
/// Saturates.
Amounts amounts_of(const Compute& compute);

/// Groups of ranks that communicate with each other, e.g. all tensor-parallel groups. No rank is in
/// two of them, but for rings: there groups are pairs of neighbours, and a rank is the first of one
/// and the second of another. A group lists its ranks in the order of its communicator.
struct GroupFamily {
  std::string name;  ///< "tp", "dp"; of a trace the name of its process group
  std::vector<std::vector<int>> groups;
  /// Why a reader takes these ranks, where the trace does not name them; empty: it does.
  std::string inferred{};
};

/// A collective that each rank calls together with the others of its group in the family.
struct CollectiveCall {
  Collective kind = Collective::all_reduce;  ///< none of send_recv, custom
  std::int32_t family = 0;                   ///< of Workload::families
  std::int64_t bytes = 0;                    ///< what nccl-tests calls size; at least 1
  DataType type = DataType::bfloat16;
  /// Of Workload::computes: the product that runs in the same launch (costs/fuse.h). -1: none.
  std::int32_t product = -1;
  /// Of Workload::splits, of an all-to-all in which pairs exchange other amounts than each other:
  /// then `bytes` is the most that a rank sends. -1: all amounts are equal.
  std::int32_t splits = -1;

  auto operator<=>(const CollectiveCall&) const = default;
};

/// Bytes that each place of a group of `ranks` sends to each: place i to place j at i * ranks + j.
using Splits = std::vector<std::int64_t>;

/// From one rank to another: groups of the family are pairs. In a ring every rank sends to the next
/// one and receives from the one before; or else, if the second of each pair sends, the other way
/// round.
struct Message {
  std::int32_t family = 0;
  bool from_first = true;  ///< the first rank of each pair sends, the second receives; or else
  std::int64_t bytes = 0;  ///< at least 1
  std::int32_t tag = 0;

  auto operator<=>(const Message&) const = default;
};

enum class NodeKind : std::uint8_t {
  nothing,     ///< takes no time: metadata, joins
  host,        ///< the CPU's
  compute,     ///< a kernel
  memory,      ///< a copy between memories; `work` counts in computes (kind other)
  collective,  ///< a call; `work` counts in collectives
  send,        ///< `work` counts in messages
  receive,
  /// Communication of which only the time is known, as that of a library's own kernel: `work` is
  /// an index of Workload::names, which says what it is ("DeepEP dispatch").
  recorded_call
};
std::string_view name_of(NodeKind kind);
/// Whether it runs on the compute units, or copies between memories: its work is a Compute.
constexpr bool is_kernel(NodeKind kind) {
  return kind == NodeKind::compute || kind == NodeKind::memory;
}
/// Whether its work is a CollectiveCall or a Message.
constexpr bool is_call(NodeKind kind) {
  return kind == NodeKind::collective || kind == NodeKind::send || kind == NodeKind::receive;
}

struct Node {
  std::uint64_t id = 0;    ///< in its file, for messages
  std::uint32_t name = 0;  ///< of Workload::names
  NodeKind kind = NodeKind::nothing;
  std::uint16_t stream = 0;            ///< of Workload::streams
  std::int32_t work = -1;              ///< of computes, collectives or messages, by `kind`
  std::uint32_t first_dependency = 0;  ///< of Trace::dependencies
  std::uint32_t dependencies = 0;
  /// What the CPU needs before it hands the node to the GPU. It does so in the order of the nodes
  /// and runs ahead. 0 for all nodes: the CPU is not modelled.
  Time host{};
  Time recorded_begin{};  ///< since the start of the trace
  Time recorded{};        ///< duration in the trace; 0: not known

  bool operator==(const Node&) const = default;
};

constexpr std::uint32_t kNoNode = ~std::uint32_t{0};

/// What a rank does. Nodes are in the order in which the CPU launches them.
struct Trace {
  std::string source;  ///< file
  std::vector<Node> nodes;
  std::vector<std::uint32_t> dependencies;  ///< indices of nodes that are over before

  std::span<const std::uint32_t> dependencies_of(const Node& node) const {
    return std::span(dependencies).subspan(node.first_dependency, node.dependencies);
  }
  /// Puts the node behind the others; it waits for these. Its index.
  std::uint32_t add(Node node, std::span<const std::uint32_t> after);
};

struct Stream {
  std::string name;
  /// Nodes run in their order, one after the other, as on a CUDA stream. Otherwise one after the
  /// other, whichever is ready first.
  bool in_order = true;
};

/// Ranks that do the same, each with the ranks of its own groups.
struct RankClass {
  std::string name;  ///< "stage 0"
  std::shared_ptr<const Trace> trace;
  std::vector<int> ranks;
};

/// What is known of a model's iteration beside its nodes; all of one iteration.
struct ModelFacts {
  std::string model;            ///< "llama-70b"
  std::string phase = "train";  ///< "train", "prefill", "decode"
  std::int64_t tokens = 0;      ///< that all ranks together process, or generate
  double flop = 0;              ///< of the model: without what is computed twice, all ranks
  DataType type = DataType::bfloat16;
  /// By class, in the order of Workload::classes: what lies in each GPU's memory, by name.
  std::vector<std::map<std::string, std::int64_t>> memory;
};

/// What became of the operators of PyTorch execution traces, of all files.
struct OperatorCounts {
  std::int64_t kernels = 0;  ///< have kernels of their own
  std::int64_t aliases = 0;  ///< look at a tensor in another way, or allocate one
  std::int64_t covered = 0;  ///< what they call has the kernels
  std::int64_t calls = 0;    ///< communicate
  std::int64_t host = 0;     ///< give nothing on the GPU
  void add(const OperatorCounts& other) {
    kernels += other.kernels;
    aliases += other.aliases;
    covered += other.covered;
    calls += other.calls;
    host += other.host;
  }
};

/// The GPU on which a trace was recorded, as its file says.
struct RecordedDevice {
  std::string name;                ///< "NVIDIA A100-SXM4-80GB"
  std::int64_t compute_units = 0;  ///< 0: not said
  std::int64_t memory = 0;         ///< bytes; 0: not said
  bool operator==(const RecordedDevice&) const = default;
};

struct Workload {
  std::string name;
  std::string source;  ///< file or folder; empty: generated
  int ranks = 0;
  std::vector<std::string> names;
  std::vector<Stream> streams;
  std::vector<GroupFamily> families;
  std::vector<Compute> computes;
  std::vector<CollectiveCall> collectives;
  std::vector<Message> messages;
  std::vector<Splits> splits{};
  std::vector<RankClass> classes;  ///< every rank is in one of them
  std::optional<ModelFacts> facts{};
  std::optional<OperatorCounts> operators{};
  std::optional<RecordedDevice> recorded_on{};
  std::vector<Diagnostic> notices{};  ///< what a reader left out or took for granted

  std::int64_t nodes() const;  ///< of all ranks
};

/// What a collective, a send or a receive has in common.
struct Call {
  Collective kind = Collective::send_recv;  ///< of messages send_recv; of recorded calls custom
  std::int32_t family = 0;                  ///< of a recorded call its `work`
  std::int64_t bytes = 0;                   ///< of a recorded call 0
};
/// `kind` is_call() or recorded_call, and `work` counts as in Node.
Call call_of(const Workload& workload, NodeKind kind, std::int32_t work);

/// Whether it is an all-to-all of unequal amounts.
bool is_uneven(const Workload& workload, NodeKind kind, std::int32_t work);

/// Whether it is a collective with a product in the same launch.
bool has_product(const Workload& workload, NodeKind kind, std::int32_t work);

/// Whether ranks are in two pairs of the family: the first of one, the second of another.
bool is_ring(const GroupFamily& family);

/// first, first + 1, ...
std::vector<int> ranks_from(int first, int count);
/// Ranks 0 to `ranks` - 1 in groups of `size`, `stride` apart. `size` x `stride` divides `ranks`.
std::vector<std::vector<int>> strided_groups(int ranks, int size, int stride);
/// Of ranks in blocks of `size`, as stages of a pipeline are: those at the same place of two
/// blocks.
std::vector<std::vector<int>> pairs_of_blocks(int size, int first, int second);

/// By rank, the index of its class.
std::vector<std::int32_t> classes_of_ranks(const Workload& workload);

/// Adds to a workload what it has once: equal works and names get the same index.
class WorkloadBuilder {
 public:
  explicit WorkloadBuilder(std::string name, int ranks);
  ~WorkloadBuilder();

  std::uint32_t name(std::string_view text);
  std::uint16_t stream(std::string_view name, bool in_order = true);
  /// Families with the same groups are one, whatever they are called.
  std::int32_t family(std::string_view name, std::vector<std::vector<int>> groups);
  std::int32_t compute(const Compute& compute);
  std::int32_t collective(const CollectiveCall& call);
  std::int32_t message(const Message& message);
  std::int32_t splits(Splits splits);
  Workload& workload();

  /// Failure as check().
  Workload take();

 private:
  struct Known;
  std::unique_ptr<Known> known_;
};

/// Failure for what no scheduler can run: indices out of range, ranks in no class or two, groups
/// with ranks that are not there, a rank in two groups of a collective, a node that depends on
/// itself, members of a class without a group
/// or on the wrong side of a message.
void check(const Workload& workload);

}  // namespace hemiola::workload
