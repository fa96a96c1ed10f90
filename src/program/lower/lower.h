// Lowering: from a plan (what moves) to a program (which workgroups move it, and how they
// synchronise).
#pragma once

#include <optional>

#include "plan/plan.h"
#include "program/program.h"

namespace hemiola::program {

/// The one size of a plan of elements, as its program will have it; none: it follows from more than
/// the plan, or the plan takes many.
std::optional<Bytes> own_size(const plan::Plan& plan);
/// Failure for a plan that has another size of its own.
void require_own_size(const plan::Plan& plan, const std::optional<Bytes>& size);
/// The same of what has a size in itself.
void require_size(const std::string& name, Bytes own, Bytes size);

/// Who moves data (docs/plans.md). Chains and exchanges are load_store.
enum class Realization : std::uint8_t {
  load_store,   ///< workgroups of their own, with loads and stores
  bulk,         ///< the same with few threads that copy 128 B each at a time, as TMA does
  copy_engine,  ///< the rank's copy engines, driven by host streams; they cannot add: what a stream
                ///< adds up in memory of its rank is left to workgroups
  co_located,   ///< the workgroups of the compute kernel
  multicast     ///< as load_store, groups through the switch
};
std::string_view name_of(Realization realization);

/// How workgroups wait for each other (docs/plans.md, export). Both of the others take any plan
/// that does not compute; what they make is within what an executor's format can say.
enum class Sync : std::uint8_t {
  own,         ///< what the plan's shape has: FIFOs of a chain, signals of an exchange, counters
  channels,    ///< MSCCL++: pairs of workgroups that signal and wait equally often
  connections  ///< MSCCL XML: everything is sent and received through FIFOs
};
std::string_view name_of(Sync sync);

/// What a copy engine is told (docs/plans.md, copy engines).
enum class CopyCommand : std::uint8_t {
  copy,       ///< from one place to one other
  broadcast,  ///< the same to two others, where two copies in a row have one source
  swap        ///< two places change their contents: a copy each way, in place
};

/// Which copies of a rank follow each other.
enum class CopyQueues : std::uint8_t {
  stream,  ///< those of a stream of the plan
  peer     ///< those of a stream with one peer: all peers at once
};

/// How copies are given to copy engines; all at its default where others move data.
struct CopyOptions {
  CopyCommand command = CopyCommand::copy;
  CopyQueues queues = CopyQueues::stream;
  /// Copies in one submission, at most; 0: as many as follow each other without a wait or a signal.
  int batch = 1;
  bool prelaunch = false;  ///< StreamItem::prelaunched
  bool operator==(const CopyOptions&) const = default;
};

/// Values of 0 (and an empty `barrier`) mean the default that docs/plans.md states.
struct LowerOptions {
  Protocol protocol = Protocol::simple;
  int workgroups = 0;          ///< per rank, for communication; a chain calls them channels
  int compute_workgroups = 0;  ///< per rank, of plans that compute
  Realization realization = Realization::load_store;
  Sync sync = Sync::own;
  CopyOptions copies;
  int threads = 0;  ///< per workgroup
  int stages = 0;   ///< of plans that compute: Kernel::stages
  /// Plans that go the general way: chunks and slices are multiples of so many bytes.
  std::int64_t alignment = 0;
  Bytes piece{};  ///< chains: data bytes that a workgroup passes on at a time; a multiple of 16 B
  std::optional<bool> barrier;  ///< exchanges: begin with a barrier among all ranks
  bool in_place = false;        ///< input and output share memory, as nccl-tests shares it
  /// Where the program will run, if known: what crosses its NICs is posted and never pulled. Not
  /// owned.
  const machine::Machine* machine = nullptr;
  int rings = 0;  ///< chains of several streams: only so many of them, the first ones; 0: all
};

/// Two shapes of plans have programs of their own, as libraries write them:
///
/// * A *chain*: in every stream a rank pushes to one neighbour (rank + d) and forwards what another
///   pushes to it. Each workgroup owns a slice of every piece and a connection to the neighbour: a
///   FIFO of slots with credits. What arrives and what is passed on next are one operation, as in
///   NCCL's kernels. With K streams, stream k moves the chunks k, k + K, ...: K chunks of the plan
///   are one of the program, and the workgroups are shared evenly.
/// * An *exchange*: every rank runs the same single stream of pushes to, pulls from and reductions
/// over
///   peers. Each workgroup owns a slice of every chunk, and signals and awaits its counterparts
///   only. With protocol `ll` pushed chunks travel as packets through scratch memory, without
///   signals.
///
/// An exchange some of whose ranks meet over a NIC only is lowered transfer by transfer, unless its
/// protocol or sharing of memory is that of exchanges only.
///
/// Their programs have one body per workgroup index (and, in a chain, per distinct role), shared by
/// all ranks that have it. Every other valid plan, and these two with another realization, is
/// lowered transfer by transfer, with a body for every workgroup of every rank, or of the first
/// ranks where a rotation makes the others of them (docs/plans.md). Failure: options that the plan
/// cannot take; a plan that waits for itself.
Program lower(const plan::Plan& plan, const LowerOptions& options = {});

/// Slots and steps of NCCL's connections.
Fifo nccl_fifo(Protocol protocol);

/// How many channels and rings (streams) a chain takes at a size.
struct ChainChannels {
  int channels = 1, rings = 1;
  bool operator==(const ChainChannels&) const = default;
};
/// As many as `size` feeds, and at least one, of those that `unsized` has, which is a chain of
/// `rings` streams lowered without a size (docs/plans.md, channels).
ChainChannels fed_channels(const Program& unsized, int rings, Bytes size);

/// Whether the plan is a chain; an exchange (never both).
bool is_chain(const plan::Plan& plan);
bool is_exchange(const plan::Plan& plan);

}  // namespace hemiola::program
