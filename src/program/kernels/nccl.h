// What NCCL decides for a collective, as version 2.30 publishes it: algorithm,
// protocol, channels and threads. Sources: NVIDIA/nccl src/graph/tuning.cc, src/graph/search.cc,
// src/enqueue.cc.
#pragma once

#include <cstdint>
#include <vector>

#include "program/kernels/kernel.h"

namespace hemiola::program {

/// nvls_tree: NVLS inside a node, a tree over the nodes.
enum class NcclAlgorithm : std::uint8_t { ring, tree, nvls, nvls_tree };
/// Whether switches add up what GPUs of a node have.
constexpr bool is_nvls(NcclAlgorithm algorithm) {
  return algorithm == NcclAlgorithm::nvls || algorithm == NcclAlgorithm::nvls_tree;
}

/// Ranks that reach each other without a NIC are a node; nodes stand one after the other.
struct NcclNodes {
  int count = 1;
  int size = 1;              ///< ranks of each
  std::vector<int> heads{};  ///< several nodes: ranks of a node with a NIC of their own, from 0
  double nic_bandwidth = 0;  ///< GB/s of all NICs of a node
};
/// Failure: nodes of different sizes, or mixed.
NcclNodes nccl_nodes(const KernelArguments& arguments);

/// GPUs of a node that reduce through its switch at most (NCCL_MAX_NVLS_ARITY).
constexpr std::size_t kMostNvlsHeads = 32;

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  int channels = 1;   ///< workgroups
  int trees = 1;      ///< channels of the search graph: those from here on have the second tree
  int threads = 512;  ///< per workgroup, with those that only post
  int warp = 32;      ///< threads of a warp
  Bytes step{};       ///< grouped sends: data of a slot; NVLS over nodes: the largest chunk
};

/// Steps of a ring of so many ranks (or nodes), as NCCL's and RCCL's tuners count them.
int ring_steps(Collective collective, int ranks);

/// Says where GPUs are none that a tuner knows. On AMD's GPUs RCCL's decides (rccl_tuner.h).
Diagnostics tuner_warnings(const machine::Machine* machine);

/// The time that NCCL's tuner expects, in microseconds; negative: it does not consider the pair.
double nccl_time(const KernelArguments& arguments, Collective collective, NcclAlgorithm algorithm,
                 Protocol protocol);

/// The choice for the arguments' size; their parameters `algorithm`, `protocol`, `channels` and
/// `threads` force what is not "auto" or 0. Failure: what NCCL does not have, or not here.
NcclChoice choose_nccl(const KernelArguments& arguments, Collective collective);

/// Channels of one peer of a grouped send and receive of `bytes` per peer, and its protocol.
NcclChoice choose_nccl_peer(const KernelArguments& arguments, Bytes bytes);

/// Whether receivers load what senders keep: pairs of compute capability 8.0 joined by NVLink
/// (ncclTopoCheckP2p of src/graph/paths.cc), buffers of protocol Simple only, of rings, trees and
/// sends alike (p2pSendSetup and p2pSendConnect of src/transport/p2p.cc).
bool nccl_pulls(const KernelArguments& arguments);

/// Whether the caller gives one buffer as input and output, as nccl-tests shares it (all but
/// all-to-all).
bool nccl_in_place(const KernelArguments& arguments);

/// The widths at which kernels of protocol LL access the user's buffers (src/device/prims_ll.h).
void nccl_ll_accesses(Kernel& kernel, Collective collective, DataType type);

/// What kernels of NCCL have in common: every workgroup first loads what it is to do (communicator,
/// channel, work), and shares its compute unit with nobody (docs/model.md, residency).
void finish_nccl_kernels(Program& program);

/// Iterations whose loads are in flight together: reduceCopy of common_kernel.h; LL loops line by
/// line (prims_ll.h); LL128 has 8 words of 8 B per thread, 4 accesses (prims_ll128.h).
int nccl_unroll(Protocol protocol, const KernelArguments& arguments);

/// Functions that a workgroup of a collective calls and that are larger than the instruction caches
/// (Kernel::large_code). LL is compiled into the kernel itself, the others are called through a
/// table (src/device/generate.py); they count twice because measured times of two GPUs agree.
int nccl_large_code(Protocol protocol);

/// All-reduce over the double binary tree, and through the switch, on one node and on several.
Program nccl_tree(const KernelArguments& arguments, const NcclChoice& choice);
Program nccl_nvls(const KernelArguments& arguments, const NcclChoice& choice);

}  // namespace hemiola::program
