// Plans: what moves between ranks and after what, in chunks. A plan names no hardware: no
// workgroups, no semaphores, no protocols. Lowering (program/lower.h) chooses those.
//
// Plans are compact: streams are shared by ranks, and peers, chunks and dependencies are affine in
// (rank, loop counter), so a ring over 1,024 ranks has as many items as one over 8.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/affine.h"
#include "core/data_type.h"
#include "core/diagnostics.h"

namespace hemiola::plan {

enum class Role : std::uint8_t {
  input,    ///< the caller's; resident on its own rank at the start
  output,   ///< the caller's; complete on every rank at the end
  scratch,  ///< the library's own memory; dead before and after
  transit   ///< chunks that are forwarded as they arrive: written once, then read once, by the next
            ///< transfer of the same stream. A transport may keep them in flight, without memory
};
std::string_view name_of(Role role);

/// A logical tensor that every rank has, in chunks. All chunks of a plan are equally large.
struct Tensor {
  std::string name;
  Role role = Role::scratch;
  std::int64_t chunks = 1;  ///< per rank
  bool operator==(const Tensor&) const = default;
};

/// Chunks [chunk, chunk + chunks) of a tensor. Which rank's is said by the transfer.
struct Region {
  std::int32_t tensor = 0;
  Affine chunk{};
  std::int64_t chunks = 1;
  bool operator==(const Region&) const = default;
};

/// "Transfer number `transfer` of stream `stream` of rank `rank` is complete where it wrote."
/// Transfers of a stream are numbered from 0 in the order of its execution, loops unrolled.
struct Dependency {
  Affine rank{};
  std::int32_t stream = 0;
  Affine transfer{};
  bool operator==(const Dependency&) const = default;
};

enum class TransferKind : std::uint8_t {
  push,  ///< own `source` to `destination` on `peer`
  pull,  ///< `source` of `peer` to own `destination`
  copy   ///< own to own
};
std::string_view name_of(TransferKind kind);

/// One movement of data. All affine expressions are in terms of the rank whose stream it stands in.
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
  Region operand;                 ///< only with a reduction
  std::vector<Dependency> after;  ///< besides the order of the stream
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
};

/// What one rank runs; shared by all ranks that run the same.
struct Code {
  std::vector<Stream> streams;
};

struct Plan {
  std::string name;  ///< the template's name, or the file's
  Collective collective = Collective::custom;
  int ranks = 0;
  int root = 0;                      ///< broadcast, reduce
  std::int64_t chunks_per_size = 1;  ///< chunks that make up what nccl-tests calls size
  std::vector<Tensor> tensors;
  std::vector<Code> codes;
  std::vector<std::int32_t> code_of;  ///< by rank: index into codes
  bool in_place_safe = false;  ///< stays right when input and output share memory as in nccl-tests

  const Code& code(int rank) const;
  const Stream& stream(int rank, std::int32_t index) const;
};

/// Number of transfers of a stream, loops unrolled.
std::int64_t count_transfers(const Stream& stream);

/// Calls `visit` for every transfer of the stream in order, loops unrolled.
void for_each_transfer(const Stream& stream, int rank,
                       const std::function<void(const Transfer&, const Indices&)>& visit);

/// Failure unless every region lies in its tensor, every peer and dependency exists, no transfer
/// waits for a later one of its own stream, and transfers match their kind. Cost: all transfers of
/// all ranks.
void validate(const Plan& plan);

}  // namespace hemiola::plan
