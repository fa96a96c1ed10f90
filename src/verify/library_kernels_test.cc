// Kernels of libraries are proven, and right on real data.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "core/testing/long_tests.h"
#include "machine/machine.h"
#include "plan/template.h"
#include "program/testing/bound.h"
#include "verify/execute.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

void expect_library_kernel_right(const std::string& name, int ranks, std::int64_t size,
                                 const plan::Parameters& parameters,
                                 const machine::SharedMachine& machine = nullptr) {
  const program::Program kernel =
      program::load(name, {.ranks = ranks, .parameters = parameters, .machine = machine});
  const program::Bound bound = program::bind(kernel, machine, {.size = {size}});
  std::string what = fmt::format("{} of {} ranks, {} B", name, ranks, size);
  for (const auto& [parameter, value] : parameters) what += ", " + parameter + "=" + value;
  const Proof proof = check(bound);
  EXPECT_EQ(proof.verdict, Verdict::proven) << what << ": " << proof.summary;
  const Execution run = execute(bound, {.rounds = 2});
  EXPECT_EQ(run.outcome, Outcome::right) << what << ": " << run.summary;
}

TEST(NcclKernels, rings_are_right_in_every_protocol_from_less_than_a_slice_to_many_pieces) {
  for (const std::string name : {"all-reduce/nccl", "all-gather/nccl", "reduce-scatter/nccl",
                                 "broadcast/nccl", "reduce/nccl"}) {
    for (const int ranks : {2, 4, 8}) {
      if (ranks == 8 && !long_tests()) break;
      for (const std::string protocol : {"ll", "ll128", "simple"}) {
        expect_library_kernel_right(name, ranks, 512, {{"protocol", protocol}});
        expect_library_kernel_right(name, ranks, 1 << 20,
                                    {{"protocol", protocol}, {"channels", "2"}});
      }
    }
  }
}

TEST(NcclKernels, in_place_is_right_with_every_algorithm) {
  for (const std::string name : {"all-reduce/nccl", "all-gather/nccl", "reduce-scatter/nccl",
                                 "broadcast/nccl", "reduce/nccl"}) {
    for (const std::string protocol : {"ll", "simple"})
      expect_library_kernel_right(name, 3, 96 << 10, {{"protocol", protocol}, {"in_place", "1"}});
  }
  for (const std::string algorithm : {"tree", "nvls"})
    expect_library_kernel_right("all-reduce/nccl", 4, 1 << 20,
                                {{"algorithm", algorithm}, {"in_place", "1"}},
                                machine::share(machine::load("dgx-h100")));
}

TEST(NcclKernels, a_ring_that_uses_its_slots_again_is_right) {
  expect_library_kernel_right("all-reduce/nccl", 2, 20 << 20,
                              {{"protocol", "simple"}, {"channels", "1"}});
  expect_library_kernel_right("all-gather/nccl", 4, 4 << 20,
                              {{"protocol", "ll"}, {"channels", "1"}});
}

TEST(NcclKernels, grouped_sends_are_right) {
  for (const int ranks : {2, 3, 8}) {
    for (const std::string protocol : {"ll", "simple"}) {
      expect_library_kernel_right("all-to-all/nccl", ranks, 48 * ranks, {{"protocol", protocol}});
      expect_library_kernel_right("all-to-all/nccl", ranks, ranks << 18, {{"protocol", protocol}});
    }
  }
}

TEST(NcclKernels, that_pull_are_right) {
  const machine::SharedMachine machine = machine::share(machine::load("dgx-a100")),
                               two = machine::share(machine::load("dgx-a100:2"));
  const plan::Parameters simple{{"protocol", "simple"}}, one{{"channels", "1"}},
      tree{{"protocol", "simple"}, {"algorithm", "tree"}};
  for (const int ranks : {2, 3, 8}) {
    if (ranks == 8 && !long_tests()) break;  // 16 are below
    for (const std::string name : {"all-reduce/nccl", "all-gather/nccl", "reduce-scatter/nccl",
                                   "broadcast/nccl", "reduce/nccl", "all-to-all/nccl"})
      expect_library_kernel_right(name, ranks, ranks << 16, simple, machine);
    expect_library_kernel_right("all-reduce/nccl", ranks, 1 << 20, tree, machine);
  }
  expect_library_kernel_right("all-reduce/nccl", 2, 20 << 20, one, machine);
  expect_library_kernel_right("all-to-all/nccl", 2, 10 << 20, one, machine);
  expect_library_kernel_right("all-reduce/nccl", 16, 1 << 20, simple, two);
  expect_library_kernel_right("all-to-all/nccl", 16, 1 << 20, simple, two);
}

TEST(NcclKernels, nvls_is_right_where_a_switch_can_multicast) {
  const machine::Machine machine = machine::load("dgx-h100");
  for (const int ranks : {4, 8}) {
    for (const std::int64_t size : {4 << 10, some_or_all(1 << 20, 8 << 20)})
      expect_library_kernel_right("all-reduce/nccl", ranks, size, {{"algorithm", "nvls"}},
                                  machine::share(machine));
  }
}

TEST(NcclKernels, nvls_over_several_nodes_is_right) {
  for (const std::string name : {"dgx-h100:2", "dgx-h100:3"}) {
    if (name == "dgx-h100:3" && !long_tests()) break;
    const machine::Machine machine = machine::load(name);
    expect_library_kernel_right("all-reduce/nccl", machine.ranks(), machine.ranks() << 14,
                                {{"algorithm", "nvlstree"}, {"channels", "3"}},
                                machine::share(machine));
  }
}

TEST(NcclKernels, rings_over_several_nodes_are_right) {
  const machine::Machine machine = machine::load("clos:2x1x2");
  for (const std::string protocol : {"ll", "simple"}) {
    for (const std::string name : {"all-reduce/nccl", "all-gather/nccl", "reduce-scatter/nccl"})
      expect_library_kernel_right(name, 4, 1 << 20, {{"protocol", protocol}},
                                  machine::share(machine));
  }
}

TEST(NcclKernels, trees_are_right_in_every_protocol) {
  for (const int ranks : {2, 3, 8, 16}) {
    if (ranks == 16 && !long_tests()) break;
    for (const std::string protocol : {"ll", "ll128", "simple"}) {
      const plan::Parameters tree{{"algorithm", "tree"}, {"protocol", protocol}};
      expect_library_kernel_right("all-reduce/nccl", ranks, 512, tree);
      expect_library_kernel_right("all-reduce/nccl", ranks, 96 << 10, tree);
    }
  }
  expect_library_kernel_right("all-reduce/nccl", 3, 6 << 20,
                              {{"algorithm", "tree"}, {"protocol", "simple"}, {"channels", "1"}});
}

TEST(NcclKernels, trees_and_grouped_sends_over_several_nodes_are_right) {
  for (const std::string name : {"clos:2x1x2", "clos:3x1x2", "clos:5x1x1", "clos:8x1x1"}) {
    if (name == "clos:8x1x1" && !long_tests()) break;
    const machine::Machine machine = machine::load(name);
    const int ranks = machine.ranks();
    for (const std::string protocol : {"ll", "ll128", "simple"})
      expect_library_kernel_right("all-reduce/nccl", ranks, 1 << 20,
                                  {{"algorithm", "tree"}, {"protocol", protocol}},
                                  machine::share(machine));
    for (const std::int64_t bytes : {1 << 10, 160 << 10})
      expect_library_kernel_right("all-to-all/nccl", ranks, ranks * bytes, {},
                                  machine::share(machine));
  }
}

TEST(NcclKernels, rings_over_the_cube_mesh_are_right) {
  const machine::Machine machine = machine::load("dgx1-v100");
  expect_library_kernel_right("all-reduce/nccl", 8, 6 << 20, {}, machine::share(machine));
}

TEST(TrtllmKernels, are_right_on_2_to_8_ranks) {
  for (const std::string kernel : {"one-shot", "two-shot"}) {
    for (const int ranks : {2, 4, 8}) {
      for (const std::int64_t size : {512, 96 << 10, 2 << 20}) {
        if (ranks == 8 && size > 1 << 20 && !long_tests()) break;
        expect_library_kernel_right("all-reduce/trtllm-" + kernel, ranks, size,
                                    {{"hidden", "1024"}});
      }
    }
  }
}

/// What back-to-back calls of a changed one-shot kernel would do.
Proof proof_of_one_shot(const std::function<void(program::Program&)>& change) {
  const program::Program kernel = program::load("all-reduce/trtllm-one-shot", {.ranks = 4});
  return check(program::changed(program::bind(kernel, nullptr, {.size = KiB(16)}), change));
}

TEST(LamportMemory, has_to_be_cleared_before_it_is_used_again) {
  const auto remove_clears = [](program::Program& kernel) {
    for (program::Body& body : kernel.bodies)
      std::erase_if(body.ops, [](const auto& op) { return op.kind == program::OpKind::clear; });
  };
  const Proof right = proof_of_one_shot([](program::Program&) {});
  EXPECT_EQ(right.verdict, Verdict::proven) << right.summary;
  EXPECT_TRUE(right.warnings.items().empty());
  const Proof proof = proof_of_one_shot(remove_clears);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, testing::HasSubstr("in call 4"));
}

TEST(LamportMemory, of_two_workspaces_is_cleared_while_others_may_already_store) {
  const Proof proof = proof_of_one_shot([](program::Program& kernel) {
    for (program::Buffer& buffer : kernel.buffers)
      if (buffer.rotation == 3) buffer.rotation = 2;
  });
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, testing::HasSubstr("in call "));
}

}  // namespace
}  // namespace hemiola::verify
