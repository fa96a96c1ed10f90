// The marks: times that ASTRA-sim 2.x printed, which this model gives to the nanosecond. They were
// measured with the revisions that docs/astra.md names.
#include "workload/astra/astra.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "core/testing/failure.h"
#include "core/testing/long_tests.h"
#include "workload/testing/astra.h"
#include "workload/trace_reader.h"

namespace hemiola::workload {
namespace {

using test::astra_ring;
using test::astra_switch;
using test::one_collective;
using Kind = AstraAlgorithm::Kind;
using Topology = AstraNetwork::Topology;

constexpr std::int64_t kMiB = std::int64_t{1} << 20, kGiB = std::int64_t{1} << 30;

struct Mark {
  int npus;
  std::int64_t bytes;
  std::int64_t unaware_ns, aware_ns;
};

std::int64_t time_of(const Workload& workload, AstraConfiguration configuration, bool aware) {
  configuration.aware = aware;
  return run_astra(workload, configuration).time_ns;
}

TEST(Astra, RingAllReducesTakeWhatAstraSimSays) {
  const std::vector<Mark> marks{
      {8, kMiB, 64'440, 64'440},          {8, kGiB, 36'790'164, 36'790'164},
      {64, kMiB, 296'896, 296'896},       {64, kGiB, 41'613'556, 41'613'556},
      {256, kMiB, 1'079'200, 1'079'200},  {256, kGiB, 42'887'980, 42'887'980},
      {1024, kMiB, 4'206'616, 4'206'616}, {1024, kGiB, 46'129'156, 46'129'156},
      {2048, kMiB, 8'384'552, 8'384'552},
  };
  for (const Mark& mark : marks) {
    const Workload workload = one_collective(Collective::all_reduce, mark.npus, mark.bytes);
    EXPECT_EQ(time_of(workload, astra_ring(mark.npus), false), mark.unaware_ns) << mark.npus;
    EXPECT_EQ(time_of(workload, astra_ring(mark.npus), true), mark.aware_ns) << mark.npus;
  }
}

TEST(Astra, SwitchAllReducesTakeWhatAstraSimSays) {
  const std::vector<Mark> marks{
      {8, kMiB, 55'222, 57'426},          {8, kGiB, 2'660'888, 4'926'513},
      {64, kMiB, 477'182, 479'207},       {64, kGiB, 3'408'572, 5'878'865},
      {256, kMiB, 1'921'700, 1'923'742},  {256, kGiB, 4'888'370, 7'380'631},
      {1024, kMiB, 7'705'256, 7'701'164}, {1024, kGiB, 10'676'048, 13'172'778},
  };
  for (const Mark& mark : marks) {
    const Workload workload = one_collective(Collective::all_reduce, mark.npus, mark.bytes);
    EXPECT_EQ(time_of(workload, astra_switch(mark.npus), false), mark.unaware_ns) << mark.npus;
    // Two chunks share a port, so nothing folds: eight million messages.
    if (mark.npus == 1024 && mark.bytes == kGiB && !long_tests()) continue;
    EXPECT_EQ(time_of(workload, astra_switch(mark.npus), true), mark.aware_ns) << mark.npus;
  }
}

TEST(Astra, DirectAllToAllsTakeWhatAstraSimSays) {
  struct AllToAll {
    Topology topology;
    Mark mark;
  };
  const std::vector<AllToAll> marks{
      {Topology::switched, {64, kGiB, 313'520, 20'001'020}},
      {Topology::switched, {256, kGiB, 79'145, 20'001'020}},
      {Topology::fully_connected, {256, kGiB, 78'645, 78'645}},
      {Topology::ring, {64, kGiB, 328'520, 165'001'020}},
      {Topology::ring, {256, kGiB, 142'145, 645'001'020}},
  };
  for (const auto& [topology, mark] : marks) {
    AstraConfiguration configuration = astra_ring(mark.npus);
    configuration.system.chunks = 1;
    configuration.network.dimensions.front().topology = topology;
    for (auto& algorithms : configuration.system.algorithms) algorithms.front().kind = Kind::direct;
    const Workload workload = one_collective(Collective::all_to_all, mark.npus, mark.bytes);
    EXPECT_EQ(time_of(workload, configuration, false), mark.unaware_ns) << mark.npus;
    // Each message crosses 64 links, and each link one at a time.
    if (topology == Topology::ring && mark.npus == 256 && !long_tests()) continue;
    EXPECT_EQ(time_of(workload, configuration, true), mark.aware_ns) << mark.npus;
  }
}

TEST(Astra, ARingIsTheClosedFormOfItsSteps) {
  for (const int n : {2, 3, 5, 12}) {
    for (const std::int64_t bytes : {kMiB, 3 * kMiB + 17, kGiB}) {
      const std::int64_t m = bytes / 4 / n;
      const auto step = static_cast<std::int64_t>(500 + static_cast<double>(m) / 53.6870912);
      const std::int64_t reduce = 3 * (m / 1600);
      const std::int64_t chunks = bytes % 4 == 0 ? 4 : 5;  // what is left over is a whole chunk
      EXPECT_EQ(time_of(one_collective(Collective::all_reduce, n, bytes), astra_ring(n), false),
                chunks * (2 * (n - 1) * step + (n - 1) * reduce + (2 * n - 1) * 10))
          << n << " ranks, " << bytes << " B";
    }
  }
}

TEST(Astra, ARankThatIsLateDelaysTheOthers) {
  const Workload workload = one_collective(Collective::all_reduce, 8, kMiB, 3, Time::from_us(100));
  const AstraResult result = run_astra(workload, astra_ring(8));
  EXPECT_EQ(result.time_ns, 164'440);
  EXPECT_FALSE(result.folded);
  // Who is behind the late one gets its first chunk last.
  const auto earliest = std::min_element(
      result.ranks.begin(), result.ranks.end(),
      [](const AstraRank& a, const AstraRank& b) { return a.finish_ns < b.finish_ns; });
  EXPECT_LT(earliest->finish_ns, 164'440);
  EXPECT_EQ(result.ranks[3].host_ns, 100'000);
}

TEST(Astra, TwoDimensionsTakeWhatAstraSimSays) {
  AstraConfiguration configuration = astra_ring(4);
  configuration.network.dimensions.push_back({Topology::ring, 2, 50.0, 500.0});
  for (auto& algorithms : configuration.system.algorithms) algorithms.resize(2);
  const Workload workload = one_collective(Collective::all_reduce, 8, kMiB);
  EXPECT_EQ(time_of(workload, configuration, false), 43'040);
  configuration.aware = true;
  EXPECT_EQ(test::message_of([&] { run_astra(workload, configuration); }),
            "error: the congestion-aware network of ASTRA-sim has one dimension, not 2\n"
            "  hint: the unaware one takes several");
}

TEST(Astra, ARunCanBeStopped) {
  std::atomic<bool> stop = true;
  Monitor monitor{.stop = &stop};
  const Workload workload = one_collective(Collective::all_reduce, 64, kMiB);
  EXPECT_THROW(run_astra(workload, astra_ring(64), {.fold = false, .monitor = &monitor}),
               Interrupted);
  EXPECT_GT(monitor.time_fs.load(), 0);
}

class AstraLlama : public testing::Test {
 protected:
  static constexpr const char* kFolder =
      HEMIOLA_SOURCE_DIR "/../shared/inputs/chakra/llama_tiny_dp2tp2pp2";

  void SetUp() override {
    if (!std::filesystem::exists(kFolder)) GTEST_SKIP() << "no " << kFolder << " here";
    workload_ = read_workload({.path = kFolder});
    // The reader takes it for granted that ranks call a group's collectives in the file's order.
    for (Stream& stream : workload_.streams) stream.assumed = true;
    configuration_.system.roofline = true;
  }

  Workload workload_;
  AstraConfiguration configuration_ = astra_ring(8);
};

TEST_F(AstraLlama, UnawareTakesWhatAstraSimSays) {
  const AstraResult result = run_astra(workload_, configuration_);
  EXPECT_EQ(result.time_ns, 44'637'443);
  EXPECT_EQ(result.ranks.front().exposed_ns * 100 / result.time_ns, 82);  // 82.9 %
  EXPECT_TRUE(result.notices.empty()) << result.notices.render();
}

TEST_F(AstraLlama, AwareTakesWhatAstraSimSays) {
  configuration_.aware = true;
  const AstraResult result = run_astra(workload_, configuration_);
  EXPECT_EQ(result.time_ns, 68'558'608);
  EXPECT_EQ(result.ranks[3].exposed_ns * 1000 / result.time_ns, 888);  // 88.9 %
}

TEST_F(AstraLlama, WorksAreCountedByRank) {
  const AstraResult result = run_astra(workload_, configuration_);
  std::int64_t collectives = 0, sends = 0;
  for (const AstraWork& work : result.works) {
    if (work.rank != 0) continue;
    if (work.kind == NodeKind::collective) collectives += work.count;
    if (work.kind == NodeKind::send) sends += work.count;
    EXPECT_LE(work.shortest_ns * work.count, work.time_ns);
    EXPECT_GE(work.longest_ns * work.count, work.time_ns);
  }
  EXPECT_EQ(collectives, 90);
  EXPECT_EQ(sends, 4);
}

}  // namespace
}  // namespace hemiola::workload
