// What comes to a stage of the line engine, by round.
#include "sim/support/calendar.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace hemiola::sim {
namespace {

// Rounds of 4 fs: of what is pushed most lies far beyond the 64 rounds that are kept apart.
TEST(Calendar, gives_each_round_in_order_of_pushing_however_far_it_was) {
  SpareRounds spare;
  Calendar calendar;
  calendar.set(2, 1);
  calendar.use(spare);
  std::map<std::int64_t, std::vector<std::int32_t>> expected;  // by begin of the round
  std::minstd_rand random(7);
  std::int32_t id = 0;
  std::int64_t now = 1;
  const auto push = [&](std::int64_t after) {
    const std::int64_t time = now + after;
    calendar.push({.time = time, .id = id});
    expected[(time - 1) / 4 * 4 + 1].push_back(id++);
  };
  for (int i = 0; i < 50; ++i) push(static_cast<std::int64_t>(random() % 4000));
  std::vector<Arrival> taken;
  for (int rounds = 0; rounds < 2000 && !expected.empty(); ++rounds) {
    const std::int64_t round = calendar.next();
    ASSERT_EQ(calendar.begin_of(round), expected.begin()->first);
    ASSERT_TRUE(calendar.take(round, taken));
    std::vector<std::int32_t> ids;
    for (const Arrival& arrival : taken) ids.push_back(arrival.id);
    ASSERT_EQ(ids, expected.begin()->second);
    now = expected.begin()->first + 4;
    expected.erase(expected.begin());
    if (rounds < 1500) push(static_cast<std::int64_t>(random() % 4000));
  }
  EXPECT_TRUE(expected.empty());
  EXPECT_EQ(calendar.next(), INT64_MAX);
}

}  // namespace
}  // namespace hemiola::sim
