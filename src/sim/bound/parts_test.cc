// What the walk of a bound keeps of signals.
#include "sim/bound/parts.h"

#include <gtest/gtest.h>

namespace hemiola::sim {
namespace {

TEST(Signals, of_one_rank_arrive_one_by_one) {
  Signals signals;
  signals.add(1, 2, 100);
  signals.add(1, 1, 90);
  EXPECT_EQ(signals.count(), 3);
  EXPECT_EQ(signals.arrival(2), 100);
  EXPECT_EQ(signals.arrival(3), 90);
  signals.add(1, 0, 5);
  EXPECT_EQ(signals.count(), 3);
}

TEST(Signals, of_several_ranks_arrive_with_the_first_at_the_earliest) {
  Signals signals;
  signals.add(1, 1, 100);
  signals.add(2, 1, 70);
  EXPECT_EQ(signals.arrival(1), 70);
  EXPECT_EQ(signals.arrival(2), 70);
  signals.add(2, 1, 60);
  EXPECT_EQ(signals.arrival(3), 60);
}

TEST(Signals, that_are_forgotten_still_count) {
  Signals kept, forgotten;
  for (std::int64_t n = 1; n <= 1000; ++n) {
    kept.add(1, 1, 10 * n);
    forgotten.add(1, 1, 10 * n);
    if (n < 4) continue;
    forgotten.forget_before(n - 2);
    EXPECT_EQ(forgotten.count(), n);
    for (std::int64_t last = n - 2; last <= n; ++last)
      EXPECT_EQ(forgotten.arrival(last), kept.arrival(last));
  }
  EXPECT_EQ(forgotten.arrival(1), 10) << "a bound of any";
}

}  // namespace
}  // namespace hemiola::sim
