// NCCL's choices: thresholds, channels, what is refused.
#include "program/kernels/nccl.h"
#include "program/bind/bound.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "machine/builders.h"
#include "machine/machine.h"
#include "machine/network_routing.h"
#include "program/testing/programs.h"

namespace hemiola::program {
namespace {

using test::kKiB;
using ::testing::HasSubstr;

/// The protocol of a whole call as the tuner chooses it.
Protocol protocol_at(Collective collective, int ranks, const std::string& gpu, std::int64_t size) {
  const machine::Machine machine = machine::load(gpu);
  KernelArguments arguments{
      .name = "test", .ranks = ranks, .size = {size}, .machine = machine::share(machine)};
  arguments.parameters = {
      {"protocol", "auto"}, {"channels", "0"}, {"threads", "0"}, {"algorithm", "ring"}};
  return choose_nccl(arguments, collective).protocol;
}

Program nccl_program(const std::string& name, int ranks, std::int64_t size,
                     const plan::Parameters& parameters = {}) {
  const Program kernel = load(name, {.ranks = ranks, .parameters = parameters});
  return bind(kernel, nullptr, {.size = {size}}).program();
}

/// All-reduce over all GPUs of a machine.
Bound nccl_on(const std::string& machine, Bytes size, const plan::Parameters& parameters) {
  const machine::SharedMachine shared = machine::share(machine::load(machine));
  const Program kernel = load(
      "all-reduce/nccl", {.ranks = shared->ranks(), .parameters = parameters, .machine = shared});
  return bind(kernel, shared, {.size = size});
}

std::string nccl_failure(const std::string& name, int ranks, const plan::Parameters& parameters) {
  try {
    nccl_program(name, ranks, 1 << 20, parameters);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

TEST(NcclKernels, of_protocol_ll_move_the_users_memory_in_elements) {
  const auto kernel = [](const std::string& name, DataType type, const std::string& protocol) {
    const Program program = load(name, {.ranks = 2, .parameters = {{"protocol", protocol}}});
    return bind(program, nullptr, {.size = {64 * kKiB}, .type = type}).kernels().front();
  };
  EXPECT_EQ(kernel("all-reduce/nccl", DataType::float16, "ll").store_bytes, 2);
  EXPECT_EQ(kernel("all-reduce/nccl", DataType::float16, "ll").load_bytes, 4);
  EXPECT_EQ(kernel("reduce-scatter/nccl", DataType::float64, "ll").load_bytes, 8);
  EXPECT_EQ(kernel("all-gather/nccl", DataType::float32, "ll").store_bytes, 1) << "bytes";
  EXPECT_EQ(kernel("all-to-all/nccl", DataType::float32, "ll").store_bytes, 1) << "bytes";
  EXPECT_EQ(kernel("all-reduce/nccl", DataType::float16, "simple").store_bytes, 0);
}

// Where measured times jump: calibrate/aic_h100_sxm_nccl.csv and aic_a100_sxm_nccl.csv.
TEST(NcclTuner, two_gpus_leave_ll_where_measured_times_jump) {
  EXPECT_EQ(protocol_at(Collective::all_reduce, 2, "dgx-h100", 1024 * kKiB), Protocol::ll);
  EXPECT_EQ(protocol_at(Collective::all_reduce, 2, "dgx-h100", 2048 * kKiB), Protocol::simple);
  EXPECT_EQ(protocol_at(Collective::all_gather, 2, "dgx-h100", 2048 * kKiB), Protocol::ll);
  EXPECT_EQ(protocol_at(Collective::all_gather, 2, "dgx-h100", 4096 * kKiB), Protocol::simple);
  EXPECT_EQ(protocol_at(Collective::all_reduce, 2, "dgx-a100", 512 * kKiB), Protocol::ll);
  EXPECT_EQ(protocol_at(Collective::all_reduce, 2, "dgx-a100", 1024 * kKiB), Protocol::simple);
}

TEST(NcclTuner, eight_gpus_pass_through_ll128) {
  EXPECT_EQ(protocol_at(Collective::all_reduce, 8, "dgx-a100", 1024 * kKiB), Protocol::ll);
  EXPECT_EQ(protocol_at(Collective::all_reduce, 8, "dgx-a100", 4096 * kKiB), Protocol::ll128);
  EXPECT_EQ(protocol_at(Collective::all_reduce, 8, "dgx-a100", 65536 * kKiB), Protocol::simple);
}

TEST(NcclTuner, nvls_is_for_more_than_two_ranks_of_a_multicast_switch) {
  const machine::Machine h100 = machine::load("dgx-h100"), a100 = machine::load("dgx-a100");
  const auto time = [](const machine::Machine& machine, int ranks) {
    KernelArguments arguments{
        .name = "test", .ranks = ranks, .size = MiB(8), .machine = machine::share(machine)};
    return nccl_time(arguments, Collective::all_reduce, NcclAlgorithm::nvls, Protocol::simple);
  };
  EXPECT_LT(time(h100, 2), 0);
  EXPECT_GT(time(h100, 4), 25);
  EXPECT_LT(time(a100, 8), 0);
}

// src/graph/tuning.cc: 45.5 GB/s for each of eight heads, 57.7 on two nodes, where NICs would
// do 90.
TEST(NcclTuner, nvls_over_nodes_is_bound_by_a_constant_per_head) {
  const auto time = [](const std::string& name, std::int64_t size, NcclAlgorithm algorithm) {
    const machine::Machine machine = machine::load(name);
    KernelArguments arguments{.name = "test",
                              .ranks = machine.ranks(),
                              .size = Bytes{size},
                              .machine = machine::share(machine)};
    return nccl_time(arguments, Collective::all_reduce, algorithm, Protocol::simple);
  };
  const auto per_byte = [&](const std::string& name) {  // GB/s of bus bandwidth
    const double more = time(name, 2048 * kKiB, NcclAlgorithm::nvls_tree) -
                        time(name, 1024 * kKiB, NcclAlgorithm::nvls_tree);
    const double ranks = machine::load(name).ranks();
    return 1024 * 1.024 / more * 2 * (ranks - 1) / ranks;
  };
  EXPECT_NEAR(per_byte("dgx-h100:4"), 8 * 45.5, 0.1);
  EXPECT_NEAR(per_byte("dgx-h100:2"), 8 * 57.7, 0.1);
  EXPECT_NEAR(time("dgx-h100:4", 0, NcclAlgorithm::nvls_tree), 25 + 2 * 2 * 20.9, 0.1);
  EXPECT_LT(time("dgx-h100", 1 << 20, NcclAlgorithm::nvls_tree), 0) << "one node has nvls";
  EXPECT_LT(time("dgx-h100:2", 1 << 20, NcclAlgorithm::nvls), 0);
  EXPECT_LT(time("dgx-a100:2", 1 << 20, NcclAlgorithm::nvls_tree), 0);
  EXPECT_LT(time("clos:2x4x4", 1 << 20, NcclAlgorithm::nvls_tree), 0) << "no switch multicasts";
}

TEST(NcclKernels, nvls_over_nodes_has_a_tree_for_each_head) {
  const Bound program = nccl_on("dgx-h100:4", MiB(16), {{"algorithm", "nvlstree"}});
  EXPECT_EQ(program.groups().size(), 4U);
  int messages = 0;
  for (const Kernel& kernel : program.kernels()) {
    for (const std::int32_t body : kernel.bodies) {
      for (const Op& op : program.bodies()[static_cast<std::size_t>(body)].ops) {
        if (op.send_to.outbound < 0) continue;
        messages += 1 + static_cast<int>(op.more_to.size());
        EXPECT_EQ(op.send_to.peer({}) % 8, (&kernel - program.kernels().data()) % 8)
            << "messages stay on the rail of their head";
      }
    }
  }
  EXPECT_EQ(messages, 16 * 8 * 2 * 3) << "channels, heads, up and down, edges";
}

TEST(NcclKernels, nvls_has_32_heads_at_most) {
  const Bound program = nccl_on("gb200-nvl72", MiB(1), {{"algorithm", "nvls"}});
  EXPECT_EQ(program.program().chunks_per_size, 32);
  EXPECT_EQ(program.workgroups(31), 3 * program.workgroups(32) / 2) << "the others only copy";
}

// Chains through a mesh have second GPUs in common: where children began there, two NICs of eight
// carried most of it a few levels on.
TEST(NcclKernels, trees_over_nodes_load_all_rails_alike) {
  for (const std::string name : {"mi300x-8:8", "dgx-h100:8", "a100-4nic:8"}) {
    const Bound program = nccl_on(name, MiB(256), {{"algorithm", "tree"}, {"protocol", "simple"}});
    std::map<std::int64_t, int> messages, sent;  // by rail, by rank
    int busiest = 0;
    for (const Kernel& kernel : program.kernels()) {
      const std::int64_t from = &kernel - program.kernels().data();
      for (const std::int32_t body : kernel.bodies) {
        for (const Op& op : program.bodies()[static_cast<std::size_t>(body)].ops) {
          std::vector<ConnectionRef> to = op.more_to;
          if (op.send_to.outbound >= 0) to.push_back(op.send_to);
          for (const ConnectionRef& one : to) {
            if (one.peer({}) / 8 == from / 8) continue;
            EXPECT_EQ(one.peer({}) % 8, from % 8) << name;
            ++messages[from % 8];
            busiest = std::max(busiest, ++sent[from]);
          }
        }
      }
    }
    EXPECT_EQ(messages.size(), machine::nic_owners(*program.machine(), 8).size()) << name;
    for (const auto& [rail, count] : messages)
      EXPECT_EQ(count, messages.begin()->second) << name << ", rail " << rail;
    // Inner nodes of one tree are leaves of the other: each sends to its parent in both, and to two
    // children in one. (RCCL had the first tree in all channels.)
    EXPECT_LE(busiest, messages.begin()->second / 7) << name;
  }
}

TEST(NcclKernels, a_small_message_takes_few_channels_and_threads) {
  EXPECT_EQ(nccl_program("all-reduce/nccl", 2, 512).workgroups(0), 1);
  EXPECT_EQ(nccl_program("all-reduce/nccl", 2, 512).kernels.front().threads, 96);
  EXPECT_EQ(nccl_program("all-reduce/nccl", 2, 16 << 20).workgroups(0), 24);
  EXPECT_EQ(nccl_program("all-reduce/nccl", 2, 16 << 20).kernels.front().threads, 544);
}

TEST(NcclKernels, grouped_sends_take_as_many_channels_as_parts_of_64_kib) {
  // Per channel of the one peer a send, a receive and a part of the own copy.
  EXPECT_EQ(nccl_program("all-to-all/nccl", 2, 128 * kKiB).workgroups(0), 3);
  EXPECT_EQ(nccl_program("all-to-all/nccl", 2, 1024 * kKiB).workgroups(0), 3 * 8);
  EXPECT_EQ(nccl_program("all-to-all/nccl", 2, 2 * 16 * kKiB).protocol, Protocol::ll);
  EXPECT_EQ(nccl_program("all-to-all/nccl", 2, 2 * 64 * kKiB).protocol, Protocol::simple);
}

TEST(NcclKernels, warps_that_do_different_things_are_parts_of_a_block) {
  const Kernel sends = nccl_program("all-to-all/nccl", 2, 2 * 64 * kKiB).kernels.front();
  EXPECT_EQ(sends.blocks, (std::vector{0, 0, 1}));
  EXPECT_EQ(sends.threads_of, (std::vector{320, 320, 640})) << "send, receive, own copy";
  const machine::Machine h100 = machine::load("dgx-h100");
  const Kernel nvls = bind(load("all-reduce/nccl", {.ranks = 8, .machine = machine::share(h100)}),
                           machine::share(h100), {.size = MiB(16)})
                          .kernels()
                          .front();
  EXPECT_EQ(nvls.parts_from(0), 3U);
  EXPECT_EQ(nvls.parts_from(3), 3U);
  EXPECT_EQ(nvls.block_count(), 16);
  EXPECT_EQ(std::vector(nvls.threads_of.begin(), nvls.threads_of.begin() + 3),
            (std::vector{256, 160, 256}));
}

TEST(NcclKernels, slices_are_a_32nd_of_a_slot_at_least) {
  const Fifo fifo{4, MiB(1), 2};
  EXPECT_EQ(fifo.slice_bytes(1000, 2), 32 * kKiB);
  EXPECT_EQ(fifo.slice_bytes(100 * kKiB, 2), 50 * kKiB);
  EXPECT_EQ(fifo.slice_bytes(2048 * kKiB, 2), 1024 * kKiB);
  EXPECT_EQ((Fifo{8, KiB(512)}.slice_bytes(1000, 2)), 512 * kKiB);
}

TEST(NcclTuner, several_nodes_have_two_channels_per_nic_and_pay_for_the_network) {
  const machine::Machine one = machine::load("dgx-h100"), two = machine::load("dgx-h100:2");
  const auto choice = [](const machine::Machine& machine, std::int64_t size) {
    KernelArguments arguments{.name = "test", .ranks = machine.ranks(), .size = {size}};
    arguments.machine = machine::share(machine);
    arguments.parameters = {
        {"protocol", "auto"}, {"channels", "0"}, {"threads", "0"}, {"algorithm", "auto"}};
    return choose_nccl(arguments, Collective::all_reduce);
  };
  EXPECT_EQ(choice(one, 64 << 20).algorithm, NcclAlgorithm::nvls);
  EXPECT_EQ(choice(two, 64 << 20).algorithm, NcclAlgorithm::nvls_tree) << "no switch reaches all";
  EXPECT_EQ(choice(two, 64 << 20).channels, 16);
  EXPECT_EQ(choice(two, 64 << 20).step, KiB(128));
  EXPECT_EQ(choice(machine::load("dgx-a100:2"), 64 << 20).algorithm, NcclAlgorithm::ring);
  EXPECT_EQ(choice(two, 1 << 30).protocol, Protocol::simple);
  EXPECT_EQ(choice(two, 64 << 10).protocol, Protocol::ll);
  const auto time = [](const machine::Machine& machine, Protocol protocol) {
    KernelArguments arguments{.name = "test", .ranks = machine.ranks(), .size = MiB(64)};
    arguments.machine = machine::share(machine);
    return nccl_time(arguments, Collective::all_reduce, NcclAlgorithm::ring, protocol);
  };
  EXPECT_GT(time(two, Protocol::ll), 2 * time(one, Protocol::ll)) << "LL is capped";
}

NcclChoice choice_at(const machine::Machine& machine, int ranks, std::int64_t size) {
  KernelArguments arguments{
      .name = "test", .ranks = ranks, .size = {size}, .machine = machine::share(machine)};
  arguments.parameters = {
      {"protocol", "auto"}, {"channels", "0"}, {"threads", "0"}, {"algorithm", "auto"}};
  return choose_nccl(arguments, Collective::all_reduce);
}

TEST(NcclTuner, trees_are_for_short_buffers_over_several_nodes) {
  const machine::Machine two = machine::load("dgx-h100:2"), four = machine::load("dgx-a100:4");
  EXPECT_EQ(choice_at(two, 16, 64 << 10).algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(choice_at(two, 16, 64 << 10).protocol, Protocol::ll);
  EXPECT_EQ(choice_at(two, 16, 2 << 20).algorithm, NcclAlgorithm::tree);
  EXPECT_EQ(choice_at(two, 16, 2 << 20).protocol, Protocol::ll128);
  EXPECT_EQ(choice_at(two, 16, 1 << 30).algorithm, NcclAlgorithm::nvls_tree);
  EXPECT_EQ(choice_at(four, 32, 4 << 10).algorithm, NcclAlgorithm::tree);
}

TEST(NcclTuner, no_tree_is_faster_inside_one_node) {
  for (const std::string name : {"dgx-a100", "dgx-h100"}) {
    const machine::Machine machine = machine::load(name);
    for (const int ranks : {2, 3, 4, 8}) {
      for (std::int64_t size = 64; size <= 1 << 30; size *= 2)
        EXPECT_NE(choice_at(machine, ranks, size).algorithm, NcclAlgorithm::tree)
            << name << ", " << ranks << " ranks, " << size << " B";
    }
  }
}

Program tree(const machine::Machine& machine, int ranks, const std::string& protocol) {
  const Program kernel =
      load("all-reduce/nccl", {.ranks = ranks,
                               .parameters = {{"algorithm", "tree"}, {"protocol", protocol}},
                               .machine = machine::share(machine)});
  return bind(kernel, machine::share(machine), {.size = MiB(16)}).program();
}

TEST(NcclKernels, pairs_of_a100_pull) {
  for (const std::string gpu : {"dgx-a100", "dgx-h100", "dgx1-v100"}) {
    const machine::Machine machine = machine::load(gpu);
    for (const std::string name : {"all-reduce/nccl", "all-gather/nccl", "all-to-all/nccl"}) {
      const Program kernel = load(name, {.ranks = 2, .machine = machine::share(machine)});
      EXPECT_EQ(bind(kernel, machine::share(machine), {.size = MiB(8)}).program().fifo.pulls,
                gpu == "dgx-a100")
          << gpu << name;
    }
    EXPECT_EQ(tree(machine, 2, "simple").fifo.pulls, gpu == "dgx-a100") << gpu;
  }
}

TEST(NcclKernels, three_warps_of_five_reduce_up_a_tree_and_seven_of_ten_with_flags) {
  const machine::Machine machine = machine::load("dgx-h100");
  const auto threads = [&](const std::string& protocol) {
    return tree(machine, 4, protocol).kernels.at(3).threads_of;
  };
  const std::vector<std::int32_t> simple = threads("simple"), ll = threads("ll");
  ASSERT_EQ(simple.size(), 48U) << "a leaf has both halves in 24 channels";
  EXPECT_EQ(std::vector(simple.begin(), simple.begin() + 2), (std::vector{384, 256}));
  EXPECT_EQ(std::vector(ll.begin(), ll.begin() + 2), (std::vector{448, 192}));
  EXPECT_EQ(tree(machine, 4, "ll").kernels.at(0).threads_of.at(0), 640) << "the root joins them";
  EXPECT_EQ(tree(machine, 4, "ll").kernels.at(3).block_count(), 24);
  EXPECT_EQ(tree(machine, 4, "ll").kernels.at(3).block_of(5), 4U);
}

/// Parents of all ranks in a channel: to whom they send up; -1: the root.
std::vector<int> parents(const Program& program, int channel) {
  std::vector<int> found;
  for (const Kernel& kernel : program.kernels) {
    int up = -1;
    for (const std::int32_t body : kernel.bodies) {
      for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
        const bool goes_up = op.kind == OpKind::send || op.kind == OpKind::recv_reduce_send;
        if (goes_up && op.send_to.channel == channel) up = static_cast<int>(op.send_to.peer({}));
      }
    }
    found.push_back(up);
  }
  return found;
}

// What NCCL prints of two DGX: "Trees [0] 1/8/-1->0->-1", and of the second half of the channels
// the other node's GPU is the root.
TEST(NcclKernels, chains_of_nodes_begin_at_the_gpu_of_the_nic_and_two_trees_have_two_roots) {
  const machine::Machine two = machine::load("dgx-h100:2");
  const Program program = tree(two, 16, "simple");
  EXPECT_EQ(parents(program, 0),
            (std::vector{-1, 0, 1, 2, 3, 4, 5, 6, 0, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(parents(program, 1),
            (std::vector{7, -1, 1, 2, 3, 4, 5, 6, 15, 1, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(parents(program, 8),
            (std::vector{8, 0, 1, 2, 3, 4, 5, 6, -1, 8, 9, 10, 11, 12, 13, 14}));
}

TEST(NcclKernels, trees_over_nodes_are_binary_and_the_second_one_is_mirrored) {
  machine::Machine six = machine::load("clos:6x1x1"), five = machine::load("clos:5x1x1");
  for (machine::Machine* machine : {&six, &five}) machine->set("link.*.bandwidth", "50GB/s");
  const Program program = tree(six, 6, "simple");
  // 0 - 4, which has 2 (1, 3) and 5; one NIC per node: the second tree follows the first.
  EXPECT_EQ(parents(program, 0), (std::vector{-1, 2, 4, 2, 0, 4}));
  EXPECT_EQ(parents(program, 1), (std::vector{1, 5, 3, 1, 3, -1}));
  EXPECT_EQ(parents(tree(five, 5, "simple"), 1), (std::vector{1, -1, 3, 0, 3})) << "shifted";
}

// As many rings as the NIC carries at 48 GB/s each: 4 channels took 155 of 450 GB/s.
TEST(NcclKernels, a_fast_nic_has_several_channels) {
  machine::Machine clos = machine::load("clos:2x2x4");
  const auto channels = [&] {
    return load("all-reduce/nccl", {.ranks = 8,
                                    .parameters = {{"algorithm", "ring"}, {"protocol", "simple"}},
                                    .machine = machine::share(clos)})
        .workgroups(0);
  };
  EXPECT_EQ(channels(), 18);
  clos.set("link.*.bandwidth", "50GB/s");
  EXPECT_EQ(channels(), 4);
}

// crossNic 0 in NCCL: GPU g of one node speaks over the network with GPU g of others alone.
TEST(NcclKernels, trees_over_nodes_stay_on_their_rails) {
  for (const char* name : {"dgx-h100:4", "dgx-h100:7", "dgx-a100:5", "dgx1-v100:4", "mi300x-8:4"}) {
    const machine::Machine machine = machine::load(name);
    const Program program = tree(machine, machine.ranks(), "simple");
    for (int channel = 0; channel < 16; ++channel) {
      const std::vector<int> above = parents(program, channel);
      for (int rank = 0; rank < machine.ranks(); ++rank) {
        const int up = above[static_cast<std::size_t>(rank)];
        if (up < 0 || up / 8 == rank / 8) continue;
        EXPECT_EQ(up % 8, rank % 8) << name << ", channel " << channel << ", rank " << rank;
      }
    }
  }
}

TEST(NcclKernels, grouped_sends_over_nodes_have_few_channels_and_small_slots) {
  const machine::Machine two = machine::load("dgx-h100:2");
  const Program kernel = load("all-to-all/nccl", {.ranks = 16, .machine = machine::share(two)});
  const auto at = [&](std::int64_t peer_bytes) {
    return bind(kernel, machine::share(two), {.size = {16 * peer_bytes}}).program();
  };
  const int roles = 2 * 15 + 1;
  EXPECT_EQ(at(16 * kKiB).workgroups(0), roles);
  EXPECT_EQ(at(128 * kKiB).workgroups(0), roles);
  EXPECT_EQ(at(256 * kKiB).workgroups(0), 2 * roles) << "parts of 128 KiB at most";
  EXPECT_EQ(at(4096 * kKiB).workgroups(0), 4 * roles) << "a NIC of 50 GB/s: 4 per peer";
  EXPECT_EQ(at(16 * kKiB).protocol, Protocol::ll);
  EXPECT_EQ(at(64 * kKiB).fifo.step, KiB(32));
  EXPECT_EQ(at(512 * kKiB).fifo.step, KiB(64));
  EXPECT_EQ(at(4096 * kKiB).fifo.step, KiB(128));
  EXPECT_EQ(at(4096 * kKiB).kernels.front().threads, 64) << "a workgroup shared by 4 peers";
}

TEST(NcclKernels, what_is_not_there_is_said) {
  EXPECT_THAT(nccl_failure("all-reduce/nccl", 2, {{"protocol", "ll256"}}),
              HasSubstr("parameter 'protocol' of 'all-reduce/nccl' cannot be 'll256'"));
  EXPECT_THAT(nccl_failure("all-reduce/nccl", 2, {{"channels", "65"}}),
              HasSubstr("parameter 'channels' cannot be 65"));
  EXPECT_THAT(nccl_failure("all-reduce/nccl", 2, {{"threads", "32"}}), HasSubstr("cannot be 32"));
  EXPECT_THAT(nccl_failure("all-to-all/nccl", 8, {{"channels", "5"}}), HasSubstr("cannot be 5"));
  EXPECT_THAT(nccl_failure("all-gather/nccl", 2, {{"algorithm", "ring"}}),
              HasSubstr("has no parameter 'algorithm'"));
  EXPECT_THAT(nccl_failure("all-reduce/nccl", 8, {{"algorithm", "nvls"}}),
              HasSubstr("no algorithm nvls"));
  EXPECT_THAT(nccl_failure("all-to-all/nccl", 1, {}), HasSubstr("needs at least 2 ranks"));
}

}  // namespace
}  // namespace hemiola::program
