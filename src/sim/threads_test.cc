// The line engine gives the same for any number of threads.

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "core/testing/long_tests.h"
#include "sim/support/thread_team.h"
#include "sim/testing/compare_results.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

/// Programs whose rounds visit enough servers to be worth more than one thread.
struct Divided {
  const char* program;
  const char* machine;
  Settings parameters;
  Bytes size;
  Settings settings{};  ///< of the machine
};

void PrintTo(const Divided& divided, std::ostream* out) {
  *out << divided.program << " on " << divided.machine;
}

class Threads : public ::testing::TestWithParam<Divided> {};

TEST_P(Threads, give_the_same_result) {
  const Divided& divided = GetParam();
  machine::Machine machine = machine::load(divided.machine);
  for (const auto& [parameter, value] : divided.settings) machine.set(parameter, value);
  const program::Bound program =
      built_in(divided.program, machine, divided.size, divided.parameters);
  Options options;
  options.fold = false;
  const Result one = simulate(machine, program, options);
  EXPECT_EQ(one.reference_because, "");
  for (const int threads : {3, 64, 2, 4}) {
    if (threads == 2 && !long_tests()) break;
    options.threads = threads;
    EXPECT_EQ(differs(one, simulate(machine, program, options)), "") << threads;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, Threads,
    ::testing::Values(
        Divided{"all-reduce/ring", "dgx-h100", {}, KiB(512)},
        Divided{"all-reduce/nccl", "dgx-a100", {}, KiB(128)},
        Divided{"all-reduce/two-shot", "mi300x-8", {}, KiB(256)},
        Divided{"all-to-all/direct", "switch:12", {}, KiB(384)},
        Divided{"all-gather/direct", "dgx1-v100", {{"transfer", "pull"}}, KiB(256)},
        Divided{"reduce-scatter/direct", "torus:4x4", {}, KiB(256)},
        Divided{"gemm-a2a/fused", "dgx-h100", {{"m", "1024"}, {"n", "256"}}, KiB(512)},
        // NICs, copy engines, switches that multicast.
        Divided{"all-reduce/ring", "dgx-h100:2", {}, KiB(256)},
        Divided{"all-to-all/direct", "dgx-h100:2", {}, KiB(512)},
        Divided{"micro/copy", "dgx-h100", {{"engine", "proxy"}, {"ways", "all"}}, MiB(2)},
        Divided{"all-reduce/nvls", "dgx-h100", {{"realization", "multicast"}}, KiB(512)},
        // Links and ports that choose, and need credits.
        Divided{"all-to-all/direct",
                "dgx-h100",
                {},
                KiB(512),
                {{"link.nvlink4.credits", "40"},
                 {"link.nvlink4.arbitration", "fair"},
                 {"gpu.noc.arbitration", "control_first"}}},
        Divided{"all-reduce/nvls",
                "dgx-h100",
                {{"realization", "multicast"}},
                KiB(512),
                {{"link.nvlink4.credits", "40"}}},
        Divided{"all-to-all/direct",
                "dgx-h100:2",
                {},
                KiB(512),
                {{"switch.queue", "4"}, {"link.*.credits", "40"}}},
        // Waits for what is in memory of others.
        Divided{"micro/ping-pong", "dgx-h100", {{"memory", "peer"}}, KiB(1)}));

TEST(ThreadsOf, a_run_that_fails_are_ended) {
  const machine::Machine machine = ideal("switch:4");
  const std::vector<std::vector<Ops>> bodies = {{{wait(0)}}, {{wait(1)}}, {{wait(2)}}, {{wait(3)}}};
  std::string messages[2];
  for (const int threads : {1, 4}) {
    try {
      run(machine, bodies, {}, {.threads = threads});
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::deadlock);
      messages[threads / 4] = failure.what();
    }
  }
  EXPECT_NE(messages[0], "");
  EXPECT_EQ(messages[0], messages[1]);
}

class ThreadTeams : public ::testing::TestWithParam<int> {};

TEST_P(ThreadTeams, do_all_parts_of_every_phase_and_throw_what_the_first_one_threw) {
  ThreadTeam team(3, GetParam());
  EXPECT_EQ(team.size(), 3);
  std::atomic<int> sum = 0;
  for (int phase = 0; phase < 1000; ++phase) {
    team.run([&](int number) { sum += number + 1; });
    ASSERT_EQ(sum, 6 * (phase + 1));
  }
  const auto throws = [](int number) {
    if (number > 0) throw std::runtime_error(std::to_string(number));
  };
  for (int again = 0; again < 2; ++again) {
    try {
      team.run(throws);
      FAIL();
    } catch (const std::runtime_error& error) {
      EXPECT_STREQ(error.what(), "1");
    }
  }
  team.run([&](int) { ++sum; });
  EXPECT_EQ(sum, 6003);
}

INSTANTIATE_TEST_SUITE_P(Cores, ThreadTeams, ::testing::Values(1, 2, 3, 8));

TEST(ThreadTeamParts, have_no_more_threads_than_cores) {
  ThreadTeam team(64, 2);
  std::mutex mutex;
  std::set<std::thread::id> threads;
  std::vector<int> parts(64);
  team.run([&](int number) {
    ++parts[static_cast<std::size_t>(number)];
    const std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
  });
  EXPECT_EQ(parts, std::vector<int>(64, 1));
  EXPECT_LE(threads.size(), 2U);
  EXPECT_GE(available_cores(), 1);
}

}  // namespace
}  // namespace hemiola::sim
