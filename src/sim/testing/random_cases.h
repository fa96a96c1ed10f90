// Random machines and programs, for properties that hold for all of them.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "program/built_in.h"
#include "sim/testing/machines.h"

namespace hemiola::sim::test {

/// What random machines may have: nothing; arbitration, credits and finite queues at links and
/// ports; or networks on chip that are meshes as well.
enum class Queues { none, at_links, any };

template <typename T>
T one_of(const std::vector<T>& values) {
  return values[*rc::gen::inRange<std::size_t>(0, values.size())];
}
inline std::int64_t between(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(least, most + 1);
}

/// What the line engine takes.
inline Queues none_or_at_links() {
  return one_of<Queues>({Queues::none, Queues::at_links});
}

// --- Random machines.

/// Costs of GPUs and links, from nothing to large.
inline Settings any_costs(bool with_switches, Queues queues) {
  const std::vector<std::string> times = {"1 fs", "1 ns", "37 ns", "411 ns"};
  const std::vector<std::string> rates = {"inf", "7 GB/s", "50 GB/s", "900 GB/s"};
  const std::vector<std::string> limits = {"0", "0", "1", "5", "64"};
  const bool explicit_ones = queues != Queues::none;
  const std::vector<std::string> policies =
      explicit_ones
          ? std::vector<std::string>{"fifo", "fifo", "data_first", "control_first", "fair"}
          : std::vector<std::string>{"fifo"};
  const std::vector<std::string> rooms = explicit_ones ? limits : std::vector<std::string>{"0"};
  Settings settings = {{"gpu.cu.count", one_of<std::string>({"1", "2", "4"})},
                       {"gpu.cu.unroll", one_of<std::string>({"1", "2", "8"})},
                       {"gpu.cu.issue_interval", one_of<std::string>({"1 fs", "1 ns"})},
                       {"gpu.cu.max_outstanding", one_of(limits)},
                       {"gpu.cu.peer_rate", one_of(rates)},
                       {"gpu.cu.reduce_rate_4byte", one_of(rates)},
                       {"gpu.noc.cu_rate", one_of(rates)},
                       {"gpu.noc.latency", one_of(times)},
                       {"gpu.noc.partitions", one_of<std::string>({"1", "2", "3"})},
                       {"gpu.noc.partition_latency", one_of(times)},
                       {"gpu.noc.io_rate", one_of(rates)},
                       {"gpu.noc.io_latency", one_of(times)},
                       {"gpu.noc.arbitration", one_of(policies)},
                       {"gpu.l2.slices", one_of<std::string>({"1", "3", "8"})},
                       {"gpu.l2.slice_rate", one_of(rates)},
                       {"gpu.l2.latency", one_of(times)},
                       {"gpu.l2.ways", "2"},
                       {"gpu.l2.copies", one_of<std::string>({"true", "false"})},
                       {"gpu.l2.size", one_of<std::string>({"0 B", "3 KiB", "1 MiB"})},
                       {"gpu.hbm.channels", one_of<std::string>({"1", "4"})},
                       {"gpu.hbm.rate", one_of(rates)},
                       {"gpu.hbm.latency", one_of(times)},
                       {"gpu.hbm.turnaround", one_of<std::string>({"0 ns", "9 ns"})},
                       {"gpu.dispatch.interval", one_of(times)},
                       {"gpu.sync.fence_latency", one_of(times)},
                       {"gpu.sync.op_overhead", one_of(times)},
                       {"gpu.sync.poll_interval", one_of<std::string>({"40 ns", "333 ns"})},
                       {"gpu.launch.end_latency", one_of<std::string>({"1 fs", "800 ns"})},
                       {"link.*.bandwidth", one_of(rates)},
                       {"link.*.latency", one_of(times)},
                       {"link.*.max_payload", one_of<std::string>({"64 B", "128 B"})},
                       {"link.*.credits", one_of(rooms)},
                       {"link.*.arbitration", one_of(policies)}};
  if (queues == Queues::any && between(0, 3) == 0) {
    const Settings mesh = {{"gpu.noc.kind", "mesh"},
                           {"gpu.noc.mesh_columns", "2"},
                           {"gpu.noc.mesh_rows", one_of<std::string>({"1", "3"})},
                           {"gpu.noc.link_rate", one_of(rates)},
                           {"gpu.noc.hop_latency", one_of(times)}};
    settings.insert(settings.end(), mesh.begin(), mesh.end());
  }
  if (with_switches) {
    settings.emplace_back("switch.latency", one_of(times));
    settings.emplace_back("switch.queue", one_of(rooms));
    settings.emplace_back("switch.multicast", "true");
  }
  return settings;
}

/// Nothing yet; for ideal GPUs and two kinds of links.
inline machine::Machine no_machine(const std::string& name) {
  machine::Machine machine;
  machine.name = name;
  machine.models.push_back(machine::gpu_model("ideal"));
  machine.link_classes = {{.name = "thin"}, {.name = "wide"}};
  return machine;
}

/// GPUs and switches joined to a random tree, then some more links, parallel ones among them.
inline machine::Machine any_graph() {
  machine::Machine machine = no_machine("random");
  const std::int64_t gpus = between(2, 5), nodes = gpus + between(0, 3);
  for (std::int64_t n = 0; n < nodes; ++n) {
    const bool gpu = n < gpus;
    machine.nodes.push_back({.name = (gpu ? "gpu." : "switch.") + std::to_string(n),
                             .kind = gpu ? machine::NodeKind::xpu : machine::NodeKind::switch_});
    if (!gpu) continue;
    machine.gpus.push_back(static_cast<machine::NodeId>(n));
    machine.gpu_models.push_back(0);
  }
  std::map<std::pair<std::int64_t, std::int64_t>, std::int32_t> lanes;
  const auto join = [&](std::int64_t a, std::int64_t b) {
    if (a == b) return;
    if (a > b) std::swap(a, b);
    const std::int32_t lane = lanes[{a, b}]++;
    const auto from = static_cast<machine::NodeId>(a), to = static_cast<machine::NodeId>(b);
    const auto link_class = static_cast<std::int32_t>(between(0, 1));
    machine.links.push_back({from, to, link_class, lane});
    machine.links.push_back({to, from, link_class, lane});
  };
  for (std::int64_t n = 1; n < nodes; ++n) join(n, between(0, n - 1));
  for (std::int64_t extra = between(0, 4); extra > 0; --extra)
    join(between(0, nodes - 1), between(0, nodes - 1));
  machine.forget_routes();
  return machine;
}

/// Costs of copy engines, proxies and NICs.
inline Settings any_engine_costs() {
  const std::vector<std::string> times = {"1 fs", "1 ns", "37 ns", "411 ns"};
  const std::vector<std::string> rates = {"inf", "7 GB/s", "50 GB/s"};
  return {{"gpu.dma.engines", one_of<std::string>({"1", "2", "3"})},
          {"gpu.dma.rate", one_of(rates)},
          {"gpu.dma.burst", one_of<std::string>({"128 B", "512 B", "4 KiB"})},
          {"gpu.dma.outstanding", one_of<std::string>({"0", "1", "3"})},
          {"gpu.dma.control_latency", one_of<std::string>({"1 fs", "90 ns"})},
          {"gpu.dma.schedule_latency", one_of<std::string>({"1 fs", "60 ns"})},
          {"gpu.dma.sync_latency", one_of(times)},
          {"gpu.proxy.fifo_latency", one_of(times)},
          {"gpu.proxy.request_time", one_of(times)},
          {"gpu.proxy.network_time", one_of(times)},
          {"gpu.proxy.return_latency", one_of(times)}};
}

/// Hosts of GPUs at a switch, with NICs of their own or shared ones, at one or two switches of a
/// network.
inline machine::Machine any_network(Queues queues) {
  using machine::NodeKind;
  machine::Machine machine = no_machine("random network");
  const auto add = [&](const std::string& name, NodeKind kind) {
    const auto node = static_cast<machine::NodeId>(machine.nodes.size());
    machine.nodes.push_back({.name = name + std::to_string(node), .kind = kind});
    return node;
  };
  const auto join = [&](machine::NodeId a, machine::NodeId b) {
    const auto link_class = static_cast<std::int32_t>(between(0, 1));
    machine.links.push_back({a, b, link_class, 0});
    machine.links.push_back({b, a, link_class, 0});
  };
  std::vector<machine::NodeId> leaves;
  for (std::int64_t leaf = between(1, 2); leaf > 0; --leaf)
    leaves.push_back(add("leaf.", NodeKind::switch_));
  if (leaves.size() == 2) join(leaves[0], leaves[1]);
  const std::int64_t gpus = between(1, 2), nics = between(1, gpus);
  for (std::int64_t host = between(2, 3); host > 0; --host) {
    const machine::NodeId inside = add("switch.", NodeKind::switch_);
    std::vector<machine::NodeId> own;
    for (std::int64_t g = 0; g < gpus; ++g) {
      own.push_back(add("gpu.", NodeKind::xpu));
      join(own.back(), inside);
      machine.gpus.push_back(own.back());
      machine.gpu_models.push_back(0);
    }
    for (std::int64_t n = 0; n < nics; ++n) {
      const machine::NodeId nic = add("nic.", NodeKind::nic);
      join(nics < gpus ? inside : own[static_cast<std::size_t>(n)], nic);
      for (const machine::NodeId leaf : leaves) join(nic, leaf);
    }
  }
  machine.forget_routes();
  Settings settings = any_costs(true, queues);
  const Settings engines = any_engine_costs();
  settings.insert(settings.end(), engines.begin(), engines.end());
  for (const auto& [parameter, value] : settings) machine.set(parameter, value);
  if (between(0, 3) == 0)  // much happens at the same time
    for (const char* rate : {"gpu.noc.cu_rate", "gpu.noc.io_rate", "gpu.l2.slice_rate",
                             "gpu.hbm.rate", "link.*.bandwidth"})
      machine.set(rate, "inf");
  const std::vector<std::string> times = {"1 fs", "37 ns", "411 ns"};
  machine.set("nic.mtu", one_of<std::string>({"200 B", "1 KiB", "4 KiB"}));
  machine.set("nic.message_time", one_of(times));
  machine.set("nic.latency", one_of(times));
  machine.set("nic.rate", one_of<std::string>({"inf", "7 GB/s", "50 GB/s"}));
  return machine;
}

inline machine::Machine any_machine(Queues queues = Queues::any) {
  const std::string size = std::to_string(between(2, 5));
  const std::string grid = std::to_string(between(1, 2)) + "x" + std::to_string(between(2, 3));
  const std::string name =
      one_of<std::string>({"switch:" + size, "ring:" + size, "mesh:" + grid, "torus:" + grid, ""});
  // Full queues of switches in a ring can wait for each other: only where a switch is the center.
  if (!name.empty()) return ideal(name, any_costs(name[0] == 's', queues));
  machine::Machine machine = any_graph();
  for (const auto& [parameter, value] : any_costs(false, queues)) machine.set(parameter, value);
  if (between(0, 1) == 0) machine.set("link.thin.bandwidth", "3 GB/s");
  if (queues != Queues::none && between(0, 1) == 0) machine.set("link.thin.credits", "2");
  return machine;
}

// --- Random programs.

inline program::Bound any_built_in(const machine::Machine& machine) {
  std::vector<std::string> names = program::built_in_names();
  std::erase_if(names, [](const std::string& n) {  // sizes of their own; multicast needs a switch
    return !plan::find_template(n)->in_chunks || n == "all-reduce/nvls";
  });
  const std::string name = one_of(names);
  const std::vector<plan::ParameterInfo> known = program::parameters_of(name);
  const auto has = [&](const char* parameter) {
    return std::any_of(known.begin(), known.end(),
                       [&](const auto& info) { return info.name == parameter; });
  };
  const bool chain = has("channels");
  program::LoadOptions options{.ranks = machine.ranks(), .machine = machine::share(machine)};
  const std::vector<std::string> protocols = chain
                                                 ? std::vector<std::string>{"simple", "ll", "ll128"}
                                                 : std::vector<std::string>{"simple", "ll"};
  options.parameters = {{"threads", one_of<std::string>({"32", "64", "96"})},
                        {chain ? "channels" : "workgroups", std::to_string(between(1, 2))}};
  // It takes all-reduce/nvls where a switch multicasts.
  if (name == "all-reduce/synth") options.parameters.emplace_back("realization", "load-store");
  if (has("protocol")) options.parameters.emplace_back("protocol", one_of(protocols));
  if (has("rings"))
    options.parameters.emplace_back("rings", one_of<std::string>({"graph", "identity"}));
  if (chain) options.parameters.emplace_back("piece", one_of<std::string>({"256B", "1KiB"}));
  const program::Program program = program::load(name, options);
  const Bytes size = program.next_legal_size({between(1, 6000)}, DataType::float32);
  return program::bind(
      program, machine::share(machine),
      {.size = size, .type = one_of<DataType>({DataType::float32, DataType::float16})});
}

/// What a workgroup does in a round of any_rounds().
struct Turn {
  static constexpr std::int64_t kChunks = 4;
  Ops& ops;
  int rank = 0, peer = 0;      ///< any, perhaps the same
  std::int32_t semaphore = 0;  ///< of `peer`, for signals that nobody waits for
  static std::int64_t chunk() { return between(0, kChunks - 1); }
};

/// At most so many rounds of what `moves` adds to each Turn, each closed by a signal to rank + d
/// and a wait for that of rank - d: right by construction. Each workgroup has a semaphore for every
/// distance, so that one rank alone signals it.
template <typename Moves>
program::Bound any_rounds(const machine::Machine& machine, std::int64_t most, Moves moves) {
  const int ranks = machine.ranks();
  const int workgroups = static_cast<int>(between(1, 3));
  std::vector<std::vector<Ops>> bodies(static_cast<std::size_t>(ranks),
                                       std::vector<Ops>(static_cast<std::size_t>(workgroups)));
  for (std::int64_t round = between(1, most); round > 0; --round) {
    const auto distance = static_cast<int>(between(1, ranks - 1));
    const bool sync_all = between(0, 3) == 0;
    for (int rank = 0; rank < ranks; ++rank) {
      for (int w = 0; w < workgroups; ++w) {
        Ops& ops = bodies[static_cast<std::size_t>(rank)][static_cast<std::size_t>(w)];
        moves(Turn{ops, rank, static_cast<int>(between(0, ranks - 1)), workgroups * ranks});
        if (sync_all) {
          Op barrier{.kind = OpKind::barrier};
          barrier.workgroups = workgroups;
          ops.push_back(barrier);
        }
        ops.push_back(sync());
        const int next = (rank + distance) % ranks;
        const Op done = signal(next, w * ranks + distance);
        const bool by_nic = machine.reach(rank, next) == machine::Reach::network;
        ops.push_back(by_nic ? through_port(done) : done);
        ops.push_back(wait(rank, w * ranks + distance));
        ops.push_back(sync());
      }
    }
  }
  return make(machine, bodies,
              {.chunk_bytes = 16 * between(1, 70),
               .chunks = Turn::kChunks,
               .threads = static_cast<std::int32_t>(between(1, 3) * 32),
               .semaphores = workgroups * ranks + 1});
}

inline void any_put(const Turn& turn) {
  turn.ops.push_back(transfer(OpKind::put, {at(turn.rank, kInput, Turn::chunk())},
                              {at(turn.peer, kOutput, Turn::chunk())}));
}

/// Puts, gets, copies and reductions; puts through ports are flushed.
inline program::Bound any_exchange(const machine::Machine& machine) {
  return any_rounds(machine, 4, [&](const Turn& turn) {
    const auto [ops, rank, peer, semaphore] = turn;
    const bool far = machine.reach(rank, peer) == machine::Reach::network;
    switch (far ? 4 : between(0, 5)) {
      case 0:
      case 1:
        any_put(turn);
        break;
      case 2:
        ops.push_back(transfer(OpKind::get, {at(peer, kInput, Turn::chunk())},
                               {at(rank, kOutput, Turn::chunk())}));
        break;
      case 3:
        ops.push_back(transfer(OpKind::reduce,
                               {at(rank, kInput, Turn::chunk()), at(peer, kInput, Turn::chunk())},
                               {at(rank, kOutput, Turn::chunk())}));
        break;
      case 4: {
        Op op = through_port(transfer(OpKind::put_signal, {at(rank, kInput, Turn::chunk())},
                                      {at(peer, kOutput, Turn::chunk())}));
        op.semaphores = {{constant(peer), semaphore}};
        ops.push_back(op);
        ops.push_back({.kind = OpKind::flush});
        break;
      }
      default:
        break;
    }
  });
}

/// In some, the last wavefront of workgroups posts, or several workgroups are parts of one block.
inline program::Bound any_program(const machine::Machine& machine) {
  const program::Bound made = between(0, 1) == 0 ? any_built_in(machine) : any_exchange(machine);
  return program::changed(made, [](program::Program& program) {
    for (program::Kernel& kernel : program.kernels) kernel.posts_apart = between(0, 2) == 0;
    if (between(0, 2) > 0) return;
    for (program::Kernel& kernel : program.kernels) {
      std::int32_t block = 0;
      for (std::size_t w = 0; w < kernel.bodies.size(); ++w)
        kernel.blocks.push_back(w == 0 ? 0 : block += static_cast<std::int32_t>(between(0, 1)));
    }
  });
}

inline Options any_options(int ranks) {
  Options options;
  options.threads = static_cast<int>(between(1, 3));
  options.launch = one_of<Launch>({Launch::stream, Launch::graph});
  for (int rank = 0; rank < ranks; ++rank) options.skew.push_back(Time::from_ns(between(0, 500)));
  if (between(0, 2) == 0) {
    options.warmup = static_cast<int>(between(0, 2));
    options.iterations = static_cast<int>(between(1, 3));
  }
  return options;
}

}  // namespace hemiola::sim::test
