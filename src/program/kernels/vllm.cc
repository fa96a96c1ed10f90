// vLLM's and SGLang's custom all-reduce, csrc/custom_all_reduce.cuh and
// sgl-kernel/csrc/allreduce/custom_all_reduce.cuh (sgl-project/sglang@0bb5d5e9).
#include <fmt/format.h>

#include <algorithm>

#include "program/kernels/kernel.h"

namespace hemiola::program {
namespace {

constexpr int kMostBlocks = 36;  // kMaxBlocks
constexpr int kVllmThreads = 512;
constexpr std::int64_t kPeerAccess = 16;  // bytes of a thread and peer at a time
constexpr std::int64_t kKiB = 1024;

std::int64_t vllm_blocks(const KernelArguments& arguments) {
  const std::int64_t given = arguments.number("blocks");
  if (given > 0) return given;
  const std::int64_t threads = (arguments.size.count + kPeerAccess - 1) / kPeerAccess;
  return std::clamp<std::int64_t>((threads + kVllmThreads - 1) / kVllmThreads, 1, kMostBlocks);
}

void check_ranks(const KernelArguments& arguments) {
  const int n = arguments.ranks;
  if (n == 2 || n == 4 || n == 6 || n == 8) return;
  throw Failure(fmt::format("'{}' runs on 2, 4, 6 or 8 ranks, not {}", arguments.name, n), kOption);
}

// A workgroup reads the counter of its barriers from memory, then tells all counterparts.
void start_barrier(KernelWriter& writer, std::int32_t counters, std::int32_t semaphores) {
  writer.load(counters);
  writer.barrier(semaphores, false);
  writer.sync();
}

Program one_stage(const KernelArguments& arguments) {
  check_ranks(arguments);
  KernelWriter writer(arguments, Collective::all_reduce, 1);
  const auto blocks = static_cast<int>(vllm_blocks(arguments));
  writer.stride_over_grid(kVllmThreads);
  const std::int32_t counters = writer.fixed("counters", {blocks * kPeerAccess});
  for (int w = 0; w < blocks; ++w) {
    writer.begin(w, blocks);
    const std::int32_t start = writer.semaphores(fmt::format("start of block {}", w));
    const std::int32_t end = writer.semaphores(fmt::format("end of block {}", w));
    start_barrier(writer, counters, start);
    std::vector<Operand> sources;  // in the order of ranks: all get the same bits
    for (int rank = 0; rank < writer.ranks(); ++rank)
      sources.push_back({.rank = constant(rank), .buffer = writer.input()});
    writer.add(writer.move(OpKind::read_reduce, std::move(sources), {{.buffer = writer.output()}}));
    writer.sync();
    writer.load(counters);
    writer.barrier(end, false);
  }
  return writer.finish("cross_device_reduce_1stage", kVllmThreads, 1);
}

Program two_stage(const KernelArguments& arguments) {
  check_ranks(arguments);
  const int n = arguments.ranks;
  KernelWriter writer(arguments, Collective::all_reduce, n);
  const auto blocks = static_cast<int>(vllm_blocks(arguments));
  writer.stride_over_grid(kVllmThreads);
  const std::int32_t counters = writer.fixed("counters", {blocks * kPeerAccess});
  const std::int32_t part = writer.scratch("temporary", 1);
  for (int w = 0; w < blocks; ++w) {
    writer.begin(w, blocks);
    const std::int32_t start = writer.semaphores(fmt::format("start of block {}", w));
    const std::int32_t middle = writer.semaphores(fmt::format("middle of block {}", w));
    start_barrier(writer, counters, start);
    std::vector<Operand> sources;
    for (int d = 0; d < n; ++d)
      sources.push_back({.rank = neighbour(d, n), .buffer = writer.input(), .chunk = own_rank()});
    writer.add(writer.move(OpKind::read_reduce, std::move(sources), {{.buffer = part}}));
    writer.sync();
    writer.load(counters);
    writer.barrier(middle, true);
    writer.sync();
    // One part after the other: each load is stored before the next is issued.
    std::vector<Operand> parts, results;
    for (int d = 0; d < n; ++d) {
      parts.push_back({.rank = neighbour(d, n), .buffer = part});
      results.push_back({.buffer = writer.output(), .chunk = neighbour(d, n)});
    }
    writer.add(writer.move(OpKind::get, std::move(parts), std::move(results)));
  }
  return writer.finish("cross_device_reduce_2stage", kVllmThreads, 1);
}

// Which of the two where GPUs are fully connected, and nothing from 8 MiB on: vLLM then calls NCCL.
Program by_size(const KernelArguments& arguments) {
  check_ranks(arguments);
  const int n = arguments.ranks;
  const std::int64_t size = arguments.size.count;
  const bool one = n == 2 || (n <= 4 && size < 512 * kKiB) || size < 256 * kKiB;
  return make_other(one ? "all-reduce/vllm-one-stage" : "all-reduce/vllm-two-stage", arguments);
}

}  // namespace

std::vector<KernelInfo> vllm_kernels() {
  const std::vector<plan::ParameterInfo> parameters{
      {"blocks", "0", {}, "workgroups; 0: one per 8 KiB, at most 36"}};
  return of_collectives(
      {{"all-reduce/vllm", "vLLM's and SGLang's custom all-reduce, one or two stages by size",
        parameters, by_size},
       {"all-reduce/vllm-one-stage", "its first kernel: every rank loads and adds everything",
        parameters, one_stage},
       {"all-reduce/vllm-two-stage",
        "its second kernel: every rank adds its part, then loads the others'", parameters,
        two_stage}});
}

}  // namespace hemiola::program
