// Sends, receives and remote memories of the ASTRA-sim model.
#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "workload/astra/ranks.h"

namespace hemiola::workload::astra {

int Ranks::peer_of(std::uint32_t rank, const Message& message, bool sender) const {
  const bool is_first = message.from_first == sender;
  auto& peers = peers_[{message.family, is_first}];
  if (peers.empty()) {
    for (const auto& pair : workload_.families[index(message.family)].groups)
      if (pair.size() == 2)
        peers[is_first ? pair.front() : pair.back()] = is_first ? pair.back() : pair.front();
  }
  const auto peer = peers.find(static_cast<int>(rank));
  if (peer == peers.end())
    throw Failure(
        fmt::format("rank {} is not the one that {} a message of '{}'", rank,
                    sender ? "sends" : "receives", workload_.families[index(message.family)].name),
        {.file = workload_.source});
  return peer->second;
}

std::size_t Ranks::box_of(std::uint32_t from, std::uint32_t to, const Message& message) {
  const auto [at, is_new] =
      boxes_of_.try_emplace({from, to, message.tag, message.bytes}, boxes_.size());
  if (is_new) boxes_.push_back({.to = to});
  return at->second;
}

void Ranks::send(std::uint32_t rank, std::uint32_t node) {
  const Message& message = workload_.messages[index(node_of(rank, node).work)];
  const auto to = static_cast<std::uint32_t>(peer_of(rank, message, true));
  const std::uint32_t number = parcels_.take();
  parcels_[number] = {rank, node, box_of(rank, to, message)};
  fabric_.send(static_cast<std::int32_t>(rank), static_cast<std::int32_t>(to), message.bytes,
               {EventKind::parcel, number});
}

void Ranks::receive(std::uint32_t rank, std::uint32_t node) {
  const Message& message = workload_.messages[index(node_of(rank, node).work)];
  const auto from = static_cast<std::uint32_t>(peer_of(rank, message, false));
  Box& box = boxes_[box_of(from, rank, message)];
  if (box.there == 0) return box.receives.push_back(node);
  --box.there;
  calendar_.enter(calendar_.now(), {EventKind::taken, rank, node});
}

void Ranks::parcel(std::uint32_t number) {
  const Parcel parcel = parcels_[number];
  parcels_.give_back(number);
  Box& box = boxes_[parcel.box];
  const std::uint32_t to = box.to;
  if (box.receives.empty()) {
    ++box.there;
    return over(parcel.from, parcel.node);
  }
  const std::uint32_t node = box.receives.front();
  box.receives.pop_front();
  over(parcel.from, parcel.node);
  over(to, node);
}

void Ranks::access_memory(std::uint32_t rank, std::uint32_t node) {
  const AstraMemory& memory = configuration_.memory;
  if (memory.kind == AstraMemory::Kind::none)
    throw Failure(where(rank, node) + " accesses a remote memory, and there is none",
                  {.file = ranks_[rank].what->trace->source},
                  "NO_MEMORY_EXPANSION is for workloads without such nodes");
  const auto of_node = memory.kind == AstraMemory::Kind::per_node
                           ? static_cast<std::int64_t>(rank) / memory.npus_per_node
                           : 0;
  if (index(of_node) >= memories_.size())
    throw Failure(fmt::format("rank {} is in none of the {} nodes with {} NPUs each", rank,
                              memory.nodes, memory.npus_per_node));
  RemoteMemory& one = memories_[index(of_node)];
  if (memory.kind != AstraMemory::Kind::per_npu && one.busy)
    return one.waiting.emplace_back(rank, node), void();
  begin_access(index(of_node), rank, node);
}

void Ranks::begin_access(std::size_t number, std::uint32_t rank, std::uint32_t node) {
  const AstraMemory& memory = configuration_.memory;
  const Node& what = node_of(rank, node);
  std::int64_t bytes = 0;
  if (what.work >= 0) {
    const Compute& copy = workload_.computes[index(what.work)];
    bytes = std::max(copy.read, copy.written);
  }
  const double ns = static_cast<double>(bytes) / (memory.bandwidth * 1e9) * 1e9;
  const std::int64_t end = calendar_.now() + memory.latency_ns + static_cast<std::int64_t>(ns);
  calendar_.enter_of_rank(rank, end, {EventKind::over, rank, node});
  if (memory.kind == AstraMemory::Kind::per_npu) return;
  memories_[number].busy = true;
  calendar_.enter_of_rank(rank, end, {EventKind::memory_free, static_cast<std::uint32_t>(number)});
}

void Ranks::memory_free(std::uint32_t number) {
  RemoteMemory& one = memories_[number];
  one.busy = false;
  if (one.waiting.empty()) return;
  const auto [rank, node] = one.waiting.front();
  one.waiting.pop_front();
  begin_access(number, rank, node);
}

}  // namespace hemiola::workload::astra
