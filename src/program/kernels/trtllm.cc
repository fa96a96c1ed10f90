// TensorRT-LLM's all-reduce without fusion: cpp/tensorrt_llm/kernels/communicationKernels/
// allReduceFusionKernels.cu, which flashinfer-ai/flashinfer@04ebdfd2 carries as
// include/flashinfer/comm/trtllm_allreduce_fusion.cuh; its choice by tokens and hidden size:
// cpp/tensorrt_llm/common/customAllReduceUtils.h and thop/allreduceOp.cpp of release 1.3.
#include <algorithm>
#include <array>
#include <bit>

#include "machine/machine.h"
#include "program/kernels/kernel.h"

namespace hemiola::program {
namespace {

constexpr std::int64_t kTokenAccess = 16;  // bytes of a thread at a time
constexpr int kFewestThreads = 128, kMostThreads = 1024;
constexpr int kMostCluster = 8;  // workgroups that share a token
constexpr std::int64_t kSmallestHidden = 128;

bool is_before_hopper(const KernelArguments& arguments) {
  if (arguments.machine == nullptr) return false;
  const std::string& name = arguments.machine->model(0).name;
  return name == "v100" || name == "a100";
}

bool is_blackwell(const KernelArguments& arguments) {
  if (arguments.machine == nullptr) return false;
  const std::string& name = arguments.machine->model(0).name;
  return name == "b200" || name == "gb200";
}

/// The buffer as a matrix: tokens of a hidden size. A short one is a single token.
struct TokenShape {
  std::int64_t tokens = 1;
  std::int64_t hidden = 1;  ///< elements
};

TokenShape token_shape_of(const KernelArguments& arguments) {
  const std::int64_t elements =
      std::max<std::int64_t>(1, arguments.size.count / size_of(arguments.type));
  const std::int64_t hidden = arguments.number("hidden", 1);
  if (elements <= hidden) return {1, elements};
  return {(elements + hidden - 1) / hidden, hidden};
}

struct Grid {
  int blocks = 1;
  int threads = 32;
};

/// A thread for each 16 B of a token, from Hopper on spread over a cluster of workgroups, and as
/// many clusters at a time as there are tokens or room.
Grid grid_of(const KernelArguments& arguments, std::int64_t tokens) {
  const std::int64_t bytes = token_shape_of(arguments).hidden * size_of(arguments.type);
  const auto per_token = static_cast<int>(std::min<std::int64_t>(
      (bytes + kTokenAccess - 1) / kTokenAccess, kMostCluster * kMostThreads));
  const std::int64_t units =
      arguments.machine == nullptr ? 132 : arguments.machine->model(0).cu_count;
  int cluster = is_before_hopper(arguments) ? 1 : kMostCluster;
  while (cluster > 1 && per_token % cluster != 0) cluster /= 2;
  int threads = per_token / cluster;
  const auto wider = [&] {
    threads *= 2;
    cluster /= 2;
  };
  while (threads < kFewestThreads && cluster > 1) wider();
  while (tokens * cluster > units && cluster > 1 && threads <= kMostThreads / 2) wider();
  const std::int64_t blocks = std::min(units, tokens * cluster) / cluster * cluster;
  return {static_cast<int>(std::max<std::int64_t>(blocks, 1)),
          std::clamp((threads + 31) / 32 * 32, 32, kMostThreads)};
}

std::vector<Operand> everywhere(int ranks, Operand operand) {
  std::vector<Operand> all;
  for (int rank = 0; rank < ranks; ++rank) {
    operand.rank = constant(rank);
    all.push_back(operand);
  }
  return all;
}

// Pointers to the workspace, then what stands there.
void begin(KernelWriter& writer, std::int32_t workspace, int workgroup, int workgroups) {
  writer.begin(workgroup, workgroups);
  writer.load(workspace);
  writer.load(workspace);
  writer.sync();
}

// At the end workgroup 0 sees that all have started, which counts the call.
void count_call(KernelWriter& writer, std::int32_t counter, int workgroup, int workgroups) {
  if (workgroup != 0) return;
  writer.sync();
  writer.add({.kind = OpKind::dep_wait,
              .semaphores = {{own_rank(), counter}},
              .target = workgroups,
              .count = workgroups});
}

void note_start(KernelWriter& writer, std::int32_t counter) {
  writer.add({.kind = OpKind::dep_signal, .semaphores = {{own_rank(), counter}}, .relaxed = true});
}

// Every rank stores its data into a slot of its own on all ranks, then polls all slots of its own:
// the data are their flag. Three workspaces take turns; that of the call before is cleared.
Program one_shot(const KernelArguments& arguments) {
  const int n = arguments.ranks;
  KernelWriter writer(arguments, Collective::all_reduce, 1);
  const Grid grid = grid_of(arguments, token_shape_of(arguments).tokens);
  writer.stride_over_grid(grid.threads);
  const std::int32_t workspace = writer.fixed("workspace", {grid.blocks * kTokenAccess});
  const std::int32_t slots = writer.scratch("slots", n);
  writer.program().buffers.back().rotation = 3;
  const std::int32_t started = writer.semaphore("workgroups that started", true);
  for (int w = 0; w < grid.blocks; ++w) {
    begin(writer, workspace, w, grid.blocks);
    note_start(writer, started);
    writer.add(writer.move(
        OpKind::copy_packets, {{.buffer = writer.input()}},
        everywhere(n, {.buffer = slots, .chunk = own_rank(), .access = Access::lamport})));
    writer.add(writer.move(OpKind::clear, {},
                           {{.buffer = slots, .chunks = n, .access = Access::lamport}}));
    std::vector<Operand> sources;
    for (int rank = 0; rank < n; ++rank)
      sources.push_back({.buffer = slots, .chunk = constant(rank), .access = Access::lamport});
    writer.add(
        writer.move(OpKind::reduce_packets, std::move(sources), {{.buffer = writer.output()}}));
    count_call(writer, started, w, grid.blocks);
  }
  return writer.finish("allreduce_fusion_kernel_oneshot_lamport", grid.threads, 1);
}

// Each barrier has 256 flags per peer, shared by the workgroups of the grid: those that were not
// launched are told, too (kBarrierFlagCount). A thread stores its flags one by one, each a release,
// before it waits. Those beyond the first take 17 ns each: two measured calls on two H100
// (calibrate/aic_h100_sxm_customallreduce.csv, trtllm 1.2.0rc5, 16 and 64 KiB) differ by 48 of
// them.
void lamport_barrier(KernelWriter& writer, const std::string& name, int workgroups) {
  constexpr int kFlags = 256;
  constexpr std::int64_t kFlagTime = 17'000'000;  // fs
  const std::int32_t flags = writer.semaphores(name);
  writer.sync();
  writer.tell(flags, true);
  Op further{.kind = OpKind::compute};
  further.duration = Time{((kFlags + workgroups - 1) / workgroups - 1) * kFlagTime};
  if (further.duration > Time{}) writer.add(std::move(further));
  writer.hear(flags, true);
  writer.sync();
}

// Each rank copies its input to where others reach it, adds its share of all of them, stores the
// sum on all ranks, and copies the result out.
Program two_shot(const KernelArguments& arguments) {
  const int n = arguments.ranks;
  KernelWriter writer(arguments, Collective::all_reduce, n);
  const std::int64_t tokens = token_shape_of(arguments).tokens;
  const Grid grid = grid_of(arguments, (tokens + n - 1) / n);
  writer.stride_over_grid(grid.threads);
  const std::int32_t workspace = writer.fixed("workspace", {grid.blocks * kTokenAccess});
  const std::int32_t copies = writer.scratch("copies", n), sums = writer.scratch("sums", n);
  const std::int32_t started = writer.semaphore("workgroups that started", true);
  const auto pairs = [&](std::int32_t from, std::int32_t to) {
    std::vector<Operand> sources, results;
    for (int part = 0; part < n; ++part) {
      sources.push_back({.buffer = from, .chunk = constant(part)});
      results.push_back({.buffer = to, .chunk = constant(part)});
    }
    writer.add(writer.move(OpKind::put, std::move(sources), std::move(results)));
  };
  for (int w = 0; w < grid.blocks; ++w) {
    begin(writer, workspace, w, grid.blocks);
    note_start(writer, started);
    pairs(writer.input(), copies);
    lamport_barrier(writer, "first barrier", grid.blocks);
    writer.add(writer.move(OpKind::read_reduce_send,
                           everywhere(n, {.buffer = copies, .chunk = own_rank()}),
                           everywhere(n, {.buffer = sums, .chunk = own_rank()})));
    lamport_barrier(writer, "second barrier", grid.blocks);
    pairs(sums, writer.output());
    count_call(writer, started, w, grid.blocks);
  }
  return writer.finish("allreduce_fusion_kernel_twoshot_sync", grid.threads, 1);
}

/// By the logarithm of the number of tokens: the first `one_shot` values are one-shot, the next
/// `nccl` are NCCL, the next `two_shot` two-shot, and all that follow NCCL.
struct StrategyRow {
  int one_shot, nccl, two_shot;
};
using Table =
    std::array<std::array<StrategyRow, 7>, 3>;  // 2, 4, 8 ranks; hidden 128, 256, ... 8192

constexpr Table kHopperStrategies{
    {{{{12, 0, 0}, {13, 0, 0}, {13, 0, 0}, {12, 0, 0}, {12, 0, 0}, {12, 0, 0}, {12, 0, 0}}},
     {{{12, 0, 0}, {12, 0, 0}, {12, 0, 0}, {10, 0, 2}, {9, 0, 3}, {8, 0, 3}, {8, 0, 1}}},
     {{{11, 0, 0}, {11, 0, 0}, {10, 0, 2}, {9, 1, 3}, {8, 1, 3}, {7, 1, 2}, {6, 1, 2}}}}};
constexpr Table kBlackwellStrategies{
    {{{{12, 0, 0}, {14, 0, 0}, {14, 0, 0}, {13, 0, 0}, {13, 0, 0}, {12, 0, 0}, {12, 0, 0}}},
     {{{12, 0, 0}, {13, 0, 0}, {13, 0, 0}, {12, 0, 0}, {11, 0, 0}, {10, 0, 2}, {9, 0, 3}}},
     {{{12, 0, 0}, {12, 0, 0}, {11, 0, 0}, {11, 0, 2}, {10, 0, 4}, {9, 0, 4}, {8, 0, 5}}}}};

int log2_of(std::int64_t number) {
  return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(number))) - 1;
}

const char* strategy(const KernelArguments& arguments) {
  const TokenShape shape = token_shape_of(arguments);
  const int n = arguments.ranks;
  const std::int64_t workspace = n <= 2 ? 16'000'000 : 8'000'000;  // getMaxRequiredWorkspaceSize
  const bool known = (n == 2 || n == 4 || n == 8) && shape.hidden >= kSmallestHidden;
  const int hidden = log2_of(shape.hidden) - log2_of(kSmallestHidden);
  if (arguments.size.count > workspace || !known || hidden >= 7) return "all-reduce/nccl";
  const Table& table = is_blackwell(arguments) ? kBlackwellStrategies : kHopperStrategies;
  const StrategyRow& row = table.at(index(log2_of(n) - 1)).at(index(hidden));
  int at = log2_of(shape.tokens);
  if (at < row.one_shot) return "all-reduce/trtllm-one-shot";
  at -= row.one_shot + row.nccl;
  return at >= 0 && at < row.two_shot ? "all-reduce/trtllm-two-shot" : "all-reduce/nccl";
}

Program by_table(const KernelArguments& arguments) {
  return make_other(strategy(arguments), arguments);
}

}  // namespace

std::vector<KernelInfo> trtllm_kernels() {
  const std::vector<plan::ParameterInfo> parameters{
      {"hidden", "4096", {}, "elements of a token: the grid follows the tokens"}};
  return of_collectives(
      {{"all-reduce/trtllm", "TensorRT-LLM's all-reduce: one-shot, two-shot or NCCL by its table",
        parameters, by_table},
       {"all-reduce/trtllm-one-shot",
        "its Lamport kernel: pushes to all ranks, data are their flag", parameters, one_shot},
       {"all-reduce/trtllm-two-shot", "its second kernel: adds a share, stores it on all ranks",
        parameters, two_shot}});
}

}  // namespace hemiola::program
