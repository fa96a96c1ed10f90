// Microbenchmarks of memory: a chain of dependent loads, and copies.
#include <fmt/format.h>

#include "program/kernels/micro.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kLine = 128;  // where workgroups' shares are cut: none writes half a line
constexpr std::int32_t kMicroInput = 0, kMicroOutput = 1;

// One thread loads what its next address depends on, as nvbandwidth's device_to_device_latency_sm
// (NVIDIA/nvbandwidth@66746a3b) and gpu-latency (te42kyfo/gpu-benches@1c36d509) do. Their chains
// are shuffled against prefetchers and TLBs, which this model does not have: here it goes straight.
Program chase(const KernelArguments& arguments) {
  constexpr std::int64_t kPointer = 8;
  constexpr std::int64_t kMostLoads = 4'000'000;
  const bool remote = arguments.word("memory") == "peer";
  if (remote) check_peer(arguments, "memory");
  const Bytes given = arguments.bytes("footprint");
  const std::int64_t stride = arguments.bytes("stride").count;
  const std::int64_t start = arguments.bytes("start").count;
  if (stride < kPointer || stride % kPointer != 0 || start % kPointer != 0)
    throw Failure("a pointer has 8 B: 'stride' and 'start' are multiples of that", kOption);
  const std::int64_t wanted = given.count > 0 ? given.count : arguments.size.count;
  const std::int64_t footprint = std::max<std::int64_t>(1, (wanted + stride - 1) / stride) * stride;
  if (start >= footprint)
    throw Failure(fmt::format("'start' is behind the footprint of {}", to_string(Bytes{footprint})),
                  kOption);
  const std::int64_t hops = arguments.number("hops", 0, kMostLoads);
  MicroWriter writer(arguments);
  const std::int32_t list = writer.fixed("list", {footprint});
  Op load{.kind = OpKind::load,
          .src = {{.rank = constant(remote ? 1 : 0), .buffer = list}},
          .bypass_l1 = arguments.word("cache") == "l2",
          .slice = static_cast<std::int32_t>(start / kPointer),
          .slices = static_cast<std::int32_t>(footprint / kPointer),
          .count = hops > 0 ? hops : footprint / stride,
          .unit = {stride},
          .bytes = {kPointer}};
  if (arguments.word("first") == "other") {
    // A second workgroup, on the next CU, goes once around before: what partitions of the L2 that
    // keep copies have then is what that CU's partition has.
    const std::int32_t ready = writer.semaphore("ready");
    const auto flag = [&](OpKind kind) {
      return Op{.kind = kind, .channel = Channel::memory, .semaphores = {{constant(0), ready}}};
    };
    Op before = load;
    before.count = footprint / stride;
    const std::int32_t timed = writer.body({flag(OpKind::relaxed_wait), std::move(load)});
    const std::int32_t other = writer.body({std::move(before), flag(OpKind::relaxed_signal)});
    writer.run_on(0, {writer.kernel({timed, other}, 32)});
  } else {
    writer.run_on(0, {writer.kernel({writer.body({std::move(load)})}, 32)});
  }
  return writer.finish();
}

/// Rank's counterparts in the order in which they are served, as distances; of `own` memory itself.
std::vector<int> distances(const KernelArguments& arguments) {
  if (arguments.word("memory") == "own") return {0};
  if (arguments.word("ways") != "all") return {1};
  std::vector<int> all;
  for (int distance = 1; distance < arguments.ranks; ++distance) all.push_back(distance);
  return all;
}

// Copies as nvbandwidth's device_to_device_memcpy_*_sm and _ce and TransferBench's a2a do them.
Program copy(const KernelArguments& arguments) {
  const bool own = arguments.word("memory") == "own";
  const std::string& ways = arguments.word("ways");
  if (!own) check_peer(arguments, "memory");
  const int taking_part = own || ways == "one" ? 1 : ways == "both" ? 2 : arguments.ranks;
  const std::string& engine = arguments.word("engine");
  const bool write = arguments.word("direction") == "write";
  const int blocks = blocks_of(arguments);
  MicroWriter writer(arguments, arguments.ranks);
  writer.program().alignment = {kLine};
  const std::vector<int> peers = distances(arguments);
  const Channel channel = engine == "proxy" ? Channel::port : Channel::memory;
  if (engine == "proxy" && !write)
    throw Failure("a proxy only writes", kOption, "give direction=write");
  std::vector<std::vector<Op>> bodies;
  for (const int distance : peers) {
    // Two ranks, or all of them, in a circle; everything of a rank lies in a chunk of its own.
    const Affine peer = own ? own_rank() : neighbour(distance, ways == "all" ? arguments.ranks : 2);
    Op move{.kind = write ? OpKind::put : OpKind::get, .channel = channel};
    move.src = {{.rank = write ? own_rank() : peer, .buffer = kMicroInput}};
    move.dst = {{.rank = write ? peer : own_rank(),
                 .buffer = kMicroOutput,
                 .chunk = write ? own_rank() : peer}};
    const int shares = engine == "cu" ? blocks : 1;
    for (int block = 0; block < shares; ++block) {
      move.slice = block;
      move.slices = shares;
      bodies.push_back({move});
      if (engine == "proxy") bodies.back().push_back({.kind = OpKind::flush, .channel = channel});
    }
  }
  std::vector<std::int32_t> numbers;
  for (std::vector<Op>& ops : bodies) numbers.push_back(writer.body(std::move(ops)));
  std::vector<Stream> streams;
  if (engine == "dma") {
    for (const std::int32_t body : numbers)
      streams.push_back({{.kind = StreamItem::Kind::engine, .index = body}});
  } else {
    const auto threads = static_cast<int>(arguments.number("threads", 1, 1024));
    const auto unroll = static_cast<int>(arguments.number("unroll", 0, 64));
    streams.push_back(writer.kernel(std::move(numbers), threads, unroll));
  }
  for (int rank = 0; rank < taking_part; ++rank) writer.run_on(rank, streams);
  return writer.finish();
}

}  // namespace

std::vector<KernelInfo> micro_memory_kernels() {
  const std::vector<std::string> memories{"own", "peer"};
  return on_one_rank({{"micro/pointer-chase",
                       "rank 0 loads, each load once the one before has returned",
                       {{"memory", "own", memories, "whose: of rank 0, or of rank 1"},
                        {"footprint", "0B", {}, "bytes that are visited in a circle; 0: --size"},
                        {"hops", "0", {}, "loads; 0: once around"},
                        {"stride", "128B", {}, "bytes from one load to the next"},
                        {"start", "0B", {}, "byte of the first load"},
                        {"cache", "l1", {"l1", "l2"}, "l2: loads that bypass the L1"},
                        {"first",
                         "none",
                         {"none", "other"},
                         "other: the next compute unit goes once around before"}},
                       chase},
                      {"micro/copy",
                       "--size bytes from GPU to GPU, or inside one",
                       {{"engine",
                         "cu",
                         {"cu", "dma", "proxy"},
                         "compute units, copy engines, or copy engines through a host proxy"},
                        {"direction", "write", {"write", "read"}, "who copies: source or target"},
                        {"ways",
                         "one",
                         {"one", "both", "all"},
                         "rank 0 with rank 1; both at once; all ranks, each with all others"},
                        {"memory", "peer", memories, "own: inside rank 0"},
                        {"blocks", "0", {}, "workgroups per pair; 0: one per compute unit"},
                        {"threads", "512", {}, "per workgroup"},
                        {"unroll", "0", {}, "loads in flight per thread; 0: the device's"}},
                       copy}});
}

}  // namespace hemiola::program
