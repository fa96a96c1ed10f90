// Programs: what each GPU executes, with which hardware. Compact: bodies are shared by ranks, loops
// and operands are affine in (rank, iteration), and sizes are in chunks until a program is bound to
// a size.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hemiola/error.h"
#include "hemiola/parts/affine.h"
#include "hemiola/parts/executed_by.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola::machine {
class Machine;
using SharedMachine = std::shared_ptr<const Machine>;
}  // namespace hemiola::machine
namespace hemiola::plan {
struct Plan;
}

namespace hemiola::program {

struct Promise;

enum class Protocol : std::uint8_t { simple, ll, ll128 };
std::string_view name_of(Protocol protocol);

/// How bytes of an operand are laid out and addressed.
enum class Access : std::uint8_t {
  plain,      ///< as they are
  packet,     ///< LL: 8 B data + 8 B flags; memory holds 2 bytes per byte of data
  packet8,    ///< LL8: 4 B data + 4 B flag; the same factor
  ll128,      ///< 120 B data + 8 B flag per 128 B line
  lamport,    ///< the data are their flag: memory holds a value that data never have (-0.0) until
              ///< they arrive, and has to be cleared before it is used again
  multicast,  ///< the switch's address of a group: a store reaches all members, a load reduces over
              ///< them
  multicast_packet  ///< a packet stored through the switch
};

/// Memory of all members of a group, through the switch.
constexpr bool is_multicast(Access access) {
  return access == Access::multicast || access == Access::multicast_packet;
}
/// Data that carry their flags.
constexpr bool is_packet(Access access) {
  return access != Access::plain && access != Access::multicast;
}

enum class BufferKind : std::uint8_t {
  input,
  output,
  scratch,
  fifo,
  resident  ///< there before the start, as inputs are, and only computed with: weights, tables
};

/// A buffer that every rank has. `chunks` may differ per rank (irregular files).
struct Buffer {
  std::string name{};  ///< "input", "scratch", "fifo 3"
  BufferKind kind = BufferKind::scratch;
  std::vector<std::int64_t> chunks{};  ///< one value for all ranks, or one per rank
  Bytes bytes{};              ///< > 0: its fixed size, whatever the program's; FIFOs have one
  bool packets = false;       ///< holds packets: memory is twice the data
  std::int32_t rotation = 1;  ///< has so many parts that take turns by repetition
  Bytes chunk_limit{};        ///< > 0: larger chunks are folded: pieces reuse this much per chunk
  std::int32_t alias = -1;    ///< in place: the buffer whose memory this one shares
  Affine alias_chunk{};       ///< ... and the chunk of it where this one starts
};

/// Memory of one rank, in chunks: [chunk, chunk + chunks) of a buffer of `rank`; for
/// Access::multicast of every rank of `group`. With a `run` it is rows of so many chunks, `pitch`
/// chunks from the start of one to that of the next (plain and multicast, outside piece loops).
struct Operand {
  Affine rank = own_rank();
  std::int32_t buffer = 0;
  Affine chunk{};
  std::int64_t chunks = 1;  ///< altogether
  std::int64_t run = 0;     ///< chunks of a row; 0: all in one
  std::int64_t pitch = 0;
  Access access = Access::plain;
  std::int32_t group = -1;   ///< index into Program::groups for multicast
  std::int32_t column = -1;  ///< of Op::places of the outermost loop: what it adds to `chunk`
  bool operator==(const Operand&) const = default;
};

/// A counting semaphore in the memory of `rank`. Semaphores have the same indices on all ranks.
struct SemaphoreRef {
  Affine rank = own_rank();
  std::int32_t index = 0;
  bool operator==(const SemaphoreRef&) const = default;
};

/// One end of a connection: a FIFO of slots in the receiver's memory. `inbound` numbers the
/// receiver's incoming FIFOs, `outbound` the sender's outgoing ones.
struct ConnectionRef {
  Affine peer{};               ///< send: the receiver; receive: the sender
  std::int32_t inbound = -1;   ///< index at the receiver; -1 no connection
  std::int32_t outbound = -1;  ///< index at the sender
  std::int32_t channel = 0;    ///< as the source format numbers it (messages, writers)
  bool operator==(const ConnectionRef&) const = default;
};

enum class OpKind : std::uint8_t {
  // Inside a rank.
  sync,     ///< barrier of the workgroup (MSCCL++ nop)
  barrier,  ///< barrier among `workgroups` workgroups of the rank, named by `barrier_id`
  sem_acquire,
  sem_release,  ///< device-scope semaphores between workgroups
  dep_wait,     ///< wait until a workgroup's progress semaphore reached `target` (MSCCL depid/deps)
  dep_signal,   ///< advance the own progress semaphore
  compare_swap,  ///< spin until a semaphore has the value of a dep_wait, and add 1 in the same
                 ///< access (atomicCAS); relaxed
  // Between ranks.
  signal,
  wait,
  relaxed_signal,
  relaxed_wait,
  flush,
  // Data, memory and port channels.
  put,
  put_signal,
  put_signal_flush,
  get,
  swap,  ///< of copy engines: src[0] to dst[0] and src[1] to dst[1], which are each other's places
  load,  ///< the first `bytes` of slice `slice` of memory of fixed size, into registers. With a
         ///< `count` so many, each once the one before has returned (a pointer chase): from one to
         ///< the next are `unit` bytes, and behind the end of the memory comes its start
  copy,
  reduce,
  reduce_send,
  read_reduce,
  read_reduce_send,
  put_packets,
  read_put_packets,
  copy_packets,
  unpack_packets,
  reduce_packets,
  reduce_send_packets,
  reduce_copy_packets,
  reduce_copy_send_packets,
  clear,  ///< makes own Access::lamport memory of the previous repetition empty again
  group_load_reduce,
  group_load_reduce_store,
  group_store,
  group_store_packets,
  // Through a connection's FIFO (MSCCL XML, NCCL).
  send,  ///< with a destination: which is own memory, and gets the same (NCCL's copySend)
  recv,
  recv_copy_send,
  recv_reduce_send,
  recv_reduce_copy,
  recv_reduce_copy_send,
  // Compute: a stated time, flop at the rate of the matrix units, or a tile of a matrix product
  // (docs/gemm.md), whichever takes longest. With operands it reads
  // all sources first, then writes all destinations; they may differ in size. The workgroup goes
  // on meanwhile (Kernel::stages).
  compute,
  // Structure: `loop` repeats what stands up to its `end_loop`.
  loop,
  end_loop
};
std::string_view name_of(OpKind kind);

/// What a piece loop divides (Op::pieces).
enum class Pieces : std::uint8_t {
  of_chunk,  ///< MSCCL: every chunk of an operation contributes its bytes [p unit, (p + 1) unit)
  of_region  ///< MSCCL++ pipelines: the operation touches [p unit, (p + 1) unit) of all its chunks
             ///< as one region
};

/// How an operation gets at peers. `any`: loads and stores where they reach the peer; behind a NIC
/// what is put or signalled goes through the port, in order, and the body ends with a flush.
enum class Channel : std::uint8_t { none, memory, port, switch_, any };

/// Rows, columns and depth of a matrix product, in elements; zero: none.
struct MatrixProduct {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool operator==(const MatrixProduct&) const = default;
};

/// One operation of a workgroup. Which fields mean something depends on the kind; the readers fill
/// no others, so that equality of programs is equality of fields.
struct Op {
  OpKind kind = OpKind::sync;
  Channel channel = Channel::none;
  ReduceOp reduce = ReduceOp::none;
  std::vector<Operand> src{};
  std::vector<Operand> dst{};
  std::vector<SemaphoreRef> semaphores{};  ///< signal, wait, sem_*, dep_*, compare_swap,
                                           ///< put_signal
  std::int64_t target = 0;  ///< dep_wait: value to reach, per iteration of the outer loop
  /// dep_wait: by semaphore, the value to reach and what an iteration adds; instead of `target` and
  /// `count`.
  std::vector<std::pair<std::int64_t, std::int64_t>> targets{};
  bool bypass_l1 = false;  ///< load: served by the L2 or what is behind it (ld.global.cg)
  bool relaxed = false;    ///< dep_signal: only loads are over; stores may still be on their way
  bool batched = false;  ///< by copy engines: the next copy is in the same submission, in no order
  bool staged = false;   ///< moves over Channel::any: the first destination is only written where a
                         ///< NIC takes it to the others
  ConnectionRef send_to{};    ///< send, recv_*_send
  ConnectionRef recv_from{};  ///< recv*
  /// Nodes of a tree: what arrives through these is reduced with the rest (recv_reduce_*), and what
  /// is sent goes to these as well. All have the same number of slots per operation.
  std::vector<ConnectionRef> more_from{};
  std::vector<ConnectionRef> more_to{};
  std::int32_t slice = 0;   ///< thread-block group: this workgroup's share ...
  std::int32_t slices = 1;  ///< ... of that many, in units of the program's alignment
  std::int32_t barrier_id = 0;
  std::int32_t workgroups = 0;  ///< barrier
  // loop: `count` times; or, with unit > 0, once per piece of `unit` bytes of `unit_chunks` chunks,
  // to which ops inside keep (docs/model.md, pieces). Moves: slices are cut at multiples of `unit`.
  std::int64_t count = 0;
  Bytes unit{};
  std::int64_t unit_chunks = 0;
  Pieces pieces = Pieces::of_chunk;
  /// loop, outermost, with a count: a row for each iteration, of the chunks that operands inside
  /// add to theirs (Operand::column). So tiles that differ only in their place are one operation.
  std::vector<std::int64_t> places{};
  std::int64_t columns() const { return count > 0 ? std::ssize(places) / count : 0; }
  /// The least and the largest of a column; {0, 0} for -1.
  std::pair<std::int64_t, std::int64_t> range_of(std::int32_t column) const;
  // compute
  std::int64_t flop = 0;
  MatrixProduct product{};
  Bytes bytes{};
  Time duration{};
  MatrixProduct values{};  ///< what it adds to its results, see Computation; zero: not known
  Affine made{};  ///< the chunk of all that the rank computes where the first of dst[0] belongs;
                  ///< further ones lie at the same distances
  std::string where{};               ///< in its file, for messages: "/gpus/0/threadblocks/1/ops/3"
  bool operator==(const Op&) const;  ///< all but `where`
};

/// The operations of a workgroup or queue of copies; shared by all that name it.
struct Body {
  std::vector<Op> ops{};
};

struct Kernel {
  std::string name{};
  std::int32_t threads = 1024;             ///< per workgroup
  std::vector<std::int32_t> threads_of{};  ///< by workgroup, where they differ; empty: `threads`
  std::int32_t grain = 16;  ///< bytes that a thread moves at a time; more where a wavefront issues
                            ///< bulk copies (128: 4 KiB each with 32 threads)
  std::int32_t unroll = 0;  ///< iterations of a copy loop whose loads are in flight together; 0:
                            ///< the device model's cu.unroll
  /// Bytes of plain memory that a thread loads, stores with one instruction in moves of packets; 0:
  /// all that it owns. Every instruction touches all lines of the wavefront again.
  std::int32_t load_bytes = 0, store_bytes = 0;
  /// Steps of a matrix product whose operands a workgroup holds at a time: the one that it
  /// computes, and those that it loads for later ones. 0: the device model's gemm.stages.
  std::int32_t stages = 0;
  /// The last wavefront moves nothing: it does signals, fences, posts and flushes, so that the
  /// fence of one holds up nobody who copies (NCCL's extra warp).
  bool posts_apart = false;
  /// Functions of code that is larger than the instruction caches: every launch fetches them again,
  /// for each workgroup (cu.code_fetch); 0: it is not.
  int large_code = 0;
  /// A loop of a few instructions, as microbenchmarks are: starting an operation costs nothing
  /// (sync.op_overhead is that of a library's code around it).
  bool bare = false;
  /// It leaves no registers of a compute unit to others, as communication kernels of NCCL and RCCL
  /// do.
  bool fills_unit = false;
  /// Accumulators of the largest tile of a matrix product among its operations; set by finish().
  std::int64_t largest_tile = 0;
  std::vector<std::int32_t> bodies{};  ///< one entry per workgroup: index into Program::bodies
  /// By workgroup, the block of threads that it is a part of, 0, 1, ...: parts of a block do
  /// different things side by side (send and receive) on one compute unit. Empty: each is one.
  std::vector<std::int32_t> blocks{};

  /// Workgroups of a block from that one on.
  std::size_t parts_from(std::size_t workgroup) const {
    std::size_t end = workgroup + 1;
    while (end < blocks.size() && blocks[end] == blocks[workgroup]) ++end;
    return end - workgroup;
  }
  /// Blocks are started in their order.
  std::int64_t block_number(std::size_t workgroup) const {
    return blocks.empty() ? static_cast<std::int64_t>(workgroup) : blocks[workgroup];
  }
  /// The first workgroup of a block.
  std::size_t block_of(std::size_t workgroup) const;
  std::int64_t threads_in_block(std::size_t workgroup) const;
  std::int64_t block_count() const {
    return bodies.empty() ? 0 : block_number(bodies.size() - 1) + 1;
  }
  std::int32_t threads_in(std::size_t workgroup) const {
    return threads_of.empty() ? threads : threads_of.at(workgroup);
  }
};

/// An item of a stream, started when the one before it is done.
struct StreamItem {
  /// engine: a body that the rank's copy engines do in order: put, get, copy (to one place or two)
  /// and swap are DMA transfers, a signal follows those before it, a wait holds up what follows.
  /// until: nothing before so long after the start of the repetition.
  /// launch_begin, launch_end: around what belongs to the launch of the frame.
  enum class Kind : std::uint8_t {
    kernel,
    event_record,
    event_wait,
    host,
    engine,
    until,
    launch_begin,
    launch_end
  } kind = Kind::kernel;
  std::int32_t index = 0;    ///< kernel, event or body
  Time duration{};           ///< host function, until
  std::int32_t frame = 0;    ///< of a job: Bound::frame()
  bool prelaunched = false;  ///< engine: its commands are in the queue before, behind a poll
};
using Stream = std::vector<StreamItem>;

/// How the kernels of a stream get compute units where others want them, too.
struct StreamOptions {
  std::int32_t priority = 0;  ///< of workgroups that wait for room those of the highest go first
  /// Compute units [first_unit, first_unit + units) alone are used; units 0: all.
  std::int32_t first_unit = 0, units = 0;
  bool operator==(const StreamOptions&) const = default;
};

/// What one rank runs; shared by all ranks that run the same.
struct RankCode {
  std::vector<Stream> streams{};
  std::vector<StreamOptions> options{};  ///< by stream; missing ones are as they are by default
  StreamOptions option(std::size_t stream) const {
    return stream < options.size() ? options[stream] : StreamOptions{};
  }
};

struct Semaphore {
  std::string name{};  ///< "channel 3", "progress of workgroup 2"
  std::int64_t initial = 0;
  bool local = false;   ///< device scope (sem_*, dep_*): never crosses a link
  bool shared = false;  ///< several workgroups of a rank wait on it: waits consume; set by finish()
};

/// The channels that a rank of an MSCCL++ plan declares, as peers: the k-th channel of a to b is
/// paired with the k-th of b to a. Semaphore i of a rank belongs to its memory channel i; then come
/// those of port channels.
struct ChannelTable {
  std::vector<int> memory{};
  std::vector<int> port{};
  bool operator==(const ChannelTable&) const = default;
};

/// What every rank computes: m x n elements, row by row, each the sum over k. It is what the
/// program's collective takes as input; there is no input buffer then. An Op whose `values` are
/// m x n x k makes so many of them: of a product from sources of m x k and k x n elements, of a
/// pooling from m sources of k rows of n. Results of computes without destinations are added to
/// those of the next.
struct Computation {
  enum class Kind : std::uint8_t {
    product,  ///< of `left` [m, k] and `right` [k, n]
    pooling   ///< of rows of n elements of `left`: k of them, `pitch` rows apart, for each result
  } kind = Kind::product;
  MatrixProduct shape{};
  std::int32_t left = 0, right = 0;  ///< buffers of kind resident, row by row
  /// pooling: the first row of each result, from that which goes to the own rank on: rank r begins
  /// with entry 0 at its result m r / ranks, and goes round.
  std::vector<std::int64_t> first_rows{};
  std::int64_t pitch = 1;
};

/// What a program is bound to, besides the machine.
struct BindOptions {
  Bytes size{MiB(1)};  ///< what nccl-tests calls size
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
};

/// A program without a size and without a machine; program/bind/bound.h gives it both.
class Program {
 public:
  std::string name;
  std::string source;  ///< file or template it came from
  std::string format;  ///< "mscclpp", "msccl", "template"
  ExecutedBy executed_by;
  Collective collective = Collective::custom;
  Protocol protocol = Protocol::simple;
  bool in_place = false;
  bool library_call = false;  ///< on a stream launch.library_interval passes between two calls
  int ranks = 0;
  std::vector<Buffer> buffers;
  std::vector<Semaphore> semaphores;
  std::int32_t inbound = 0;  ///< connections per rank: FIFO buffers and semaphores are derived
  std::int32_t outbound = 0;
  Fifo fifo;
  std::vector<std::vector<int>> groups;  ///< multicast groups (ranks)
  std::vector<ChannelTable> channels;    ///< by rank; only from MSCCL++ plans, for their writer
  std::vector<Body> bodies;
  std::vector<Kernel> kernels;
  std::vector<RankCode> codes;
  std::vector<std::int32_t> code_of;  ///< by rank: index into codes
  std::int32_t barriers = 0;          ///< barrier ids per rank are 0 .. barriers-1
  std::int64_t chunks_per_size = 1;   ///< chunks that make up what nccl-tests calls size
  std::int64_t root = 0;              ///< broadcast, reduce
  Bytes alignment{16};                ///< a chunk is a multiple of it; slices are cut at it
  Bytes min_size{};                   ///< the file's own range; outside it: a warning
  Bytes max_size{INT64_MAX};
  Bytes fixed_size{};                    ///< > 0: the only size that it can be bound to
  std::optional<DataType> fixed_type{};  ///< the only data type, whatever bind() is told
  Diagnostics warnings;                  ///< from the reader
  /// What a custom program was lowered from: it says what the result has to be.
  std::shared_ptr<const plan::Plan> plan{};
  std::shared_ptr<const Promise> promise{};  ///< what its user says of it (promise.h)
  /// Programs that compute what their collective moves.
  std::shared_ptr<const Computation> computation{};

  /// The smallest legal size >= `size`: a multiple of chunks_per_size * lcm(alignment, element).
  Bytes next_legal_size(Bytes size, DataType type) const;

  /// Programs whose grid or algorithm follows the size are made anew for each: `make` gives the one
  /// for a size, which may follow the size again.
  using Maker = std::function<Program(const BindOptions&)>;
  void follow_size(Maker make) { make_ = std::move(make); }
  bool follows_size() const { return make_ != nullptr; }
  /// The program for this size, type and operator: itself, or the one that is made for it. It does
  /// not follow the size any more.
  Program sized(const BindOptions& options) const;

  /// Bytes of memory of one FIFO slot in the program's protocol.
  std::int64_t slot_bytes() const;
  int workgroups(int rank) const;  ///< over all kernels of the rank
  std::int64_t chunks_of(std::int32_t buffer, int rank) const;

  // Buffers and semaphores that connections own; valid after finish().
  std::int32_t fifo_buffer(std::int32_t inbound_index) const { return first_.fifo + inbound_index; }
  /// The sender's own staging of a connection whose pair crosses a NIC; the same geometry as the
  /// FIFO.
  std::int32_t staging_buffer(std::int32_t outbound_index) const {
    return first_.staging + outbound_index;
  }
  std::int32_t tail_semaphore(std::int32_t inbound_index) const {
    return first_.tail + inbound_index;
  }
  std::int32_t head_semaphore(std::int32_t outbound_index) const {
    return first_.head + outbound_index;
  }
  /// Adds the buffers and semaphores of the connections; every reader calls it last.
  void finish();

 private:
  Maker make_{};
  struct First {
    std::int32_t fifo = 0, staging = 0, tail = 0, head = 0;
  } first_{};  ///< buffers and semaphores of connections
};

}  // namespace hemiola::program
