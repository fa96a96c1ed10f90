#include "study/results/difference.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

namespace hemiola::study {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using SettingMap = std::map<std::string, std::string>;

StoredResult result(Bytes size, std::int64_t time_fs, SettingMap settings = {}) {
  return {.size = size,
          .settings = std::move(settings),
          .time = {time_fs},
          .ranks = {{0, {{"link", time_fs}}}}};
}

ResultFile file_of(std::vector<StoredResult> results) {
  return {.file = "x.json", .results = std::move(results)};
}

std::int64_t sum_of(const RankChange& change) {
  std::int64_t sum = 0;
  for (const FigureChange& reason : change.reasons) sum += reason.difference();
  return sum;
}

TEST(Compare, the_differences_of_every_rank_sum_to_that_of_the_time) {
  std::mt19937_64 random(1);
  constexpr const char* kReasons[] = {"launch", "link", "poll", "software", "finished"};
  const auto draw = [&](std::int64_t time, bool all_reasons) {
    StoredResult made = result(KiB(1), time);
    made.ranks.clear();
    for (int rank = 0; rank < 8; ++rank) {
      StoredRank one{rank, {}};
      std::int64_t left = time;
      for (const char* reason : kReasons) {
        if (!all_reasons && std::string(reason) == "software") continue;  // of an earlier version
        one.fs[reason] = static_cast<std::int64_t>(random() % 1'000'000'007);
        left -= one.fs[reason];
      }
      one.fs["l2"] = left;
      made.ranks.push_back(one);
    }
    return made;
  };
  for (int i = 0; i < 100; ++i) {
    const auto a = static_cast<std::int64_t>(random() % 1'000'000'000'000);
    const auto b = static_cast<std::int64_t>(random() % 1'000'000'000'000);
    const Difference difference = compare(file_of({draw(a, false)}), file_of({draw(b, true)}));
    const ResultChange& change = difference.results.front();
    ASSERT_EQ(change.ranks.size(), 8u);
    for (const RankChange& rank : change.ranks) EXPECT_EQ(sum_of(rank), b - a);
    ASSERT_TRUE(change.latest.has_value());
    EXPECT_EQ(sum_of(*change.latest), b - a) << "of two different ranks as well";
  }
}

TEST(Compare, the_latest_rank_is_the_same_one_where_it_can_be) {
  const auto with = [](std::vector<std::int64_t> finished) {
    StoredResult made = result(KiB(1), 100);
    made.ranks.clear();
    for (std::size_t rank = 0; rank < finished.size(); ++rank)
      made.ranks.push_back(
          {static_cast<int>(rank), {{"link", 100 - finished[rank]}, {"finished", finished[rank]}}});
    return made;
  };
  const auto latest = [&](const StoredResult& a, const StoredResult& b) {
    const Difference difference = compare(file_of({a}), file_of({b}));
    return std::pair(difference.results[0].latest->a_rank, difference.results[0].latest->b_rank);
  };
  EXPECT_EQ(latest(with({0, 0, 0}), with({5, 0, 0})), std::pair(1, 1));
  EXPECT_EQ(latest(with({0, 9, 0}), with({5, 0, 7})), std::pair(0, 1));
  EXPECT_EQ(compare(file_of({with({0})}), file_of({with({0, 1})})).unlike(),
            std::vector<std::string>{"ranks"});
}

TEST(Compare, results_meet_by_size_and_settings) {
  const SettingMap small{{"gpu.l2.size", "1MiB"}}, large{{"gpu.l2.size", "50MiB"}},
      other{{"gpu.l2.size", "25MiB"}};
  const Difference difference =
      compare(file_of({result(KiB(1), 1, small), result(KiB(1), 2, large), result(KiB(2), 3)}),
              file_of({result(KiB(4), 30), result(KiB(1), 20, large), result(KiB(1), 10, other)}));
  ASSERT_EQ(difference.results.size(), 1u);
  EXPECT_EQ(difference.results[0].a.fs, 2);
  EXPECT_EQ(difference.results[0].b.fs, 20);
  ASSERT_EQ(difference.only_a.size(), 2u) << "nobody says that 1 MiB belongs to 25 MiB";
  EXPECT_EQ(to_text(difference.only_a[0]), "1 KiB, gpu.l2.size=1MiB");
  EXPECT_EQ(to_text(difference.only_a[1]), "2 KiB");
  ASSERT_EQ(difference.only_b.size(), 2u);
  EXPECT_EQ(to_text(difference.only_b[0]), "4 KiB");
}

TEST(Compare, another_winner_and_a_single_setting_do_not_keep_results_apart) {
  const Difference winners =
      compare(file_of({result(KiB(1), 1, {{"x", "1"}, {"program", "all-reduce/ring"}}),
                       result(KiB(1), 2, {{"x", "2"}, {"program", "all-reduce/ring"}})}),
              file_of({result(KiB(1), 20, {{"x", "2"}, {"program", "all-reduce/two-shot"}}),
                       result(KiB(1), 10, {{"x", "1"}, {"program", "all-reduce/two-shot"}})}));
  ASSERT_EQ(winners.results.size(), 2u);
  EXPECT_EQ(winners.results[0].b.fs, 10);
  EXPECT_EQ(winners.results[1].b.fs, 20);
  const Difference alone =
      compare(file_of({result(KiB(1), 1), result(KiB(2), 2)}),
              file_of({result(KiB(2), 20, {{"x", "1"}}), result(KiB(1), 10, {{"x", "1"}})}));
  ASSERT_EQ(alone.results.size(), 2u);
  EXPECT_EQ(alone.results[0].b.fs, 10);
  EXPECT_THAT(alone.only_b, testing::IsEmpty());
}

TEST(Compare, equal_results_meet_in_their_order) {
  const Difference difference = compare(file_of({result(KiB(1), 1), result(KiB(1), 2)}),
                                        file_of({result(KiB(1), 10), result(KiB(1), 20)}));
  ASSERT_EQ(difference.results.size(), 2u);
  EXPECT_EQ(difference.results[0].b.fs, 10);
  EXPECT_EQ(difference.results[1].b.fs, 20);
}

TEST(Compare, nothing_in_common_is_a_mistake) {
  try {
    compare(file_of({result(KiB(1), 1)}), file_of({result(KiB(2), 1, {{"x", "1"}})}));
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("1 KiB"), HasSubstr("2 KiB, x=1")));
  }
}

TEST(Compare, links_and_counters_that_moved_most_come_first) {
  StoredResult a = result(KiB(1), 1), b = a;
  a.links = {{.from = "a", .to = "b", .wire_bytes = 8, .busy = {10}},
             {.from = "a", .to = "b", .lane = 1, .wire_bytes = 8, .busy = {10}},
             {.from = "b", .to = "c", .wire_bytes = 8, .busy = {50}}};
  b.links = {{.from = "a", .to = "b", .wire_bytes = 8, .busy = {10}},
             {.from = "a", .to = "b", .lane = 1, .wire_bytes = 9, .busy = {10}}};
  a.counters = {{"large", 1'000'000}, {"small", 4}, {"same", 3}};
  b.counters = {{"large", 1'100'000}, {"small", 2}, {"same", 3}, {"new", 1}};
  const Difference difference = compare(file_of({a}), file_of({b}));
  const ResultChange& change = difference.results.front();
  ASSERT_EQ(change.links.size(), 2u);
  EXPECT_EQ(change.links[0].from, "b");
  EXPECT_EQ(change.links[0].b_busy.fs, 0) << "a link that carries nothing is not listed";
  EXPECT_EQ(change.links[1].lane, 1);
  std::vector<std::string> names;
  for (const FigureChange& counter : change.counters) names.push_back(counter.name);
  EXPECT_THAT(names, ElementsAre("new", "small", "large"));
  EXPECT_FALSE(change.same());
  const Difference none = compare(file_of({a}), file_of({a}));
  EXPECT_TRUE(none.results.front().same());
}

TEST(Limit, is_exact) {
  const Limit limit = read_limit("2.5%", {});
  const auto change = [](std::int64_t a, std::int64_t b) {
    return ResultChange{.a = {a}, .b = {b}};
  };
  constexpr std::int64_t kLong = 3'000'000'000'000'000'000;  // no double tells these apart
  EXPECT_FALSE(limit.exceeded_by(change(1000, 1025)));
  EXPECT_TRUE(limit.exceeded_by(change(1000, 1026)));
  EXPECT_FALSE(limit.exceeded_by(change(kLong, kLong / 1000 * 1025)));
  EXPECT_TRUE(limit.exceeded_by(change(kLong, kLong / 1000 * 1025 + 1)));
  EXPECT_FALSE(limit.exceeded_by(change(1000, 1))) << "faster is never too slow";
  EXPECT_TRUE(read_limit("0%", {}).exceeded_by(change(kLong, kLong + 1)));
  EXPECT_FALSE(read_limit("0 %", {}).exceeded_by(change(kLong, kLong)));
  EXPECT_TRUE(limit.exceeded_by(change(0, 1)));
}

TEST(Limit, is_a_share_in_percent) {
  for (const char* text : {"", "2", "%", "-1%", "two%", "1e3%", "0.1234567%", "2%%", ".5%", "1.%",
                           "99999999999999999999%", "1000001%", "+2%", "2.-5%"})
    EXPECT_THROW(read_limit(text, {.file = "--fail-above"}), Failure) << text;
  EXPECT_EQ(read_limit("0.000001%", {}).millionths, 1);
  EXPECT_EQ(read_limit("100%", {}).millionths, 100'000'000);
}

}  // namespace
}  // namespace hemiola::study
