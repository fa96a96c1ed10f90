// TensorRT-LLM's grids and its choice of a kernel; names that stand for several kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/kernels/kernel.h"
#include "program/testing/programs.h"

namespace hemiola::program {
namespace {

using test::kKiB;
using ::testing::HasSubstr;

/// Half-precision, on `gpu`.
Program trtllm_program(const std::string& name, int ranks, std::int64_t size,
                       const std::string& gpu, const LoadOptions& more = {}) {
  const machine::Machine machine = machine::load(gpu);
  LoadOptions options = more;
  options.ranks = ranks;
  options.machine = machine::share(machine);
  return bind(load(name, options), nullptr, {.size = {size}, .type = DataType::float16}).program();
}

std::string chosen(const std::string& name, int ranks, std::int64_t size,
                   const LoadOptions& more = {}) {
  return trtllm_program(name, ranks, size, "dgx-h100", more).name;
}

std::pair<int, int> grid(std::int64_t size, const std::string& gpu, const std::string& kernel) {
  const Program program = trtllm_program("all-reduce/trtllm-" + kernel, 4, size, gpu);
  return {program.workgroups(0), program.kernels.front().threads};
}

TEST(TrtllmKernels, a_token_is_spread_over_a_cluster_and_less_when_there_are_many) {
  using Grid = std::pair<int, int>;
  EXPECT_EQ(grid(512, "dgx-h100", "one-shot"), Grid(1, 32));
  EXPECT_EQ(grid(8 * kKiB, "dgx-h100", "one-shot"), Grid(4, 128));
  EXPECT_EQ(grid(256 * kKiB, "dgx-h100", "one-shot"), Grid(128, 128));
  EXPECT_EQ(grid(512 * kKiB, "dgx-h100", "one-shot"), Grid(128, 256));
  EXPECT_EQ(grid(4096 * kKiB, "dgx-h100", "one-shot"), Grid(132, 512));
  EXPECT_EQ(grid(32 * kKiB, "dgx-a100", "one-shot"), Grid(4, 512)) << "no clusters before Hopper";
  EXPECT_EQ(grid(64 * kKiB, "dgx-h100", "two-shot"), Grid(8, 128)) << "two tokens per rank";
}

TEST(TrtllmKernels, a_barrier_stores_the_flags_of_workgroups_that_were_not_launched) {
  const auto further = [](std::int64_t size) {
    Time all{};
    const Program program = trtllm_program("all-reduce/trtllm-two-shot", 4, size, "dgx-h100");
    for (const Op& op : program.bodies.front().ops) all = all + op.duration;
    return all;
  };
  EXPECT_EQ(further(64 * kKiB), Time::from_ns(2 * 31 * 17)) << "8 workgroups, two barriers";
  EXPECT_EQ(further(256 * kKiB), Time::from_ns(2 * 7 * 17)) << "32 workgroups";
}

TEST(TrtllmKernels, the_table_chooses_by_tokens_hidden_size_and_workspace) {
  EXPECT_EQ(chosen("all-reduce/trtllm", 4, 1024 * kKiB), "all-reduce/trtllm-one-shot");
  EXPECT_EQ(chosen("all-reduce/trtllm", 4, 2048 * kKiB), "all-reduce/trtllm-two-shot");
  EXPECT_EQ(chosen("all-reduce/trtllm", 4, 8192 * kKiB), "all-reduce/nccl") << "above 8 MB";
  EXPECT_EQ(chosen("all-reduce/trtllm", 2, 8192 * kKiB), "all-reduce/trtllm-one-shot");
  EXPECT_EQ(chosen("all-reduce/trtllm", 8, 1024 * kKiB), "all-reduce/nccl");
  EXPECT_EQ(chosen("all-reduce/trtllm", 8, 2048 * kKiB), "all-reduce/trtllm-two-shot");
  EXPECT_EQ(chosen("all-reduce/trtllm", 6, 48 * kKiB), "all-reduce/nccl");
  EXPECT_EQ(chosen("all-reduce/trtllm", 4, 2048 * kKiB, {.parameters = {{"hidden", "2048"}}}),
            "all-reduce/trtllm-two-shot");
  EXPECT_EQ(chosen("all-reduce/trtllm", 4, 2048 * kKiB, {.parameters = {{"hidden", "512"}}}),
            "all-reduce/trtllm-one-shot");
  EXPECT_EQ(trtllm_program("all-reduce/trtllm", 4, 2048 * kKiB, "hgx-b200").name,
            "all-reduce/trtllm-one-shot");
}

TEST(AutoKernels, vllm_hands_over_to_nccl_from_8_mib_on) {
  EXPECT_EQ(chosen("auto/custom-allreduce", 4, 256 * kKiB), "all-reduce/vllm-one-stage");
  EXPECT_EQ(chosen("auto/custom-allreduce", 4, 512 * kKiB), "all-reduce/vllm-two-stage");
  EXPECT_EQ(chosen("auto/custom-allreduce", 4, 8192 * kKiB), "all-reduce/nccl");
  EXPECT_EQ(chosen("auto/custom-allreduce", 3, 48 * kKiB), "all-reduce/nccl");
  EXPECT_EQ(chosen("auto/custom-allreduce", 4, 64 * kKiB, {.collective = Collective::all_gather}),
            "all-gather/nccl");
}

TEST(AutoKernels, nccl_does_the_collective_that_is_asked_for) {
  EXPECT_EQ(chosen("auto/nccl", 2, 64 * kKiB), "all-reduce/nccl");
  EXPECT_EQ(chosen("auto/nccl", 2, 64 * kKiB, {.collective = Collective::all_to_all}),
            "all-to-all/nccl");
  EXPECT_EQ(chosen("auto/nccl", 2, 64 * kKiB, {.parameters = {{"collective", "broadcast"}}}),
            "broadcast/nccl");
  EXPECT_THAT([] { chosen("auto/nccl", 2, 64 * kKiB, {.collective = Collective::send_recv}); },
              testing::ThrowsMessage<Failure>(HasSubstr("'auto/nccl' has no send")));
  EXPECT_THAT(
      [] {
        chosen("auto/nccl", 2, 64 * kKiB, {.parameters = {{"collective", "sort"}}});
      },
      testing::ThrowsMessage<Failure>(HasSubstr("'collective' of 'auto/nccl' cannot be 'sort'")));
  EXPECT_THAT(
      [] {
        chosen("all-reduce/trtllm", 2, 64 * kKiB, {.parameters = {{"hidden", "0"}}});
      },
      testing::ThrowsMessage<Failure>(HasSubstr("cannot be 0")));
}

}  // namespace
}  // namespace hemiola::program
