// What the tests of the simulator share: small machines, small programs, and the costs of the model
// as formulas of docs/model.md (written from its text, not from the engine).
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "program/program.h"
#include "program/testing/bound.h"
#include "sim/simulate.h"

namespace hemiola::sim::test {

using program::Access;
using program::Op;
using program::Operand;
using program::OpKind;
constexpr std::int64_t kLine = 128, kSector = 32;  ///< bytes, of every GPU here
using Settings = std::vector<std::pair<std::string, std::string>>;

/// Of a test that has parameters, as googletest wants it.
inline std::string name_of_case(const std::string& program, const std::string& machine,
                                std::size_t number) {
  std::string name = program + '_' + machine;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return name + '_' + std::to_string(number);
}

/// A built-in topology of ideal GPUs: every part takes the 1 fs that each hop takes at least.
inline machine::Machine ideal(const std::string& topology, const Settings& settings = {}) {
  return machine::load(topology, {.gpu = "ideal", .set = settings});
}

/// A machine on which every cost is large and different from all others, so that a formula with a
/// term too many, too few or swapped gives another time. One slice and one channel, no caches.
inline machine::Machine distinct(const std::string& topology, const Settings& more = {}) {
  Settings settings = {{"gpu.cu.count", "2"},
                       {"gpu.cu.issue_interval", "1900 ps"},
                       {"gpu.cu.reduce_rate_4byte", "13 GB/s"},
                       {"gpu.noc.cu_rate", "64 GB/s"},
                       {"gpu.noc.cu_out_rate", "64 GB/s"},
                       {"gpu.noc.latency", "101 ns"},
                       {"gpu.noc.io_rate", "200 GB/s"},
                       {"gpu.noc.io_latency", "53 ns"},
                       {"gpu.noc.control_size", "24 B"},
                       {"gpu.l2.slices", "1"},
                       {"gpu.l2.slice_rate", "80 GB/s"},
                       {"gpu.l2.latency", "73 ns"},
                       {"gpu.l2.atomic_time", "7 ns"},
                       {"gpu.hbm.channels", "1"},
                       {"gpu.hbm.rate", "40 GB/s"},
                       {"gpu.hbm.latency", "211 ns"},
                       {"gpu.launch.stream_latency", "1009 ns"},
                       {"gpu.launch.stream_interval", "3001 ns"},
                       {"gpu.launch.graph_latency", "509 ns"},
                       {"gpu.launch.graph_interval", "1501 ns"},
                       {"gpu.launch.end_latency", "709 ns"},
                       {"gpu.dispatch.interval", "11 ns"},
                       {"gpu.dispatch.latency", "131 ns"},
                       {"gpu.sync.barrier_latency", "23 ns"},
                       {"gpu.sync.fence_latency", "41 ns"},
                       {"gpu.sync.poll_interval", "29 ns"},
                       {"gpu.sync.op_overhead", "17 ns"},
                       {"gpu.dma.engines", "1"},
                       {"gpu.dma.rate", "30 GB/s"},
                       {"gpu.dma.control_latency", "811 ns"},
                       {"gpu.dma.schedule_latency", "907 ns"},
                       {"gpu.dma.sync_latency", "401 ns"},
                       {"gpu.proxy.fifo_latency", "601 ns"},
                       {"gpu.proxy.request_time", "307 ns"},
                       {"gpu.proxy.network_time", "353 ns"},
                       {"gpu.proxy.return_latency", "503 ns"},
                       {"link.link.bandwidth", "50 GB/s"},
                       {"link.link.latency", "313 ns"},
                       {"link.link.header", "20 B"}};
  if (topology.rfind("switch", 0) == 0) settings.emplace_back("switch.latency", "97 ns");
  settings.insert(settings.end(), more.begin(), more.end());
  return ideal(topology, settings);
}

/// Single costs of a machine whose GPUs are all alike and whose links are of one class, in
/// femtoseconds. Payload 0 on chip is a control packet, on a link a header.
struct Costs {
  explicit Costs(const machine::Machine& m)
      : gpu(m.model(0)), wire(m.link_classes.front()), switches(m.nodes.back().switch_model) {}

  const machine::GpuModel& gpu;
  const machine::LinkClass& wire;
  const machine::SwitchModel& switches;  ///< of the last node, where that is a switch

  std::int64_t on_chip(std::int64_t payload) const {
    return payload > 0 ? payload : gpu.noc_control_size.count;
  }
  std::int64_t cu(std::int64_t payload) const {
    return gpu.noc_cu_rate.time_for(on_chip(payload)).fs;
  }
  std::int64_t io(
      std::int64_t payload) const {  ///< one I/O port and the way between it and the wire
    return gpu.noc_io_rate.time_for(on_chip(payload)).fs + gpu.noc_io_latency.fs;
  }
  std::int64_t slice(std::int64_t bytes) const {
    return gpu.l2_slice_rate.time_for(bytes).fs + gpu.l2_latency.fs;
  }
  std::int64_t hbm(std::int64_t bytes) const {  ///< service of the one channel
    return Rate{gpu.hbm_rate.bytes_per_second * gpu.hbm_efficiency_permille / 1000}
        .time_for(bytes)
        .fs;
  }
  std::int64_t read(std::int64_t bytes) const { return hbm(bytes) + gpu.hbm_latency.fs; }
  std::int64_t serial(std::int64_t payload) const {  ///< one link, without its latency
    return wire.bandwidth.time_for(wire.wire_bytes(payload)).fs;
  }
  std::int64_t link(std::int64_t payload) const { return serial(payload) + wire.latency.fs; }
  /// Two links and the switch between them.
  std::int64_t through_switch(std::int64_t payload) const {
    return 2 * link(payload) + switches.latency.fs;
  }

  std::int64_t start() const {  ///< t = 0 to the first instruction of the first workgroup
    return gpu.launch_stream_latency.fs + gpu.dispatch_latency.fs;
  }
  std::int64_t end() const { return gpu.launch_end_latency.fs; }
  std::int64_t issue() const { return gpu.cu_issue_interval.fs; }
  std::int64_t overhead() const { return gpu.sync_op_overhead.fs; }
  std::int64_t noc() const { return gpu.noc_latency.fs; }

  // One request alone on its way, from its issue on; no caches.
  std::int64_t local_load(std::int64_t bytes) const {
    return issue() + cu(0) + noc() + slice(bytes) + read(bytes) + cu(bytes) + noc();
  }
  std::int64_t local_store(std::int64_t bytes) const {
    return issue() + cu(bytes) + noc() + slice(bytes) + hbm(bytes) + noc();
  }
  /// `there` and `back`: what the links take with and without the payload.
  std::int64_t remote_load(std::int64_t bytes, std::int64_t there, std::int64_t back) const {
    return issue() + cu(0) + noc() + io(0) + there + io(0) + slice(bytes) + read(bytes) +
           io(bytes) + back + io(bytes) + cu(bytes) + noc();
  }
  std::int64_t to_remote_slice(std::int64_t bytes, std::int64_t there) const {
    return issue() + cu(bytes) + noc() + io(bytes) + there + io(bytes);
  }
  std::int64_t remote_store(std::int64_t bytes, std::int64_t there, std::int64_t back) const {
    return to_remote_slice(bytes, there) + slice(bytes) + hbm(bytes) + io(0) + back + io(0) + noc();
  }
};

/// The times at which the requests of a stream are somewhere, in order.
struct Stream {
  std::vector<std::int64_t> times;

  Stream(std::int64_t count, std::int64_t at) : times(static_cast<std::size_t>(count), at) {}
  Stream& serve(std::int64_t service) {
    std::int64_t free = 0;
    for (std::int64_t& time : times) time = free = std::max(time, free) + service;
    return *this;
  }
  Stream& after(std::int64_t latency) {
    for (std::int64_t& time : times) time += latency;
    return *this;
  }
  std::int64_t last() const { return times.back(); }
};

inline constexpr std::int32_t kInput = 0, kOutput = 1, kScratch = 2;

inline Operand at(int rank, std::int32_t buffer, std::int64_t chunk = 0, std::int64_t chunks = 1) {
  return {.rank = constant(rank), .buffer = buffer, .chunk = constant(chunk), .chunks = chunks};
}
/// Chunks of scratch memory that hold packets.
inline Operand packets(int rank, std::int64_t chunk = 0, Access access = Access::packet) {
  Operand operand = at(rank, kScratch, chunk);
  operand.access = access;
  return operand;
}
inline Operand multicast(std::int32_t buffer, std::int64_t chunk = 0) {
  Operand operand = at(0, buffer, chunk);
  operand.access = Access::multicast;
  operand.group = 0;
  return operand;
}
inline Op transfer(OpKind kind, std::vector<Operand> src, std::vector<Operand> dst) {
  Op op{.kind = kind};
  op.channel = program::Channel::memory;
  op.src = std::move(src);
  op.dst = std::move(dst);
  return op;
}
inline Op copy(const Operand& from, const Operand& to) {
  return transfer(OpKind::copy, {from}, {to});
}
inline Op flag(OpKind kind, int rank, std::int32_t index) {
  Op op{.kind = kind};
  op.channel = program::Channel::memory;
  op.semaphores = {{constant(rank), index}};
  return op;
}
inline Op signal(int rank, std::int32_t index = 0) {
  return flag(OpKind::signal, rank, index);
}
inline Op wait(int rank, std::int32_t index = 0) {
  return flag(OpKind::wait, rank, index);
}
inline Op sync() {
  return {.kind = OpKind::sync};
}
inline Op through_port(Op op) {
  op.channel = program::Channel::port;
  return op;
}

using Ops = std::vector<Op>;

struct Shape {
  std::int64_t chunk_bytes = 128;
  std::int64_t chunks = 1;    ///< of each of input, output and scratch
  std::int32_t threads = 32;  ///< per workgroup
  int semaphores = 4;
};

/// On that machine, whichever it is bound to; unchecked.
inline Result simulate(const machine::Machine& machine, const program::Bound& program,
                       const Options& options = {}) {
  return simulate(program::moved_to(machine, program), options);
}

/// bodies[rank][workgroup]; one kernel per rank. Bound, and so checked, on the machine.
inline program::Bound make(const machine::Machine& machine,
                           const std::vector<std::vector<Ops>>& bodies, const Shape& shape = {}) {
  program::Program result;
  result.name = result.source = "test";
  result.format = "template";
  result.ranks = static_cast<int>(bodies.size());
  result.collective = Collective::custom;
  result.buffers = {
      {.name = "input", .kind = program::BufferKind::input, .chunks = {shape.chunks}},
      {.name = "output", .kind = program::BufferKind::output, .chunks = {shape.chunks}},
      {.name = "scratch",
       .kind = program::BufferKind::scratch,
       .chunks = {shape.chunks},
       .packets = true}};
  for (int i = 0; i < shape.semaphores; ++i)
    result.semaphores.push_back({.name = "channel " + std::to_string(i)});
  result.groups.emplace_back();
  for (int rank = 0; rank < result.ranks; ++rank) {
    program::Kernel kernel{.name = "kernel", .threads = shape.threads};
    for (const Ops& ops : bodies[static_cast<std::size_t>(rank)]) {
      kernel.bodies.push_back(static_cast<std::int32_t>(result.bodies.size()));
      result.bodies.push_back({ops});
    }
    result.code_of.push_back(rank);
    result.codes.push_back({{{program::StreamItem{.index = rank}}}});
    result.kernels.push_back(std::move(kernel));
    result.groups.front().push_back(rank);
  }
  result.chunks_per_size = shape.chunks;
  result.barriers = 4;
  result.finish();
  return program::bind(result, machine::share(machine),
                       {.size = {shape.chunks * shape.chunk_bytes}});
}

/// Of all the machine's ranks and its next legal size.
inline program::Bound built_in(const std::string& name, const machine::Machine& machine, Bytes size,
                               const Settings& parameters = {}) {
  const program::Program program = program::load(name, {.ranks = machine.ranks(),
                                                        .parameters = parameters,
                                                        .machine = machine::share(machine),
                                                        .size = size});
  const DataType type = program.fixed_type.value_or(DataType::float32);
  return program::bind(program, machine::share(machine),
                       {.size = program.fixed_size.count > 0 ? program.fixed_size
                                                             : program.next_legal_size(size, type),
                        .type = type});
}

inline Result run(const machine::Machine& machine, const std::vector<std::vector<Ops>>& bodies,
                  const Shape& shape = {}, const Options& options = {}) {
  return simulate(machine, make(machine, bodies, shape), options);
}

inline std::int64_t spent_on(const Result& result, std::size_t rank, Reason reason) {
  return result.attribution.at(rank)[static_cast<std::size_t>(reason)];
}
inline std::int64_t sum(const Attribution& attribution) {
  return std::accumulate(attribution.begin(), attribution.end(), std::int64_t{0});
}

/// `ops` on rank 0 and nothing on the others, without multicast groups: the line engine takes it.
inline program::Bound ops_alone(const machine::Machine& machine, Ops ops) {
  std::vector<std::vector<Ops>> bodies(static_cast<std::size_t>(machine.ranks()));
  bodies[0] = {std::move(ops)};
  return program::changed(make(machine, bodies), [](auto& p) { p.groups.clear(); });
}

}  // namespace hemiola::sim::test
