// The line engine gives what the reference engine gives.

#include "sim/line/line.h"

#include <gtest/gtest.h>

#include "core/testing/long_tests.h"
#include "sim/testing/line_compare.h"

namespace hemiola::sim {
namespace {

using namespace test;

TEST(Line, gives_the_reference_result_on_random_programs_and_machines) {
  int taken = 0, with_credits = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    for (int i = 0; i < some_or_all(4, 16); ++i) {
      machine::Machine machine = any_machine(none_or_at_links());
      const bool part = between(0, 3) == 0;  // a job on two of the GPUs
      if (part)
        machine.place(std::vector<int>{0, static_cast<int>(between(1, machine.ranks() - 1))});
      if (machine.reach(0, 1) == machine::Reach::none) continue;
      const program::Bound program = part ? any_exchange(machine) : any_program(machine);
      const Options options = any_options(program.ranks());
      if (!Line::refuses(machine, program, options).empty()) continue;
      ++taken;
      with_credits += expect_equal(machine, program, options).counters.at("credits.taken") > 0;
    }
  }));
  EXPECT_GT(taken, some_or_all(250, 1000));
  EXPECT_GT(with_credits, some_or_all(25, 100));
}

// Links of GPUs outside the job, and those to NICs and processors that nobody needs, go round in
// circles: they must not make rounds short.
TEST(Line, gives_the_reference_result_on_a_few_gpus_of_a_large_machine) {
  for (const char* name : {"dgx-h100", "dgx-a100", "dgx1-v100", "mi300x-8", "gb200-nvl72"}) {
    machine::Machine machine = machine::load(name);
    machine.place(std::vector<int>{0, 3});
    const program::Bound program = program::bind(
        program::load("all-gather/direct", {.ranks = 2, .machine = machine::share(machine)}),
        machine::share(machine), {.size = KiB(64)});
    SCOPED_TRACE(name);
    expect_equal(machine, program, {});
  }
}

/// How wavefronts wait, and few places for workgroups where all can leave them.
Settings any_waits(bool switched) {
  const std::vector<std::string> times = {"1 fs", "13 ns", "411 ns"};
  Settings settings = {
      {"gpu.sync.wait",
       switched ? "syncmon" : one_of<std::string>({"spin", "backoff", "monitor", "syncmon"})},
      {"gpu.sync.uncached", one_of<std::string>({"true", "false"})},
      {"gpu.sync.flag_spacing", one_of<std::string>({"8 B", "64 B", "128 B"})},
      {"gpu.sync.line_time", one_of(times)},
      {"gpu.sync.backoff_start", one_of(times)},
      {"gpu.sync.backoff_limit", one_of<std::string>({"20 ns", "2 us"})},
      {"gpu.sync.monitor_entries", one_of<std::string>({"0", "1", "16"})},
      {"gpu.sync.wake_latency", one_of(times)},
      {"gpu.sync.handover_time", one_of(times)},
      {"gpu.sync.thread_state", one_of<std::string>({"1 B", "100 B"})}};
  if (switched) settings.emplace_back("gpu.cu.max_workgroups", "1");
  return settings;
}

TEST(Line, gives_the_reference_result_however_wavefronts_wait) {
  int taken = 0;
  std::int64_t switches = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    for (int i = 0; i < 4; ++i) {
      machine::Machine machine = any_machine(none_or_at_links());
      const bool switched = between(0, 1) == 0;
      for (const auto& [name, value] : any_waits(switched)) machine.set(name, value);
      if (switched) machine.set("gpu.cu.count", "1");
      program::Bound program = switched ? any_exchange(machine) : any_program(machine);
      if (program.name() == "test")
        program = program::changed(
            program, [&](auto& p) { p.groups.clear(); });  // which none of its operations uses
      const Options options = any_options(program.ranks());
      if (!Line::refuses(machine, program, options).empty()) continue;
      ++taken;
      expect_equal(machine, program, options);
      if (switched)
        switches += simulate(machine, program, options).counters.at("waits.switched_in");
    }
  }));
  EXPECT_GT(taken, 200);
  EXPECT_GT(switches, 100);
}

// Links of an eighth of the rate: what several send to one waits at its switches.
TEST(Line, gives_the_reference_result_where_uneven_traffic_meets_at_slow_links) {
  machine::Machine machine = machine::load("dgx-h100");
  machine.set("link.nvlink4.bandwidth", "3 GB/s");
  const program::Bound program = program::bind(
      program::load("all-to-all/uneven", {.ranks = 8, .machine = machine::share(machine)}),
      machine::share(machine), {.size = KiB(128)});
  expect_equal(machine, program, {});
  std::int64_t longest = 0;
  for (const LinkUse& link : simulate(machine, program, {}).links)
    longest = std::max(longest, link.max_queue);
  EXPECT_GT(longest, 8) << "there is contention";
}

// Two levels of switches: eight GPUs at two leaves, one wide link from each to a spine. Queues are
// full at both, credits come back from one to the other.
TEST(Line, gives_the_reference_result_where_queues_of_leaves_and_spines_are_full) {
  machine::Machine machine = no_machine("leaves");
  const auto join = [&](machine::NodeId a, machine::NodeId b, std::int32_t link_class) {
    machine.links.push_back({a, b, link_class, 0});
    machine.links.push_back({b, a, link_class, 0});
  };
  for (machine::NodeId n = 0; n < 11; ++n) {
    const bool gpu = n < 8;
    machine.nodes.push_back({.name = "node." + std::to_string(n),
                             .kind = gpu ? machine::NodeKind::xpu : machine::NodeKind::switch_});
    if (!gpu) continue;
    machine.gpus.push_back(n);
    machine.gpu_models.push_back(0);
  }
  for (machine::NodeId gpu = 0; gpu < 8; ++gpu) join(gpu, 8 + gpu / 4, 0);
  for (machine::NodeId leaf = 8; leaf < 10; ++leaf) join(leaf, 10, 1);
  machine.forget_routes();
  for (const auto& [parameter, value] : Settings{{"gpu.cu.count", "4"},
                                                 {"gpu.noc.latency", "20 ns"},
                                                 {"link.*.latency", "100 ns"},
                                                 {"link.thin.bandwidth", "50 GB/s"},
                                                 {"link.wide.bandwidth", "200 GB/s"},
                                                 {"switch.latency", "200 ns"},
                                                 {"switch.queue", "4"}})
    machine.set(parameter, value);
  for (const char* credits : {"0", "24"}) {
    machine.set("link.*.credits", credits);
    for (const char* name : {"all-to-all/direct", "all-reduce/two-shot"}) {
      const program::Bound program = built_in(name, machine, some_or_all(KiB(64), KiB(256)));
      EXPECT_EQ(compare(machine, program, {}), "") << name << ", credits " << credits;
    }
    machine::Machine unlimited = machine;
    unlimited.set("switch.queue", "0");
    const program::Bound program = built_in("all-to-all/direct", machine, KiB(256));
    EXPECT_GT(simulate(machine, program, {}).time, simulate(unlimited, program, {}).time)
        << "full queues hold up others";
  }
}

class LineShipped : public ::testing::TestWithParam<Shipped> {};

TEST_P(LineShipped, gives_the_reference_result) {
  expect_equal(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Machines, LineShipped,
    ::testing::Values(
        Shipped{"all-reduce/ring", "dgx-h100", 8, {}, KiB(256), 0},
        Shipped{"all-reduce/nccl", "dgx-h100", 4, {}, KiB(64), 2},
        Shipped{"all-reduce/two-shot", "dgx-h100", 8, {}, KiB(256), 0},
        Shipped{"all-reduce/vllm", "dgx-h100", 4, {}, KiB(64), 2},
        Shipped{"all-reduce/trtllm", "dgx-h100", 2, {}, KiB(64), 2},
        Shipped{"all-to-all/direct", "dgx-h100", 8, {}, KiB(256), 0},
        Shipped{"all-to-all/uneven", "dgx-h100", 8, {}, KiB(256), 0},
        Shipped{"all-gather/direct", "dgx-a100", 8, {{"transfer", "pull"}}, KiB(256), 0},
        Shipped{"all-reduce/ring", "dgx1-v100", 8, {}, KiB(256), 0},
        Shipped{"all-reduce/one-shot", "mi300x-8", 8, {}, KiB(16), 0},
        Shipped{"reduce-scatter/direct", "torus:4x4", 16, {}, KiB(64), 0},
        Shipped{"all-reduce/halving-doubling", "ring:8", 8, {{"protocol", "ll"}}, KiB(16), 0},
        Shipped{"ag-gemm/swizzle",
                "dgx-h100",
                2,
                {{"m", "256"},
                 {"n", "128"},
                 {"k", "128"},
                 {"tile_m", "64"},
                 {"tile_n", "64"},
                 {"tile_k", "64"}},
                KiB(80),
                0},
        Shipped{"micro/ping-pong", "dgx-h100", 2, {}, KiB(1), 0}));

}  // namespace
}  // namespace hemiola::sim
