// What the writer of MSCCL++ plans needs to know of a whole program: its evaluated operations, and
// a channel for every semaphore that they signal.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "program/formats/mscclpp/channels.h"
#include "program/program.h"

namespace hemiola::program {

/// Failure: the program cannot be written as an MSCCL++ plan, because of `reason`.
[[noreturn]] void refuse(const Program& program, const std::string& reason);
[[noreturn]] void refuse(const Program& program, const Op& op, int rank, const std::string& reason);

bool is_channel_signal(OpKind kind);
bool is_channel_wait(OpKind kind);
/// The type of the channel whose semaphores an operation names: memory where it names none.
Channel channel_type(const Op& op);

/// The kernel of a rank, which must be all that it runs.
const Kernel& only_kernel(const Program& program, int rank);

/// Calls visit(op, indices) for every operation of a body with counted loops unrolled; piece loops
/// are visited once, between their loop and end_loop.
template <class Visit>
void unroll(const std::vector<Op>& ops, std::size_t begin, std::size_t end, std::size_t depth,
            Indices at, Visit&& visit) {
  for (std::size_t i = begin; i < end; ++i) {
    const Op& op = ops[i];
    if (op.kind != OpKind::loop) {
      visit(op, at);
      continue;
    }
    std::size_t close = i + 1;
    for (int open = 1; close < end; ++close) {
      if (ops[close].kind == OpKind::loop) ++open;
      if (ops[close].kind == OpKind::end_loop && --open == 0) break;
    }
    if (op.unit.count > 0) visit(op, at);
    const std::int64_t count = op.unit.count > 0 ? 1 : op.count;
    for (std::int64_t iteration = 0; iteration < count; ++iteration) {
      if (depth < at.loop.size()) at.loop[depth] = iteration;
      unroll(ops, i + 1, close, depth + 1, at, visit);
    }
    if (depth < at.loop.size()) at.loop[depth] = 0;
    if (op.unit.count > 0) visit(ops[close], at);
    i = close;
  }
}

template <class Visit>
void for_each_op(int rank, const Body& body, Visit&& visit) {
  unroll(body.ops, 0, body.ops.size(), 0, {.rank = rank}, visit);
}

/// Channel ids for the semaphores of a program.
class ChannelIds {
 public:
  explicit ChannelIds(const Program& program);

  const PairedChannels& of(Channel type) const { return type == Channel::port ? port_ : memory_; }

  /// The channel through which `rank` signals a semaphore of `owner`, or on which it waits for its
  /// own; -1 if none.
  std::int32_t signalling(int rank, Channel type, int owner, std::int32_t semaphore) const {
    return of(type).find(rank, owner, id(type, owner, semaphore));
  }
  std::int32_t waiting(int rank, Channel type, std::int32_t semaphore) const {
    return id(type, rank, semaphore);
  }

 private:
  void adopt();
  void derive();
  std::int32_t id(Channel type, int owner, std::int32_t semaphore) const;

  const Program& program_;
  PairedChannels memory_;
  PairedChannels port_;
  std::map<std::tuple<Channel, int, std::int32_t>, std::int32_t>
      derived_;  ///< (type, owner, semaphore): id
};

}  // namespace hemiola::program
