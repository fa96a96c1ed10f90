// What AMD's RCCL decides where NVIDIA's NCCL has other tables: the tuning models of MI300 and
// MI350. Sources: ROCm/rccl (develop, 2025), src/graph/tuning.cc (tuning_model_5 and _6),
// src/graph/rome_models.cc (rome_model_79, _81), src/graph/topo.h, src/rccl_wrap.cc.
#pragma once

#include <optional>

#include "program/kernels/nccl.h"

namespace hemiola::program {

struct RcclModel;

/// The model of a machine's GPUs; null: RCCL is not for them, or has no model of their kind here.
const RcclModel* rccl_model(const machine::Machine* machine);

/// The time that RCCL's tuner expects, in microseconds; negative: it does not consider the pair.
/// `bytes`: what nccl-tests calls size.
double rccl_time(const RcclModel& model, const NcclNodes& nodes, Collective collective,
                 NcclAlgorithm algorithm, Protocol protocol, std::int64_t bytes);

/// The protocol that is taken at this size whatever the tuner says (rcclUpdateCollectiveProtocol);
/// nothing: the tuner decides.
std::optional<Protocol> rccl_protocol(const RcclModel& model, const NcclNodes& nodes,
                                      Collective collective, std::int64_t bytes);

/// Channels, of which the trees of one half mirror those of the other.
int rccl_channels(const NcclNodes& nodes);

/// Bytes that a thread has to have before a channel is used; see NcclChoice.
std::int64_t rccl_least_per_thread(const RcclModel& model, const NcclNodes& nodes,
                                   Collective collective, NcclAlgorithm algorithm,
                                   Protocol protocol);

/// Iterations whose loads are in flight together (commSetUnrollFactor).
int rccl_unroll(const RcclModel& model, const NcclNodes& nodes);

constexpr int kRcclThreads = 256;  ///< of every block (NCCL_MAX_NTHREADS), never fewer
constexpr int kRcclWarp = 64;

/// Bytes of a chunk with Simple: a step, halved while a call has few for the depth of its tree or
/// for its chain (src/enqueue.cc, calcCollChunking; NCCL 2.30 does that with LL128 alone).
Bytes rccl_tree_chunk(Bytes size, int channels, Bytes step, const NcclNodes& nodes);
Bytes rccl_chain_chunk(Bytes size, int channels, Bytes step);

}  // namespace hemiola::program
