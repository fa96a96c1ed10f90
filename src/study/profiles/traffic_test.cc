// Traffic by pattern: when its writes come, that seeds decide it, what is refused.
#include "study/profiles/traffic.h"

#include <gtest/gtest.h>

#include <set>

#include "core/testing/failure.h"
#include "sim/result/profile.h"

namespace hemiola::study {
namespace {

sim::Profile traffic_rows(const std::string& flow, int peer = -1, int seed = 1) {
  sim::Profile profile{.file = {}, .ranks = 4};
  const std::string text = "seed: " + std::to_string(seed) + "\ntraffic:\n  - {" + flow + "}\n";
  add_traffic(profile, read_traffic(text, "t.yaml", 4), peer);
  return profile;
}

std::vector<std::int64_t> times(const sim::Profile& profile, int source) {
  std::vector<std::int64_t> times;
  for (const sim::ProfileRow& row : profile.rows)
    if (row.source == source) times.push_back(row.time.fs);
  return times;
}

TEST(Traffic, constant_is_one_write_every_interval) {
  const sim::Profile profile =
      traffic_rows("peer: 1, interval: 10 ns, count: 5, start: 1 us, size: 64, span: 128");
  const std::vector<std::int64_t> at = times(profile, 1);
  ASSERT_EQ(at.size(), 5U);
  EXPECT_GE(at[0], 1'000'000'000);
  EXPECT_LT(at[0], 1'010'000'000);
  for (std::size_t i = 1; i < at.size(); ++i) EXPECT_EQ(at[i] - at[i - 1], 10'000'000);
  EXPECT_EQ(profile.rows[1].offset, 64);
  EXPECT_EQ(profile.rows[2].offset, 0) << "they go round";
  EXPECT_EQ(profile.rows[0].destination, 0);
}

TEST(Traffic, a_rate_is_an_interval) {
  const auto at = times(traffic_rows("peer: 1, rate: 128 GB/s, count: 3"), 1);
  EXPECT_EQ(at[2] - at[1], 1'000'000);
}

TEST(Traffic, bursts_are_writes_at_once) {
  const auto at =
      times(traffic_rows("peer: 2, pattern: burst, burst: 4, interval: 1 us, count: 2"), 2);
  ASSERT_EQ(at.size(), 8U);
  EXPECT_EQ(at[0], at[3]);
  EXPECT_EQ(at[4] - at[3], 1'000'000'000);
}

TEST(Traffic, poisson_has_the_mean_and_the_spread_of_exponential_gaps) {
  const auto at =
      times(traffic_rows("peer: 1, pattern: poisson, interval: 100 ns, count: 20000"), 1);
  double sum = 0, squares = 0;
  for (std::size_t i = 1; i < at.size(); ++i) {
    const double gap = static_cast<double>(at[i] - at[i - 1]) / 1e8;
    sum += gap;
    squares += gap * gap;
  }
  const double n = static_cast<double>(at.size() - 1);
  EXPECT_NEAR(sum / n, 1, 0.03);
  EXPECT_NEAR(squares / n, 2, 0.12);
}

TEST(Traffic, jitter_is_below_its_bound) {
  const auto at = times(
      traffic_rows("peer: 1, pattern: jitter, interval: 100 ns, jitter: 30 ns, count: 200"), 1);
  const auto constant = times(traffic_rows("peer: 1, interval: 100 ns, count: 200"), 1);
  std::set<std::int64_t> differences;
  for (std::size_t i = 0; i < at.size(); ++i) {
    differences.insert(at[i] - constant[i]);
    EXPECT_GE(at[i], constant[i]);
    EXPECT_LT(at[i], constant[i] + 30'000'000);
  }
  EXPECT_GT(differences.size(), 100U);
}

TEST(Traffic, incast_is_at_once_and_stragglers_are_late) {
  const sim::Profile incast =
      traffic_rows("peers: all, pattern: incast, interval: 1 us, count: 50");
  EXPECT_EQ(times(incast, 1), times(incast, 3));
  const sim::Profile late =
      traffic_rows("peers: all, pattern: straggler, delay: 300 ns, interval: 1 us, count: 50");
  for (std::size_t i = 0; i < 50; ++i) {
    std::int64_t sum = 0;
    for (const int peer : {1, 2, 3}) sum += times(late, peer)[i] - times(incast, peer)[i];
    EXPECT_EQ(sum, 300'000'000) << "one of them";
  }
  EXPECT_NE(times(late, 1), times(late, 2));
}

TEST(Traffic, seeds_decide_and_peers_alone_do_what_they_do_among_others) {
  const std::string flow = "peers: \"1,2\", pattern: poisson, interval: 1 us, count: 20";
  EXPECT_EQ(traffic_rows(flow).rows, traffic_rows(flow).rows);
  EXPECT_NE(traffic_rows(flow).rows, traffic_rows(flow, -1, 2).rows);
  EXPECT_EQ(times(traffic_rows(flow, 2), 2), times(traffic_rows(flow), 2));
  EXPECT_TRUE(times(traffic_rows(flow, 2), 1).empty());
}

TEST(Traffic, json_is_yaml) {
  const Traffic traffic = read_traffic(
      R"({"traffic": [{"peers": "all", "to": 2, "interval": "5 ns", "count": 3}]})", "t.json", 4);
  EXPECT_EQ(traffic.flows.at(0).peers, (std::vector<int>{0, 1, 3}));
  EXPECT_EQ(peers_of(traffic), (std::vector<int>{0, 1, 3}));
}

TEST(Traffic, is_refused_with_the_line_and_the_key) {
  const std::pair<const char*, const char*> cases[] = {
      {"peer: 4", "t.yaml:3:"},
      {"peer: 4", "/traffic/0/peer"},
      {"peer: 0", "rank 0 does not write to rank 0"},
      {"peers: \"1,x\"", "/traffic/0/peers"},
      {"peers: \"1,1\"", "/traffic/0/peers"},
      {"peer: 1, patern: burst", "did you mean 'pattern'"},
      {"peer: 1, pattern: brust", "did you mean 'burst'"},
      {"peer: 1, count: 3", "need an interval"},
      {"peer: 1, count: 0", "/traffic/0/count"},
      {"peer: 1, interval: soon", "/traffic/0/interval"},
      {"peer: 1, rate: 1 GB/s, interval: 1 ns", "/traffic/0/rate"},
      {"peer: 1, jitter: 1 ns", "belongs to another pattern"},
      {"peer: 1, pattern: jitter, interval: 1 ns", "this pattern needs 'jitter'"},
      {"peer: 1, size: 0", "/traffic/0/size"},
      {"peer: 1, size: 128, span: 64", "/traffic/0/span"},
  };
  for (const auto& [flow, expected] : cases) {
    const std::string text = test::message_of([&, f = std::string(flow)] { traffic_rows(f); });
    EXPECT_NE(text.find(expected), std::string::npos) << flow << ": " << text;
  }
}

}  // namespace
}  // namespace hemiola::study
