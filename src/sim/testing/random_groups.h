// Random machines whose switches replicate and reduce, and programs with multicast groups.
#pragma once

#include "sim/testing/random_cases.h"

namespace hemiola::sim::test {

/// GPUs at some switches that replicate and reduce, each joined to all of them.
inline machine::Machine any_nvls(Queues queues) {
  using machine::NodeKind;
  machine::Machine machine = no_machine("random planes");
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
  for (const auto& [parameter, value] : any_costs(true, queues)) machine.set(parameter, value);
  machine.set("gpu.fabric.forwards", "false");
  machine.set("switch.reduce_rate", one_of<std::string>({"inf", "9 GB/s", "400 GB/s"}));
  machine.set("switch.reduce_latency", one_of<std::string>({"1 fs", "67 ns"}));
  return machine;
}

/// Stores to the group and loads of it between direct ones.
inline program::Bound any_group_exchange(const machine::Machine& machine) {
  return any_rounds(machine, 3, [](const Turn& turn) {
    switch (between(0, 3)) {
      case 0:
        turn.ops.push_back(transfer(OpKind::group_store, {at(turn.rank, kInput, Turn::chunk())},
                                    {multicast(kOutput, Turn::chunk())}));
        break;
      case 1:
        turn.ops.push_back(transfer(OpKind::group_load_reduce, {multicast(kInput, Turn::chunk())},
                                    {at(turn.rank, kOutput, Turn::chunk())}));
        break;
      case 2:
        turn.ops.push_back(transfer(OpKind::group_load_reduce_store,
                                    {multicast(kInput, Turn::chunk())},
                                    {multicast(kOutput, Turn::chunk())}));
        break;
      default:
        any_put(turn);
    }
  });
}

}  // namespace hemiola::sim::test
