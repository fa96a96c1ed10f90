// Algorithms of ASTRA-sim against times that follow from their steps, and properties of all of
// them.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/testing/failure.h"
#include "workload/astra/astra.h"
#include "workload/testing/astra.h"

namespace hemiola::workload {
namespace {

using hemiola::test::message_of;
using test::astra_link_ns;
using test::astra_ring;
using test::one_collective;
using Kind = AstraAlgorithm::Kind;
using Topology = AstraNetwork::Topology;

constexpr std::int64_t kSize = 12'000'000;  // bytes of the whole collective
constexpr std::int64_t kDelay = 10;         // endpoint

/// Every pair has its own link, so that only an algorithm's own order counts.
AstraConfiguration full(int npus, Kind kind) {
  AstraConfiguration configuration = astra_ring(npus);
  configuration.network.dimensions.front().topology = Topology::fully_connected;
  configuration.system.chunks = 1;
  for (auto& algorithms : configuration.system.algorithms) algorithms.front().kind = kind;
  return configuration;
}

std::int64_t reduce_ns(std::int64_t bytes) {
  return 3 * (bytes / 1600);
}

std::int64_t time_of(Collective kind, int ranks, const AstraConfiguration& configuration) {
  return run_astra(one_collective(kind, ranks, kSize), configuration).time_ns;
}

TEST(AstraCollectives, RingsSendOneMessageAfterTheOther) {
  const AstraConfiguration ring = full(6, Kind::ring);
  const std::int64_t part = kSize / 6, step = astra_link_ns(part);
  EXPECT_EQ(time_of(Collective::all_gather, 6, ring), 5 * step + 6 * kDelay);
  EXPECT_EQ(time_of(Collective::reduce_scatter, 6, ring),
            5 * (step + reduce_ns(part)) + 6 * kDelay);
  // What is for somebody else goes through all that are between.
  EXPECT_EQ(time_of(Collective::all_to_all, 6, ring), 15 * step + 16 * kDelay);
}

TEST(AstraCollectives, DirectSendsToEverybodyAtOnce) {
  const AstraConfiguration direct = full(6, Kind::direct);
  const std::int64_t part = kSize / 6, step = astra_link_ns(part);
  EXPECT_EQ(time_of(Collective::all_gather, 6, direct), step + 2 * kDelay);
  EXPECT_EQ(time_of(Collective::all_to_all, 6, direct), step + 2 * kDelay);
  EXPECT_EQ(time_of(Collective::reduce_scatter, 6, direct), step + reduce_ns(part) + 2 * kDelay);
  EXPECT_EQ(time_of(Collective::all_reduce, 6, direct), 2 * step + reduce_ns(part) + 3 * kDelay);
}

TEST(AstraCollectives, AWindowLimitsWhatIsUnderWay) {
  AstraConfiguration direct = full(7, Kind::direct);
  for (auto& algorithms : direct.system.algorithms) algorithms.front().window = 2;
  const std::int64_t step = astra_link_ns(kSize / 7);
  EXPECT_EQ(time_of(Collective::all_to_all, 7, direct), 3 * step + 4 * kDelay);
  for (auto& algorithms : direct.system.algorithms) algorithms.front().window = 100;
  EXPECT_EQ(time_of(Collective::all_to_all, 7, direct), step + 2 * kDelay);
}

TEST(AstraCollectives, HalvingDoublingHalvesAndDoubles) {
  const AstraConfiguration halving = full(8, Kind::halving_doubling);
  const std::int64_t half = kSize / 2, quarter = kSize / 4, eighth = kSize / 8;
  const std::int64_t once = astra_link_ns(half) + astra_link_ns(quarter) + astra_link_ns(eighth);
  // The last of the halves is not reduced, and what is reduced is as much as the next message.
  const std::int64_t reduced = reduce_ns(quarter) + reduce_ns(eighth);
  EXPECT_EQ(time_of(Collective::all_reduce, 8, halving), 2 * once + reduced + 7 * kDelay);
  EXPECT_EQ(time_of(Collective::reduce_scatter, 8, halving), once + reduced + 4 * kDelay);
  EXPECT_EQ(time_of(Collective::all_gather, 8, halving), once + 4 * kDelay);
}

TEST(AstraCollectives, TreesSendAllOfAChunkUpAndDown) {
  const AstraConfiguration tree = full(4, Kind::double_binary_tree);
  EXPECT_EQ(time_of(Collective::all_reduce, 4, tree),
            4 * astra_link_ns(kSize) + 3 * reduce_ns(kSize) + 5 * kDelay);
  // Two ranks: a leaf and a root.
  EXPECT_EQ(time_of(Collective::all_reduce, 2, full(2, Kind::double_binary_tree)),
            2 * astra_link_ns(kSize) + reduce_ns(kSize) + 3 * kDelay);
}

TEST(AstraCollectives, ChunksGoOneAfterTheOtherUnlessMoreAreActive) {
  AstraConfiguration ring = full(4, Kind::ring);
  ring.system.chunks = 6;
  const std::int64_t chunk = 3 * astra_link_ns(kSize / 6 / 4) + 4 * kDelay;
  EXPECT_EQ(time_of(Collective::all_gather, 4, ring), 6 * chunk);
  ring.system.active_chunks = 4;
  EXPECT_EQ(time_of(Collective::all_gather, 4, ring), 2 * chunk);
}

TEST(AstraCollectives, AChunkHasAByteForEachNpuAtLeast) {
  AstraConfiguration ring = full(4, Kind::ring);
  ring.system.chunks = 4;
  // 4 bytes in 4 chunks are 4 chunks of 4 bytes.
  const AstraResult result = run_astra(one_collective(Collective::all_reduce, 4, 4), ring);
  EXPECT_EQ(result.time_ns, 4 * (6 * 500 + 7 * kDelay));
  EXPECT_EQ(result.messages, 4 * 4 * 6);
}

/// Two groups of a part of the ranks, side by side.
Workload two_groups(Collective kind, std::int64_t bytes) {
  WorkloadBuilder builder("two groups", 8);
  const std::int32_t family = builder.family("tp", {{0, 1, 2, 3}, {4, 5, 6, 7}});
  Trace trace;
  trace.nodes.push_back({.id = 1,
                         .name = builder.name("call"),
                         .kind = NodeKind::collective,
                         .stream = builder.stream("tp"),
                         .work = builder.collective({kind, family, bytes, DataType::float32})});
  builder.workload().classes.push_back(
      {"all", std::make_shared<const Trace>(trace), {0, 1, 2, 3, 4, 5, 6, 7}});
  return builder.take();
}

TEST(AstraCollectives, GroupsOfAPartTakeTenNanosecondsAtTheirEnds) {
  AstraConfiguration ring = full(8, Kind::ring);
  ring.system.endpoint_delay_ns = 70;
  const std::int64_t part = kSize / 4;
  EXPECT_EQ(run_astra(two_groups(Collective::all_gather, kSize), ring).time_ns,
            3 * astra_link_ns(part) + 4 * 10);
  // Their direct all-reduce reduces in its second half too.
  AstraConfiguration direct = full(8, Kind::direct);
  direct.system.endpoint_delay_ns = 70;
  EXPECT_EQ(run_astra(two_groups(Collective::all_reduce, kSize), direct).time_ns,
            2 * astra_link_ns(part) + 2 * reduce_ns(part) + 3 * 10);
}

TEST(AstraCollectives, GroupsOfAPartIgnoreTheDimensions) {
  AstraConfiguration two = full(4, Kind::direct);
  two.network.dimensions.push_back({Topology::fully_connected, 2, 50.0, 500.0});
  for (auto& algorithms : two.system.algorithms) algorithms.push_back({.kind = Kind::direct});
  // Several algorithms, none of which is for one dimension: a ring.
  EXPECT_EQ(run_astra(two_groups(Collective::all_gather, kSize), two).time_ns,
            3 * astra_link_ns(kSize / 4) + 4 * 10);
}

TEST(AstraCollectives, AllReducesScatterOverTheFirstDimensionsWhenAwareOfBandwidth) {
  AstraConfiguration two = full(4, Kind::ring);
  two.network.dimensions.push_back({Topology::fully_connected, 3, 50.0, 500.0});
  for (auto& algorithms : two.system.algorithms) algorithms.push_back({.kind = Kind::direct});
  const std::int64_t all = kSize, quarter = kSize / 4, twelfth = kSize / 12;
  const std::int64_t scatter = 3 * (astra_link_ns(quarter) + reduce_ns(quarter)) + 4 * kDelay;
  const std::int64_t gather = 3 * astra_link_ns(quarter) + 4 * kDelay;
  const std::int64_t middle = 2 * astra_link_ns(twelfth) + reduce_ns(twelfth) + 3 * kDelay;
  EXPECT_EQ(time_of(Collective::all_reduce, 12, two), scatter + middle + gather);
  two.system.local_bandwidth_aware = false;
  EXPECT_EQ(time_of(Collective::all_reduce, 12, two),
            6 * astra_link_ns(all / 4) + 3 * reduce_ns(all / 4) + 7 * kDelay +  // over the first
                2 * astra_link_ns(all / 3) + reduce_ns(all / 3) + 3 * kDelay);
  // One algorithm for two dimensions goes over the first of them only, and a notice says so.
  for (auto& algorithms : two.system.algorithms) algorithms.resize(1);
  const AstraResult result = run_astra(one_collective(Collective::all_gather, 12, kSize), two);
  EXPECT_EQ(result.time_ns, 3 * astra_link_ns(kSize / 12) + 4 * kDelay);
  EXPECT_EQ(result.notices.render(),
            "warning: all-gather goes over 1 of 2 dimensions only, as its list of algorithms says\n"
            "  hint: give an algorithm for each dimension");
}

TEST(AstraCollectives, OneRankStandsForAllWithTheSameResult) {
  std::mt19937 random(7);
  const std::vector<Kind> kinds{Kind::ring, Kind::direct, Kind::halving_doubling};
  const std::vector<Topology> topologies{Topology::ring, Topology::fully_connected,
                                         Topology::switched};
  int folded = 0;
  for (int i = 0; i < 400; ++i) {
    const auto pick = [&](int most) {
      return static_cast<int>(random() % static_cast<unsigned>(most));
    };
    const int ranks = pick(3) == 0 ? 8 : 2 + pick(7);
    AstraConfiguration configuration = full(ranks, Kind::ring);
    configuration.aware = pick(2) == 0;
    configuration.network.dimensions.front().topology =
        topologies[static_cast<std::size_t>(pick(3))];
    configuration.network.dimensions.front().latency_ns = pick(3) * 250.5;
    configuration.system.chunks = 1 + pick(5);
    configuration.system.active_chunks = 1 + pick(3);
    configuration.system.endpoint_delay_ns = pick(3) * 5;
    const auto collective = static_cast<Collective>(pick(4));
    AstraAlgorithm& algorithm =
        configuration.system.algorithms[static_cast<std::size_t>(collective)].front();
    algorithm.kind = kinds[static_cast<std::size_t>(pick(3))];
    algorithm.window = pick(4);
    if (algorithm.kind == Kind::halving_doubling &&
        (ranks != 8 || collective == Collective::all_to_all))
      continue;
    const Workload workload = one_collective(collective, ranks, 1 + pick(3'000'000));
    const AstraResult one = run_astra(workload, configuration);
    const AstraResult all = run_astra(workload, configuration, {.fold = false});
    folded += one.folded ? 1 : 0;
    EXPECT_EQ(one.time_ns, all.time_ns) << i;
    EXPECT_EQ(one.messages, all.messages) << i;
    ASSERT_EQ(one.ranks.size(), all.ranks.size());
    for (std::size_t r = 0; r < one.ranks.size(); ++r) {
      EXPECT_EQ(one.ranks[r].finish_ns, all.ranks[r].finish_ns) << i;
      EXPECT_EQ(one.ranks[r].communication_ns, all.ranks[r].communication_ns) << i;
    }
    EXPECT_FALSE(all.folded);
  }
  EXPECT_GT(folded, 100);
}

TEST(AstraCollectives, OneIsUnderWayAtATimeSoThatTheSchedulingPolicyDecidesNothing) {
  WorkloadBuilder builder("two calls", 4);
  const std::int32_t family = builder.family("all", {{0, 1, 2, 3}});
  Trace trace;
  for (std::uint64_t id = 1; id <= 2; ++id)
    trace.nodes.push_back(
        {.id = 3 - id,  // the second of the file has the lower id
         .name = builder.name("call"),
         .kind = NodeKind::collective,
         .stream = builder.stream("any", false),
         .work = builder.collective({Collective::all_gather, family,
                                     static_cast<std::int64_t>(id) * kSize, DataType::float32})});
  builder.workload().classes.push_back({"all", std::make_shared<const Trace>(trace), {0, 1, 2, 3}});
  const Workload workload = builder.take();
  AstraConfiguration ring = full(4, Kind::ring);
  const AstraResult last = run_astra(workload, ring);
  ring.system.order = AstraSystem::Order::first_first;
  const AstraResult first = run_astra(workload, ring);
  EXPECT_EQ(last.time_ns, first.time_ns);
  EXPECT_EQ(last.time_ns,
            3 * (astra_link_ns(kSize / 4) + astra_link_ns(2 * kSize / 4)) + 8 * kDelay);
  ASSERT_EQ(last.works.size(), 8U);
  EXPECT_EQ(last.works[0].bytes, kSize / 4) << "the part of a rank";
  EXPECT_EQ(last.works[0].time_ns, 3 * astra_link_ns(kSize / 4) + 4 * kDelay);
}

TEST(AstraCollectives, WhatAstraSimCannotDoIsRefused) {
  const auto refused = [](Collective kind, int ranks, const AstraConfiguration& configuration) {
    return message_of([&] { run_astra(one_collective(kind, ranks, kSize), configuration); });
  };
  EXPECT_EQ(refused(Collective::reduce, 4, full(4, Kind::ring)), "error: ASTRA-sim has no reduce");
  EXPECT_EQ(refused(Collective::all_reduce, 6, full(6, Kind::halving_doubling)),
            "error: halvingDoubling of ASTRA-sim needs a power of two of ranks, not 6");
  EXPECT_EQ(refused(Collective::all_reduce, 6, full(6, Kind::double_binary_tree)),
            "error: doubleBinaryTree of ASTRA-sim needs a power of two of ranks, not 6");
  EXPECT_EQ(refused(Collective::all_to_all, 4, full(4, Kind::halving_doubling)),
            "error: ASTRA-sim has no all-to-all by halvingDoubling\n"
            "  hint: of its algorithms ring and direct do it");
  EXPECT_EQ(message_of([] {
              run_astra(two_groups(Collective::all_reduce, kSize),
                        full(8, Kind::double_binary_tree));
            }),
            "error: ASTRA-sim has no tree for a group of 4 of 8 NPUs\n"
            "  hint: of its algorithms ring, direct and halvingDoubling take such a group");
  AstraConfiguration none = full(4, Kind::ring);
  none.system.algorithms = {};
  EXPECT_EQ(refused(Collective::all_gather, 4, none),
            "error: the configuration has no algorithm for all-gather\n"
            "  hint: add 'all-gather-implementation' to the system");
  AstraConfiguration many = full(4, Kind::ring);
  for (auto& algorithms : many.system.algorithms) algorithms.resize(2);
  EXPECT_EQ(refused(Collective::all_gather, 4, many),
            "error: all-gather has 2 algorithms for 1 dimensions");
  AstraConfiguration unknown = full(4, Kind::ring);
  unknown.system.local_memory_bandwidth = 0;
  EXPECT_EQ(refused(Collective::all_reduce, 4, unknown),
            "error: the system does not say how fast memory is: ranks that reduce need it\n"
            "  hint: add 'local-mem-bw' to the system");
  EXPECT_GT(time_of(Collective::all_gather, 4, unknown), 0);
  EXPECT_EQ(refused(Collective::all_gather, 4, full(8, Kind::ring)),
            "error: the workload has 4 ranks, and the network 8 NPUs\n"
            "  hint: change 'npus_count' in the network's file");
}

}  // namespace
}  // namespace hemiola::workload
