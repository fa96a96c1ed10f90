// What a replay prints: a row for each setting, and for whom it waited.
#include "report/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "report/testing/results.h"

namespace hemiola::report {
namespace {

using ::testing::HasSubstr;

sim::Result replayed(const char* wait, std::int64_t reads, const char* answers) {
  sim::Result result = two_rank_result();
  result.settings = {{"gpu.sync.wait", wait}};
  result.counters = {{"reads.flag.cu", reads},
                     {"reads.poll.cu", reads - 3},
                     {"reads.data.cu", 4416},
                     {"requests.stores", 128}};
  result.answers = answers;
  return result;
}

TEST(ReplayTable, has_a_row_for_each_setting) {
  const Replay head{.run = {"", "dgx-h100", "gemv-ar/fused", "line", "stream", std::nullopt},
                    .profile = "p.csv",
                    .rows = 384,
                    .ranks = {0},
                    .of = 4};
  std::ostringstream out;
  print_replays(out, head, {replayed("spin", 1960, "recorded"), replayed("monitor", 240, "live")});
  EXPECT_EQ(out.str(),
            "# machine  dgx-h100\n"
            "# program  gemv-ar/fused\n"
            "# profile  p.csv, 384 rows; rank 0 of 4 is simulated\n"
            "#\n"
            "# gpu.sync.wait    time  flag reads  polls  data reads  stores  answers\n"
            "#                  (us)\n"
            "  spin           12.346        1960   1957        4416     128  recorded\n"
            "  monitor        12.346         240    237        4416     128  live\n");
}

TEST(ReplayTable, as_csv_has_settings_counts_and_reasons) {
  const std::string text = replays_to_csv({replayed("spin", 1960, "recorded")});
  EXPECT_THAT(text, testing::StartsWith("gpu.sync.wait,size_bytes,time_ns,flag_reads,polls,"
                                        "data_reads,stores,answers,noc_ns,"));
  EXPECT_THAT(text, HasSubstr("\nspin,1024,12345.678901,1960,1957,4416,128,recorded,0.000000,"));
  const auto cells = [&](std::size_t from, std::size_t to) {
    return std::count(text.begin() + static_cast<std::ptrdiff_t>(from),
                      text.begin() + static_cast<std::ptrdiff_t>(to), ',');
  };
  const std::size_t end = text.find('\n');
  EXPECT_EQ(cells(0, end), cells(end, text.size()));
}

TEST(PeerWaits, are_printed_by_peer_and_flag_the_longest_first) {
  sim::Result result = two_rank_result();
  for (int peer = 1; peer <= 14; ++peer)
    result.peer_waits.push_back({.rank = 0,
                                 .peer = peer,
                                 .buffer = "@semaphores",
                                 .offset = 8 * peer,
                                 .name = "ready " + std::to_string(peer),
                                 .time = Time::from_ns(100 * peer),
                                 .waits = 2});
  result.peer_waits.push_back({.rank = 0,
                               .peer = 3,
                               .kind = sim::ProfileKind::packet,
                               .buffer = "fifo 0",
                               .time = Time::from_us(9),
                               .waits = 40});
  std::ostringstream out;
  print_peer_waits(out, result);
  EXPECT_THAT(out.str(), HasSubstr("packet fifo 0"));
  EXPECT_LT(out.str().find("packet fifo 0"), out.str().find("flag @semaphores+112 (ready 14)"));
  EXPECT_THAT(out.str(), HasSubstr("... and 3 more (--json has all); all are 19500.000000 ns"));
  EXPECT_THAT(out.str(), Not(HasSubstr("(ready 3)")));
  std::ostringstream nothing;
  print_peer_waits(nothing, two_rank_result());
  EXPECT_EQ(nothing.str(), "");
}

TEST(ReplayJson, says_who_answered_and_what_was_waited_for) {
  sim::Result result = replayed("monitor", 240, "live");
  result.live_because = "rows are not those that were recorded";
  result.peer_waits = {{.rank = 0,
                        .peer = 2,
                        .buffer = "@semaphores",
                        .offset = 24,
                        .name = "ready",
                        .time = {7},
                        .waits = 1}};
  const std::string text = to_json({}, {result});
  EXPECT_THAT(text, HasSubstr("\"answers\": \"live\""));
  EXPECT_THAT(text, HasSubstr("\"live_because\": \"rows are not those that were recorded\""));
  EXPECT_THAT(text,
              HasSubstr("{\"rank\": 0, \"peer\": 2, \"kind\": \"add\", \"fs\": 7, \"waits\": 1, "
                        "\"buffer\": \"@semaphores\", \"offset\": 24, \"name\": \"ready\"}"));
  EXPECT_THAT(to_json({}, {two_rank_result()}), Not(HasSubstr("peer_waits")));
}

TEST(NeededRows, are_printed_as_the_head_of_a_profile_and_a_table) {
  study::NeededRows needed;
  needed.profile.ranks = 2;
  needed.profile.buffers = {{"fifo 0", 64}, {"fifo 1", 64}, {"out", 8}, {"@semaphores", 16}};
  needed.profile.rows.push_back({.buffer = 3});
  needed.flags.push_back({.rank = 0,
                          .source = 1,
                          .buffer = "@semaphores",
                          .offset = 8,
                          .end = 16,
                          .rows = 1,
                          .value = 1,
                          .name = "ready"});
  std::ostringstream out;
  print_needed_rows(out, {}, {0}, needed);
  EXPECT_THAT(out.str(), HasSubstr("# ranks 2\n# buffer @semaphores 16\n"));
  EXPECT_THAT(out.str(), HasSubstr("fifo 0 to fifo 1 64 each, out 8, and @memory"));
  EXPECT_THAT(out.str(), HasSubstr("1            0  add   @semaphores       8     8      1     1  "
                                   "ready"));
  std::ostringstream nothing;
  print_needed_rows(nothing, {}, {0}, {});
  EXPECT_THAT(nothing.str(), HasSubstr("waits for nobody"));
}

}  // namespace
}  // namespace hemiola::report
