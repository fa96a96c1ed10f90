#include "program/formats/mscclpp/channel_ids.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace hemiola::program {
namespace {

/// Adds channels without waiters, so that every channel has its counterpart.
void add_missing(std::vector<std::vector<int>>& peers) {
  const auto before = peers;
  const auto count = [&](std::size_t owner, std::size_t peer) {
    return std::ranges::count(before[owner], static_cast<int>(peer));
  };
  for (std::size_t owner = 0; owner < peers.size(); ++owner) {
    for (std::size_t peer = 0; peer < peers.size(); ++peer)
      for (auto n = count(owner, peer); n < count(peer, owner); ++n)
        peers[owner].push_back(static_cast<int>(peer));
  }
}

}  // namespace

void refuse(const Program& program, const std::string& reason) {
  throw Failure(fmt::format("{} cannot be written as an MSCCL++ plan: {}", program.name, reason),
                {.file = program.source});
}

void refuse(const Program& program, const Op& op, int rank, const std::string& reason) {
  throw Failure(fmt::format("{} cannot be written as an MSCCL++ plan: {} of rank {}: {}",
                            program.name, name_of(op.kind), rank, reason),
                {.file = program.source, .pointer = op.where});
}

bool is_channel_signal(OpKind kind) {
  return kind == OpKind::signal || kind == OpKind::relaxed_signal || kind == OpKind::put_signal ||
         kind == OpKind::put_signal_flush;
}
bool is_channel_wait(OpKind kind) {
  return kind == OpKind::wait || kind == OpKind::relaxed_wait;
}
Channel channel_type(const Op& op) {
  return op.channel == Channel::port ? Channel::port : Channel::memory;
}

/// The kernel of a rank, which must be all that it runs.
const Kernel& only_kernel(const Program& program, int rank) {
  const RankCode& code = program.codes[index(program.code_of[index(rank)])];
  if (code.streams.size() != 1 || code.streams[0].size() != 1 ||
      code.streams[0][0].kind != StreamItem::Kind::kernel)
    refuse(program, fmt::format("rank {} runs more than one kernel", rank));
  return program.kernels[index(code.streams[0][0].index)];
}

ChannelIds::ChannelIds(const Program& program) : program_(program) {
  if (program.channels.empty())
    derive();
  else
    adopt();
}

/// Plans that were read: the declared channels, whose semaphores stand in order of type and id.
void ChannelIds::adopt() {
  std::vector<std::vector<int>> memory, port;
  for (const ChannelTable& table : program_.channels)
    memory.push_back(table.memory), port.push_back(table.port);
  memory_ = pair_channels(std::move(memory));
  port_ = pair_channels(std::move(port));
}

/// Programs that were not: a channel for every semaphore that is signalled, paired with one back.
void ChannelIds::derive() {
  std::map<std::tuple<Channel, int, std::int32_t>, int> signallers;
  for (int rank = 0; rank < program_.ranks; ++rank) {
    for (const std::int32_t body : only_kernel(program_, rank).bodies) {
      for_each_op(rank, program_.bodies[index(body)], [&](const Op& op, const Indices& at) {
        if (!is_channel_signal(op.kind)) return;
        for (const SemaphoreRef& ref : op.semaphores) {
          const auto owner = static_cast<int>(ref.rank(at));
          if (owner == rank) refuse(program_, op, rank, "it signals its own rank");
          const auto [found, fresh] =
              signallers.insert({{channel_type(op), owner, ref.index}, rank});
          if (!fresh && found->second != rank)
            refuse(program_, op, rank,
                   fmt::format("rank {} signals the same semaphore, but a channel has one peer",
                               found->second));
        }
      });
    }
  }
  const auto ranks = index(program_.ranks);
  std::vector<std::vector<int>> memory(ranks), port(ranks);
  for (const auto& [key, signaller] : signallers) {
    const auto& [type, owner, semaphore] = key;
    auto& peers = (type == Channel::port ? port : memory)[index(owner)];
    derived_[key] = static_cast<std::int32_t>(peers.size());
    peers.push_back(signaller);
  }
  add_missing(memory);
  add_missing(port);
  memory_ = pair_channels(std::move(memory));
  port_ = pair_channels(std::move(port));
}

std::int32_t ChannelIds::id(Channel type, int owner, std::int32_t semaphore) const {
  if (!program_.channels.empty())
    return type == Channel::port ? semaphore - memory_.semaphores : semaphore;
  const auto found = derived_.find({type, owner, semaphore});
  return found == derived_.end() ? -1 : found->second;
}

}  // namespace hemiola::program
