// Little programs for tests: one kernel per rank, written operation by operation.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "program/testing/bound.h"
#include "verify/verify.h"

namespace hemiola::verify::test {

inline constexpr std::int32_t kInput = 0;
inline constexpr std::int32_t kOutput = 1;
inline constexpr std::int32_t kScratch = 2;

using program::Access;
using program::Op;
using program::Operand;
using program::OpKind;

inline Operand at(int rank, std::int32_t buffer, std::int64_t chunk, std::int64_t chunks = 1) {
  Operand operand;
  operand.rank = constant(rank);
  operand.buffer = buffer;
  operand.chunk = constant(chunk);
  operand.chunks = chunks;
  return operand;
}

inline Operand packets(int rank, std::int64_t chunk, std::int64_t chunks = 1) {
  Operand operand = at(rank, kScratch, chunk, chunks);
  operand.access = Access::packet;
  return operand;
}

inline Op op(OpKind kind) {
  Op result;
  result.kind = kind;
  return result;
}

inline Op transfer(OpKind kind, std::vector<Operand> src, std::vector<Operand> dst) {
  Op result = op(kind);
  result.channel = program::Channel::memory;
  result.src = std::move(src);
  result.dst = std::move(dst);
  return result;
}

inline Op flag(OpKind kind, std::vector<std::pair<int, std::int32_t>> rank_and_index) {
  Op result = op(kind);
  result.channel = program::Channel::memory;
  for (const auto& [rank, index] : rank_and_index)
    result.semaphores.push_back({constant(rank), index});
  return result;
}

inline Op sync() {
  return op(OpKind::sync);
}
inline Op signal(int rank, std::int32_t index) {
  return flag(OpKind::signal, {{rank, index}});
}
inline Op wait(int rank, std::int32_t index) {
  return flag(OpKind::wait, {{rank, index}});
}

/// A bound program of `ranks` ranks; `chunks` input, output and scratch chunks of `chunk_bytes`
/// each. bodies[rank][workgroup] is a list of operations.
inline program::Bound make(Collective collective, int chunks,
                           const std::vector<std::vector<std::vector<Op>>>& bodies,
                           int semaphores = 4, std::int64_t chunk_bytes = 64,
                           std::int32_t threads = 32) {
  program::Program result;
  result.name = "test";
  result.source = "test";
  result.format = "template";
  result.collective = collective;
  result.ranks = static_cast<int>(bodies.size());
  const bool gathers = collective == Collective::all_gather;
  const std::int64_t shares = result.ranks;
  const std::int64_t input = gathers ? chunks / shares : chunks;
  const std::int64_t output = collective == Collective::reduce_scatter ? chunks / shares : chunks;
  result.buffers = {{.name = "input", .kind = program::BufferKind::input, .chunks = {input}},
                    {.name = "output", .kind = program::BufferKind::output, .chunks = {output}},
                    {.name = "scratch",
                     .kind = program::BufferKind::scratch,
                     .chunks = {8 * chunks},
                     .packets = true}};
  for (int i = 0; i < semaphores; ++i)
    result.semaphores.push_back({.name = "channel " + std::to_string(i)});
  for (std::size_t rank = 0; rank < bodies.size(); ++rank) {
    program::Kernel kernel;
    kernel.threads = threads;
    for (const std::vector<Op>& ops : bodies[rank]) {
      kernel.bodies.push_back(static_cast<std::int32_t>(result.bodies.size()));
      result.bodies.push_back({ops});
    }
    result.code_of.push_back(static_cast<std::int32_t>(rank));
    result.codes.push_back({{{program::StreamItem{
        program::StreamItem::Kind::kernel, static_cast<std::int32_t>(rank), {}}}}});
    result.kernels.push_back(std::move(kernel));
  }
  result.chunks_per_size = chunks;
  result.barriers = 4;
  result.finish();
  return {{.program = std::make_shared<const program::Program>(std::move(result)),
           .size = Bytes{chunks * chunk_bytes},
           .chunk_bytes = chunk_bytes},
          nullptr,
          {}};
}

/// All-gather of two ranks by put, signal and wait.
inline std::vector<std::vector<std::vector<Op>>> exchange() {
  std::vector<std::vector<std::vector<Op>>> bodies(2);
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    bodies[static_cast<std::size_t>(rank)] = {{
        transfer(OpKind::copy, {at(rank, kInput, 0)}, {at(rank, kOutput, rank)}),
        transfer(OpKind::put, {at(rank, kInput, 0)}, {at(peer, kOutput, rank)}),
        sync(),
        signal(peer, 0),
        wait(rank, 0),
        sync(),
    }};
  }
  return bodies;
}

/// All-reduce of two ranks: each puts its input into the peer's scratch and adds there.
inline std::vector<std::vector<std::vector<Op>>> exchange_and_add() {
  std::vector<std::vector<std::vector<Op>>> bodies(2);
  for (int rank = 0; rank < 2; ++rank) {
    const int peer = 1 - rank;
    bodies[static_cast<std::size_t>(rank)] = {{
        transfer(OpKind::put, {at(rank, kInput, 0, 2)}, {at(peer, kScratch, 0, 2)}),
        sync(),
        signal(peer, 0),
        wait(rank, 0),
        sync(),
        transfer(OpKind::reduce, {at(rank, kInput, 0, 2), at(rank, kScratch, 0, 2)},
                 {at(rank, kOutput, 0, 2)}),
    }};
  }
  return bodies;
}

/// Of a program that was lowered: nothing is open but what a custom collective promises, where its
/// plan does not say.
inline bool is_right(const Proof& proof) {
  const bool open =
      std::all_of(proof.reasons.begin(), proof.reasons.end(),
                  [](const std::string& reason) { return reason.starts_with("its plan: "); });
  return (proof.verdict == Verdict::proven || proof.verdict == Verdict::partial) && open &&
         proof.warnings.items().empty();
}

}  // namespace hemiola::verify::test
