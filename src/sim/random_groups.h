// Random machines whose switches replicate and reduce, and programs with multicast groups.
#pragma once

#include "sim/random_cases.h"

namespace hemiola::sim::test {

/// GPUs at some switches that replicate and reduce, each joined to all of them.
inline machine::Machine any_nvls() {
  using machine::NodeKind;
  machine::Machine machine;
  machine.name = "random planes";
  machine.models.push_back(machine::gpu_model("ideal"));
  machine.link_classes = {{.name = "thin"}, {.name = "wide"}};
  const std::int64_t gpus = between(2, 5), switches = between(1, 3), lanes = between(1, 2);
  for (std::int64_t n = 0; n < gpus + switches; ++n) {
    const bool gpu = n < gpus;
    machine.nodes.push_back({.name = (gpu ? "gpu." : "switch.") + std::to_string(n),
                             .kind = gpu ? NodeKind::xpu : NodeKind::switch_});
    if (!gpu) continue;
    machine.gpus.push_back(static_cast<machine::NodeId>(n));
    machine.gpu_models.push_back(0);
  }
  for (std::int64_t s = gpus; s < gpus + switches; ++s) {
    for (std::int64_t g = 0; g < gpus; ++g) {
      for (std::int32_t lane = 0; lane < lanes; ++lane) {
        const auto a = static_cast<machine::NodeId>(g), b = static_cast<machine::NodeId>(s);
        const auto link_class = static_cast<std::int32_t>(between(0, 1));
        machine.links.push_back({a, b, link_class, lane});
        machine.links.push_back({b, a, link_class, lane});
      }
    }
  }
  machine.forget_routes();
  for (const auto& [parameter, value] : any_costs(true, Queues::none))
    machine.set(parameter, value);
  machine.set("gpu.fabric.forwards", "false");
  machine.set("switch.reduce_rate", one_of<std::string>({"inf", "9 GB/s", "400 GB/s"}));
  machine.set("switch.reduce_latency", one_of<std::string>({"1 fs", "67 ns"}));
  return machine;
}

/// Stores to the group and loads of it between direct ones, each round closed by a signal.
inline program::Program any_group_exchange(const machine::Machine& machine) {
  const int ranks = machine.ranks();
  const int workgroups = static_cast<int>(between(1, 3));
  constexpr std::int64_t kChunks = 4;
  std::vector<std::vector<Ops>> bodies(static_cast<std::size_t>(ranks),
                                       std::vector<Ops>(static_cast<std::size_t>(workgroups)));
  const auto chunk = [] { return between(0, kChunks - 1); };
  for (std::int64_t round = between(1, 3); round > 0; --round) {
    const auto distance = static_cast<int>(between(1, ranks - 1));
    for (int rank = 0; rank < ranks; ++rank) {
      for (int w = 0; w < workgroups; ++w) {
        Ops& ops = bodies[static_cast<std::size_t>(rank)][static_cast<std::size_t>(w)];
        const auto peer = static_cast<int>(between(0, ranks - 1));
        switch (between(0, 3)) {
          case 0:
            ops.push_back(transfer(OpKind::group_store, {at(rank, kInput, chunk())},
                                   {multicast(kOutput, chunk())}));
            break;
          case 1:
            ops.push_back(transfer(OpKind::group_load_reduce, {multicast(kInput, chunk())},
                                   {at(rank, kOutput, chunk())}));
            break;
          case 2:
            ops.push_back(transfer(OpKind::group_load_reduce_store, {multicast(kInput, chunk())},
                                   {multicast(kOutput, chunk())}));
            break;
          default:
            ops.push_back(
                transfer(OpKind::put, {at(rank, kInput, chunk())}, {at(peer, kOutput, chunk())}));
            break;
        }
        ops.push_back(sync());
        ops.push_back(signal((rank + distance) % ranks, w * ranks + distance));
        ops.push_back(wait(rank, w * ranks + distance));
        ops.push_back(sync());
      }
    }
  }
  return make(machine, bodies,
              {.chunk_bytes = 16 * between(1, 70),
               .chunks = kChunks,
               .threads = static_cast<std::int32_t>(between(1, 3) * 32),
               .semaphores = workgroups * ranks + 1});
}

}  // namespace hemiola::sim::test
