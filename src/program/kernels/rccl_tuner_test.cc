// RCCL's choices on AMD's GPUs, and what is said of GPUs that no tuner knows.
#include "program/kernels/rccl_tuner.h"
#include "program/bind/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "program/program.h"
#include "program/testing/programs.h"

namespace hemiola::program {
namespace {

using test::kKiB;
using test::kMiB;
using ::testing::HasSubstr;

KernelArguments arguments_for(const machine::Machine& machine, std::int64_t size) {
  KernelArguments arguments{
      .name = "test", .ranks = machine.ranks(), .size = {size}, .machine = machine::share(machine)};
  arguments.parameters = {
      {"protocol", "auto"}, {"channels", "0"}, {"threads", "0"}, {"algorithm", "auto"}};
  return arguments;
}

NcclChoice rccl_choice_at(const std::string& name, Collective collective, std::int64_t size) {
  const machine::Machine machine = machine::load(name);
  return choose_nccl(arguments_for(machine, size), collective);
}

// By hand: 12 + 14 x 0.8 us + size / (336 x 0.08 x 8/14 GB/s) with LL, 17 + 14 x 2.1 us + size /
// (336 x 8/14 GB/s) with Simple.
TEST(RcclTuner, times_a_ring_of_one_node_by_latency_and_bandwidth) {
  const machine::Machine machine = machine::load("mi300x-8");
  const KernelArguments arguments = arguments_for(machine, 7'000'000);
  const auto time = [&](Protocol protocol) {
    return nccl_time(arguments, Collective::all_reduce, NcclAlgorithm::ring, protocol);
  };
  EXPECT_NEAR(time(Protocol::ll), 23.2 + 7000 / (336 * 0.08 * 8 / 14), 1e-9);
  EXPECT_NEAR(time(Protocol::simple), 46.4 + 7000 / (336. * 8 / 14), 1e-9);
  EXPECT_LT(time(Protocol::ll128), 0) << "only over NICs";
  EXPECT_LT(nccl_time(arguments, Collective::all_reduce, NcclAlgorithm::nvls, Protocol::simple), 0);
  EXPECT_LT(nccl_time(arguments, Collective::all_reduce, NcclAlgorithm::tree, Protocol::simple), 0);
}

TEST(RcclTuner, leaves_ll_for_simple_on_one_node) {
  for (const char* machine : {"mi300x-8", "mi355x-8"}) {
    EXPECT_EQ(rccl_choice_at(machine, Collective::all_reduce, 256 * kKiB).protocol, Protocol::ll);
    EXPECT_EQ(rccl_choice_at(machine, Collective::all_reduce, 512 * kKiB).protocol,
              Protocol::simple);
    EXPECT_EQ(rccl_choice_at(machine, Collective::all_reduce, 512 * kKiB).algorithm,
              NcclAlgorithm::ring);
  }
  // 352,128 B and 1 MiB per rank.
  EXPECT_EQ(rccl_choice_at("mi300x-8", Collective::reduce_scatter, 2 * kMiB).protocol,
            Protocol::ll);
  EXPECT_EQ(rccl_choice_at("mi300x-8", Collective::reduce_scatter, 4 * kMiB).protocol,
            Protocol::simple);
  EXPECT_EQ(rccl_choice_at("mi355x-8", Collective::reduce_scatter, 8 * kMiB).protocol,
            Protocol::ll);
}

TEST(RcclTuner, goes_by_the_size_over_several_nodes) {
  const auto protocol = [](const char* machine, std::int64_t size) {
    return rccl_choice_at(machine, Collective::all_reduce, size).protocol;
  };
  EXPECT_EQ(protocol("mi300x-8:2", kMiB), Protocol::ll);
  EXPECT_EQ(protocol("mi300x-8:2", 2 * kMiB), Protocol::ll128);
  EXPECT_EQ(protocol("mi300x-8:2", 9 * kMiB), Protocol::ll128);
  EXPECT_EQ(protocol("mi300x-8:2", 10 * kMiB), Protocol::simple);
  EXPECT_EQ(protocol("mi300x-8:4", 10 * kMiB), Protocol::ll128) << "3.8 times as far";
  EXPECT_EQ(protocol("mi355x-8:2", 128 * kKiB), Protocol::ll128);
  EXPECT_EQ(rccl_choice_at("mi300x-8:2", Collective::all_reduce, 64 * kKiB).algorithm,
            NcclAlgorithm::tree);
}

TEST(RcclTuner, takes_a_channel_for_every_ring_of_the_graph_twice_and_blocks_of_256) {
  const NcclChoice large = rccl_choice_at("mi300x-8", Collective::all_reduce, 256 * kMiB);
  EXPECT_EQ(large.channels, 56);
  EXPECT_EQ(large.threads, 256);
  const NcclChoice small = rccl_choice_at("mi300x-8", Collective::all_reduce, 4 * kKiB);
  EXPECT_EQ(small.channels, 1);
  EXPECT_EQ(small.threads, 256) << "they are never fewer";
  EXPECT_EQ(rccl_choice_at("mi300x-8:2", Collective::all_reduce, 256 * kMiB).channels, 64);
}

std::string warnings_of(const std::string& name, const std::string& gpu) {
  const machine::Machine machine = machine::load(name, {.gpu = gpu});
  const Program program =
      load("all-reduce/nccl",
           {.ranks = machine.ranks(), .machine = machine::share(machine), .size = {64 * kKiB}});
  return bind(program, machine::share(machine), {.size = {64 * kKiB}}).warnings().render();
}

TEST(NcclTuner, says_where_it_does_not_know_the_gpu) {
  EXPECT_THAT(warnings_of("switch:4", "generic-astra3"),
              HasSubstr("neither NCCL's tuner nor RCCL's knows the GPU 'generic-astra3'"));
  EXPECT_THAT(warnings_of("switch:4", "generic-astra3"), HasSubstr("as on an H100"));
  for (const char* gpu : {"v100", "a100", "h100", "h200", "b200", "gb200", "mi300x", "mi355x"})
    EXPECT_EQ(warnings_of("switch:4", gpu), "") << gpu;
}

// A tree of 2 nodes of 8 is 8 deep: 64 MiB over 62 channels are 2 chunks of a step.
TEST(Rccl, chunks_are_small_where_a_tree_or_a_chain_has_few) {
  const Bytes step{512 << 10};
  const NcclNodes two{.count = 2, .size = 8};
  EXPECT_EQ(rccl_tree_chunk({std::int64_t{64} << 20}, 62, step, two).count, 64 << 10);
  EXPECT_EQ(rccl_tree_chunk({std::int64_t{1} << 20}, 62, step, two).count, 32 << 10);
  EXPECT_EQ(rccl_tree_chunk({std::int64_t{8} << 30}, 62, step, two), step);
  EXPECT_EQ(rccl_chain_chunk({std::int64_t{32} << 20}, 28, step).count, 64 << 10);
  EXPECT_EQ(rccl_chain_chunk({std::int64_t{4} << 30}, 28, step), step);
}

}  // namespace
}  // namespace hemiola::program
