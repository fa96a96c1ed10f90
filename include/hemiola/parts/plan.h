// Plans: what moves between ranks and after what, in chunks, and what is computed meanwhile. A plan
// names no hardware: no workgroups, no semaphores, no protocols. Lowering (program/lower/lower.h)
// chooses those.
//
// Plans are compact: streams are shared by ranks, and peers, regions and dependencies are affine in
// (rank, loop counter), so a ring over 1,024 ranks has as many items as one over 8. Irregular plans
// give every rank a code of its own.
//
// docs/plan_files.md is the definition; docs/plan.schema.json the file format (plan/plan_json.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "hemiola/parts/affine.h"
#include "hemiola/types.h"

namespace hemiola::plan {

enum class Role : std::uint8_t {
  input,    ///< the caller's; resident on its own rank at the start
  output,   ///< the caller's; complete on every rank at the end
  scratch,  ///< the library's own memory; dead before and after
  transit   ///< chunks that are forwarded as they arrive: written once, then read once, by the next
            ///< transfer of the same stream. A transport may keep them in flight, without memory
};
std::string_view name_of(Role role);

/// A logical tensor that every rank has. In a plan *of chunks* an element is a chunk: all are
/// equally large, and how large is said when the plan is bound to a size. In a plan *of elements*
/// tensors have data types, and the plan has one size. A plan is of one kind throughout.
struct Tensor {
  std::string name;
  Role role = Role::scratch;
  std::vector<std::int64_t> shape{1};  ///< elements along each axis
  std::optional<DataType> type{};      ///< none: in chunks
  std::vector<std::int64_t>
      strides{};  ///< in elements, by axis; empty: dense, the last axis fastest

  Tensor() = default;
  /// A row of chunks.
  Tensor(std::string tensor_name, Role tensor_role, std::int64_t chunks)
      : name(std::move(tensor_name)), role(tensor_role), shape{chunks} {}
  Tensor(std::string tensor_name, Role tensor_role, std::vector<std::int64_t> tensor_shape,
         std::optional<DataType> tensor_type)
      : name(std::move(tensor_name)),
        role(tensor_role),
        shape(std::move(tensor_shape)),
        type(tensor_type) {}

  std::int64_t elements() const;
  /// By axis, the default filled in.
  std::vector<std::int64_t> layout() const;
  /// Elements of memory: one more than the offset of the last element.
  std::int64_t span() const;
  bool operator==(const Tensor&) const = default;
};

/// Elements [begin, begin + extent) of one axis.
struct Range {
  Affine begin{};
  std::int64_t extent = 1;
  bool operator==(const Range&) const = default;
};

/// A rectangle: one range for each axis of its tensor.
using Box = std::vector<Range>;

/// A union of disjoint rectangles of a tensor. Which rank's is said by the transfer. Elements have
/// an order: box after box, in each the last axis fastest. A transfer moves the i-th element of its
/// source to the i-th of its destination.
struct Region {
  std::int32_t tensor = 0;
  std::vector<Box> boxes;

  std::int64_t elements() const;
  /// Whether it is one range of a tensor of one axis; then first() and count() say which.
  bool is_row() const { return boxes.size() == 1 && boxes.front().size() == 1; }
  const Affine& first() const { return boxes.front().front().begin; }
  Affine& first() { return boxes.front().front().begin; }
  std::int64_t count() const { return boxes.front().front().extent; }
  bool operator==(const Region&) const = default;
};

/// "Transfer number `transfer` of stream `stream` of rank `rank` is complete where it wrote."
/// Transfers of a stream are numbered from 0 in the order of its execution, loops unrolled.
/// With `computed`: "all tiles of `rank` that write any of this region are done", and where these
/// belong to a compute that waits as a launch, all of that launch. With `compute`: "all of compute
/// number `compute` of `rank` is done". Stream and transfer mean nothing in these two.
struct Dependency {
  Affine rank{};
  std::int32_t stream = 0;
  Affine transfer{};
  std::optional<Region> computed{};
  std::optional<Affine> compute{};  ///< numbered from 0 in the code of that rank
  /// Whether it is on a transfer.
  bool on_transfer() const { return !computed && !compute; }
  bool operator==(const Dependency&) const = default;
};

enum class TransferKind : std::uint8_t {
  push,       ///< own `source` to `destination` on `peer`
  pull,       ///< `source` of `peer` to own `destination`
  copy,       ///< own to own
  collective  ///< a whole collective of `group`, left to a library or the switch: the k-th of a
              ///< group in a rank's streams (in their order) is the k-th of all its members
};
std::string_view name_of(TransferKind kind);

/// One movement of data. All affine expressions are in terms of the rank whose stream it stands in.
///
/// With a `group`, a push writes its destination on every member (multicast), and a pull reduces
/// the source of every member, the own included, without an operand (in-network reduction).
///
/// Without a reduction: destination = source. With one: destination = source (reduce) operand,
/// where `operand` is a region of the rank that owns the destination, and often the destination
/// itself. Any reduction stands for the operator that the collective is run with; it is taken as
/// commutative and associative.
struct Transfer {
  TransferKind kind = TransferKind::push;
  Affine peer = own_rank();
  Region source;
  Region destination;
  ReduceOp reduce = ReduceOp::none;
  Region operand;                 ///< only with a reduction, and neither group nor collective
  std::vector<Dependency> after;  ///< besides the order of the stream
  std::int32_t group = -1;        ///< index into Plan::groups
  Collective collective = Collective::custom;  ///< of kind collective: which one
  bool operator==(const Transfer&) const = default;
};

struct Loop;
using Item = std::variant<Transfer, Loop>;

/// Repeats its items with counter 0 .. count-1, which is loop[depth] in their expressions.
struct Loop {
  std::int64_t count = 0;
  std::vector<Item> items;
};

/// Transfers of a rank, in order. Streams of a rank run concurrently.
///
/// Order inside a stream holds for what a rank sees of its own memory; a transfer that uses what
/// another rank wrote names it in `after`. A plan is complete when all transfers are.
struct Stream {
  std::string name;
  std::vector<Item> items;
  std::string channel{};  ///< link class ("nvlink") or "nic" that it has to use; empty: any
};

/// One axis of a compute kernel's tile space.
struct ComputeAxis {
  std::string name;         ///< "m", "n", "k", "q", "kv", ...
  std::int64_t extent = 1;  ///< elements
  std::int64_t tile = 1;    ///< elements of a tile along it; the last tile may be smaller
  bool reduced = false;     ///< tiles along it contribute to the same elements
  bool operator==(const ComputeAxis&) const = default;
};

enum class Use : std::uint8_t {
  read,        ///< every tile reads its box
  write,       ///< every tile writes its box once
  accumulate,  ///< tiles along reduced axes add up in it, in any order
  add          ///< the same, added to what is there already (C += A B): what another compute, a
       ///< transfer or the caller left. All other computes of the rank that make some of the
       ///< same elements are ordered before or after this one
};
std::string_view name_of(Use use);

/// Which box of a tensor a tile touches: tensor axis i follows compute axis `axes[i]` (its tile's
/// range, moved by `begin[i]`), or, where that is -1, all of the tensor's axis.
struct ComputeOperand {
  std::int32_t tensor = 0;
  Use use = Use::read;
  std::vector<std::int32_t> axes;
  std::vector<Affine> begin{};  ///< by tensor axis; empty: zeros
  /// What would lie beyond the end of an axis of the tensor lies at its beginning: blocks of the
  /// ranks after the own one, say. No tile reaches over the end. False: nothing lies beyond it.
  bool wraps = false;

  /// Where the compute begins along axis i of the tensor, on a rank.
  std::int64_t first(std::size_t i, int rank) const {
    return begin.empty() ? 0 : begin[i](Indices{.rank = rank});
  }
  /// The element that stands at `place` of an axis with so many.
  std::int64_t wrapped(std::int64_t place, std::int64_t extent) const {
    return wraps ? place % extent : place;
  }
  bool operator==(const ComputeOperand&) const = default;
};

/// Where a compute waits for the transfers that bring what it reads.
enum class Waits : std::uint8_t {
  tiles,  ///< inside the kernel: each tile for every transfer of the plan that writes what it reads
  launch  ///< in front of the kernel, for nothing but what `after` names: kernels of libraries
          ///< cannot wait. So a plan may use one piece of memory again and again
};
std::string_view name_of(Waits waits);

/// Compute::name of attention whose queries meet the keys up to their own row only.
constexpr const char* kCausalAttention = "causal attention";

/// A kernel that a rank runs beside its streams, tile by tile.
///
/// With neither `stream` nor `after`, and waiting by tiles, it is part of the one persistent kernel
/// of the rank, in which nothing is ordered but by what tiles read. Else it is a *launch*: a kernel
/// of its own. Launches of one stream of a rank run one after the other, in the order in which the
/// code lists them; those of different streams at the same time. One without a stream has a stream
/// of its own. (A stream of computes is not one of Code::streams.)
struct Compute {
  std::string name;  ///< "gemm"
  std::string
      kernel;  ///< what a tile does: "gemm", "attention", or another name (time by roofline)
  std::vector<ComputeAxis> axes;
  std::vector<ComputeOperand> operands;
  std::int64_t flop_per_point = 2;  ///< a tile's work is this times the product of its extents
  /// Order of tiles: axes from the slowest to the fastest; empty: as listed. With `by_arrival`
  /// tiles go by the time at which the plan delivers what they read, and in that order among
  /// equals; ranks that do the same up to a rotation then begin, on an axis that turns, each with
  /// its own part (docs/plans.md). Without `by_arrival` all ranks keep the order.
  std::vector<std::int32_t> order{};
  bool by_arrival = true;
  std::string stream{};
  /// What is complete before any tile of it starts: launches of its rank (`compute`), and transfers
  /// of any rank.
  std::vector<Dependency> after{};
  Waits waits = Waits::tiles;

  bool is_launch() const { return !stream.empty() || !after.empty() || waits == Waits::launch; }
  bool operator==(const Compute&) const = default;
};

/// What a rank has to hold at the end (Plan::collective custom), and what tiles that read the
/// region have to find there.
struct Expectation {
  Region region;
  /// false: the value that some rank held or computed; true: the reduction of what every rank that
  /// holds or computes it had.
  bool reduced = false;
  std::optional<Region> of{};      ///< whose values, element by element; none: its own
  std::optional<Affine> holder{};  ///< gathered: what this rank had; none: whoever had it
  bool operator==(const Expectation&) const = default;
};

/// What one rank runs; shared by all ranks that run the same.
struct Code {
  std::vector<Stream> streams;
  std::vector<Compute> computes{};
  /// What is there before the start; none: all of every input. Of `custom` plans, and in place.
  std::optional<std::vector<Region>> resident{};
  /// What is promised of the end: by `custom` plans, and in place (in_place.h).
  std::vector<Expectation> expected{};
};

/// One axis of the mesh that the ranks form, the last one fastest.
struct MeshAxis {
  std::string name;
  int size = 1;
  bool operator==(const MeshAxis&) const = default;
};

struct Plan {
  std::string name;  ///< the template's name, or the file's
  Collective collective = Collective::custom;
  int ranks = 0;
  std::vector<MeshAxis> mesh{};  ///< empty: one axis of `ranks`
  int root = 0;                  ///< broadcast, reduce
  std::int64_t chunks_per_size =
      1;  ///< plans of chunks: how many make up what nccl-tests calls size
  std::vector<Tensor> tensors;
  std::vector<std::vector<int>> groups{};  ///< ranks, for multicast and collectives
  std::vector<Code> codes;
  std::vector<std::int32_t> code_of;  ///< by rank: index into codes
  bool in_place_safe = false;  ///< stays right when input and output share memory as in nccl-tests
  /// Parameters that its lowering takes where nothing else is said (docs/plans.md), as a lifted
  /// program was; they change how the plan runs, not what it does.
  std::vector<std::pair<std::string, std::string>> lowering{};
  /// What nobody could judge of the values that its computes make, where it was read from a file
  /// that computes them: a proof is partial for each. No plan file has any.
  std::vector<std::string> unjudged{};

  bool of_elements() const { return !tensors.empty() && tensors.front().type.has_value(); }
  const Code& code(int rank) const;
  const Stream& stream(int rank, std::int32_t index) const;
};

/// Failure unless every region lies in its tensor, every peer, group and dependency exists, no
/// transfer waits for a later one of its own stream, transfers match their kind, boxes of a region
/// are disjoint, element types agree, computes name axes, tensors and launches that exist, launches
/// do not wait for each other in a circle, and who adds is ordered (launches.h). Places are JSON
/// pointers of the plan's file form (`source` names the file; "plan 'name'" without one).
/// Cost: all transfers of all ranks.
void validate(const Plan& plan, const std::string& source = {});

}  // namespace hemiola::plan
