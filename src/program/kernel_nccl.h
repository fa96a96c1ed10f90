// What NCCL decides for a collective, as version 2.30 publishes it: algorithm,
// protocol, channels and threads. Sources: NVIDIA/nccl src/graph/tuning.cc, src/graph/search.cc,
// src/enqueue.cc.
#pragma once

#include <cstdint>

#include "program/kernel.h"

namespace hemiola::program {

enum class NcclAlgorithm : std::uint8_t { ring, nvls };

struct NcclChoice {
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  Protocol protocol = Protocol::simple;
  int channels = 1;   ///< workgroups
  int threads = 512;  ///< per workgroup, with those that only post
};

/// The time that NCCL's tuner expects, in microseconds; negative: it does not consider the pair.
double nccl_time(const KernelArguments& arguments, Collective collective, NcclAlgorithm algorithm,
                 Protocol protocol);

/// The choice for the arguments' size; their parameters `algorithm`, `protocol`, `channels` and
/// `threads` force what is not "auto" or 0. Failure: what NCCL does not have, or not here.
NcclChoice choose_nccl(const KernelArguments& arguments, Collective collective);

/// Channels of one peer of a grouped send and receive of `bytes` per peer, and its protocol.
NcclChoice choose_nccl_peer(const KernelArguments& arguments, Bytes bytes);

}  // namespace hemiola::program
