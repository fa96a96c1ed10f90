// The engine `sampled`: the line engine where nothing repeats, and near it where windows stand for
// the whole.

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <numeric>
#include <ostream>

#include "core/testing/failure.h"
#include "core/testing/long_tests.h"
#include "program/built_in.h"
#include "program/jobs/job.h"
#include "program/jobs/launch_programs.h"
#include "sim/result/profile.h"
#include "sim/testing/line_compare.h"

namespace hemiola::sim {
namespace {

using namespace test;

program::Bound repeating_program(
    const char* program, const char* machine_name, Bytes size,
    const std::vector<std::pair<std::string, std::string>>& parameters = {},
    const Settings& settings = {}) {
  machine::Machine machine = machine::load(machine_name);
  for (const auto& [name, value] : settings) machine.set(name, value);
  const machine::SharedMachine shared = machine::share(machine);
  return program::bind(
      program::load(program,
                    {.ranks = shared->ranks(), .parameters = parameters, .machine = shared}),
      shared, {.size = size});
}

Result run_in(const program::Bound& program, Engine engine, Options options = {}) {
  options.engine = engine;
  return simulate(program, options);
}

TEST(Sampled, is_the_line_engine_and_the_reference_on_random_programs_that_do_not_repeat) {
  int taken = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    for (int i = 0; i < some_or_all(4, 16); ++i) {
      const machine::Machine machine = any_machine(none_or_at_links());
      if (machine.reach(0, 1) == machine::Reach::none) continue;
      const program::Bound program = any_program(machine);
      Options options = any_options(program.ranks());
      if (!Line::refuses(machine, program, options).empty()) continue;
      options.engine = Engine::sampled;
      const Result sampled = simulate(machine, program, options);
      if (const std::string wrong = wrong_in(sampled); !wrong.empty()) RC_FAIL(wrong);
      if (sampled.sampled.windows > 0) continue;  // of a machine that takes its time
      RC_ASSERT(sampled.sampled.share == 1.0 && sampled.sampled.error == 0.0);
      for (const Engine other : {Engine::line, Engine::reference}) {
        options.engine = other;
        const std::string difference = differs(sampled, simulate(machine, program, options));
        if (!difference.empty()) RC_FAIL(machine.name + " " + program.name() + ": " + difference);
      }
      ++taken;
    }
  }));
  EXPECT_GT(taken, some_or_all(250, 1000));
}

/// A program that repeats, and by how much its time may be off.
struct Repeating {
  const char* program;
  const char* machine;
  Bytes size;
  double within;  ///< of the time
  std::vector<std::pair<std::string, std::string>> parameters{};
};
void PrintTo(const Repeating& it, std::ostream* out) {
  *out << it.program << " on " << it.machine;
}

class SampledProgram : public testing::TestWithParam<Repeating> {};

TEST_P(SampledProgram, is_near_the_line_engine_with_a_part_of_its_work) {
  const Repeating& it = GetParam();
  const program::Bound program = repeating_program(it.program, it.machine, it.size, it.parameters);
  const Result line = run_in(program, Engine::line), sampled = run_in(program, Engine::sampled);
  EXPECT_GT(sampled.sampled.windows, 0);
  EXPECT_LT(sampled.sampled.share, 0.5);
  EXPECT_LT(sampled.visited_hops, line.visited_hops * 6 / 10);
  EXPECT_EQ(wrong_in(sampled), "");
  const double error = static_cast<double>(sampled.time.fs) / static_cast<double>(line.time.fs) - 1;
  EXPECT_LT(std::abs(error), it.within) << error;
  EXPECT_LT(std::abs(error), sampled.sampled.error) << "says " << sampled.sampled.error;
  // What is counted is that of the whole.
  for (const char* name : {"requests.loads", "requests.stores", "requests.remote_stores"}) {
    const auto all = static_cast<double>(line.counters.at(name));
    EXPECT_NEAR(static_cast<double>(sampled.counters.at(name)), all, 0.01 * all) << name;
  }
  ASSERT_EQ(sampled.links.size(), line.links.size());
  for (std::size_t l = 0; l < line.links.size(); ++l) {
    const auto all = static_cast<double>(line.links[l].wire_bytes);
    EXPECT_NEAR(static_cast<double>(sampled.links[l].wire_bytes), all, 0.03 * all);
  }
}

INSTANTIATE_TEST_SUITE_P(Sampled, SampledProgram,
                         testing::Values(Repeating{"all-gather/direct", "dgx-h100", MiB(512), 0.01},
                                         Repeating{"reduce-scatter/direct", "dgx-h100", MiB(512),
                                                   0.02},
                                         Repeating{"all-reduce/ring", "dgx-a100", MiB(256), 0.03}));

// The same input, the same bytes: windows are placed by what has happened, not by the host.
TEST(Sampled, says_the_same_each_time) {
  const program::Bound program = repeating_program("all-gather/direct", "dgx-h100", MiB(448));
  const Result first = run_in(program, Engine::sampled), again = run_in(program, Engine::sampled);
  EXPECT_EQ(differs(first, again), "");
  EXPECT_EQ(first.sampled.share, again.sampled.share);
}

// Messages between nodes, most of whose packets go in trains. Pieces have 512 packets.
TEST(Sampled, sends_packets_of_nics_in_trains) {
  // Two GPUs of each of eight nodes, whose L2 holds all of it: no window sees the lines that a
  // smaller one writes back later.
  std::vector<int> ranks;
  for (int node = 0; node < 8; ++node) ranks.insert(ranks.end(), {8 * node, 8 * node + 1});
  machine::Machine machine = machine::load("dgx-h100:8");
  machine.set("gpu.l2.size", "256MiB");
  const machine::SharedMachine shared = machine::select_ranks(machine::share(machine), ranks);
  const program::Bound program = program::bind(
      program::load("all-gather/direct", {.ranks = shared->ranks(), .machine = shared}), shared,
      {.size = MiB(128)});
  const Result line = run_in(program, Engine::line), sampled = run_in(program, Engine::sampled);
  EXPECT_GT(sampled.sampled.windows, 0);
  EXPECT_LT(sampled.sampled.share, 0.4);
  EXPECT_LT(sampled.visited_hops, line.visited_hops * 8 / 10);
  EXPECT_EQ(wrong_in(sampled), "");
  const double error = static_cast<double>(sampled.time.fs) / static_cast<double>(line.time.fs) - 1;
  EXPECT_LT(std::abs(error), sampled.sampled.error) << error;
  EXPECT_LT(sampled.sampled.error, 0.15);
  for (const char* name : {"requests.bursts", "requests.stores", "requests.flags",
                           "stores.injected_bytes", "stores.delivered_bytes"})
    EXPECT_EQ(sampled.counters.at(name), line.counters.at(name)) << name;
  const auto hops = static_cast<double>(line.line_hops);
  EXPECT_NEAR(static_cast<double>(sampled.line_hops), hops, 0.05 * hops);
  // Polls that are passed over are counted.
  const auto polls = static_cast<double>(line.counters.at("requests.polls"));
  EXPECT_NEAR(static_cast<double>(sampled.counters.at("requests.polls")), polls, 0.05 * polls);
  ASSERT_EQ(sampled.links.size(), line.links.size());
  for (std::size_t l = 0; l < line.links.size(); ++l) {
    EXPECT_EQ(sampled.links[l].wire_bytes, line.links[l].wire_bytes);
    EXPECT_EQ(sampled.links[l].payload_bytes, line.links[l].payload_bytes);
    EXPECT_EQ(sampled.links[l].requests, line.links[l].requests);
  }
}

TEST(Sampled, leaves_out_nothing_of_short_runs_through_nics) {
  const program::Bound program = repeating_program("all-gather/direct", "dgx-h100:2", MiB(1));
  const Result sampled = run_in(program, Engine::sampled);
  EXPECT_EQ(sampled.sampled.windows, 0);
  EXPECT_EQ(differs(sampled, run_in(program, Engine::line)), "");
}

// A product whose first tiles move little: at that pace it would take far longer than it does.
TEST(Sampled, leaves_out_nothing_of_a_short_run_that_begins_slowly) {
  const machine::SharedMachine shared = machine::share(machine::load("mi300x-8"));
  const program::Program product =
      program::load("ag-gemm/swizzle", {.ranks = shared->ranks(),
                                        .parameters = {{"m", "2048"},
                                                       {"n", "8192"},
                                                       {"k", "1024"},
                                                       {"transfer", "push"},
                                                       {"tile_m", "128"},
                                                       {"tile_n", "256"},
                                                       {"tile_k", "64"},
                                                       {"realization", "load-store"},
                                                       {"workgroups", "8"},
                                                       {"stages", "2"},
                                                       {"compute_workgroups", "296"}},
                                        .machine = shared});
  const program::Bound program = program::bind(product, shared, {.size = product.fixed_size});
  Options options;
  options.warmup = options.iterations = 1;
  const Result sampled = run_in(program, Engine::sampled, options);
  EXPECT_LT(sampled.time, Time{100'000'000'000});  // fs; of less than 0.3 ms nothing is left out
  EXPECT_EQ(sampled.sampled.windows, 0);
  EXPECT_EQ(differs(sampled, run_in(program, Engine::line, options)), "");
}

// The job's first skip begins in the collective, before anything of the product was simulated. Its
// results were passed over at the pace at which the collective copies inside the GPU.
TEST(Sampled, knows_no_product_from_the_collective_before_it) {
  const machine::SharedMachine shared = machine::share(machine::load("dgx-h100"));
  const auto job = [&] {
    auto job = std::make_shared<program::Job>();
    for (const bool computes : {false, true}) {
      program::Launch launch;
      launch.name = computes ? "product" : "collective";
      launch.program = std::make_shared<const program::Program>(
          computes
              ? program::product_program({4096, 1024, 256}, DataType::bfloat16, shared->model(0))
              : program::load("all-gather/direct", {.ranks = shared->ranks(), .machine = shared}));
      launch.options = {computes ? launch.program->fixed_size : MiB(64), DataType::bfloat16,
                        ReduceOp::sum};
      launch.ranks.resize(static_cast<std::size_t>(shared->ranks()));
      std::iota(launch.ranks.begin(), launch.ranks.end(), 0);
      launch.alone = computes;
      job->launches.push_back(std::move(launch));
    }
    return program::link(std::move(job), shared);
  }();
  Options options;
  const Result line = run_in(job, Engine::line, options);
  options.warmup = 1;
  options.iterations = 3;
  const Result sampled = run_in(job, Engine::sampled, options);
  EXPECT_GT(sampled.sampled.windows, 0);
  EXPECT_LT(sampled.sampled.share, 0.8);
  const auto takes = [](const LaunchResult& launch) {
    return static_cast<double>((launch.end - launch.begin).fs);
  };
  EXPECT_NEAR(takes(sampled.launches[1]) / takes(line.launches[1]), 1, 0.3);
  const double error = static_cast<double>(sampled.time.fs) / static_cast<double>(line.time.fs) - 1;
  EXPECT_LT(std::abs(error), 0.03);
  EXPECT_LT(std::abs(error), sampled.sampled.error);
}

TEST(Sampled, has_no_recording) {
  const program::Bound program = repeating_program("all-gather/direct", "dgx-h100", KiB(64));
  Profile profile;
  Options options;
  options.record = &profile;
  const std::string message =
      hemiola::test::message_of([&] { run_in(program, Engine::sampled, options); });
  EXPECT_NE(message.find("the engine sampled leaves out"), std::string::npos) << message;
  EXPECT_NE(message.find("--engine line"), std::string::npos) << message;
}

}  // namespace
}  // namespace hemiola::sim
