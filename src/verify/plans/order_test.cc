#include "verify/plans/order.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace hemiola::verify {
namespace {

TEST(Order, streams_are_in_order_and_facts_are_passed_on) {
  Order order(4, 1);
  EXPECT_TRUE(order.happens_before({0, 1}, {0, 2}));
  EXPECT_FALSE(order.happens_before({0, 0}, {1, 0}));
  order.learn({1, 3}, {0, 5});
  order.learn({2, 2}, {1, 4});
  EXPECT_TRUE(order.happens_before({0, 5}, {2, 2})) << "through stream 1";
  EXPECT_TRUE(order.happens_before({0, 5}, {2, 9})) << "and later";
  EXPECT_FALSE(order.happens_before({0, 6}, {2, 9}));
  order.learn({3, 0}, {1, 2});
  EXPECT_FALSE(order.happens_before({0, 5}, {3, 0})) << "stream 1 learned it after that";
  order.learn({4, 0}, {2, 2});
  order.learn({3, 1}, {4, 0});
  EXPECT_TRUE(order.happens_before({0, 5}, {3, 1})) << "through a tile";
}

/// The answer is that of full vector clocks.
RC_GTEST_PROP(Order, agrees_with_vector_clocks, ()) {
  const int streams = 5;
  using Clock = std::vector<int>;
  std::vector<std::vector<Clock>> clocks(streams);  // by stream and event: events below happened
  Order order(streams, 0);
  const int events = *rc::gen::inRange(5, 60);
  for (int i = 0; i < events; ++i) {
    const int self = *rc::gen::inRange(0, streams);
    auto& own = clocks[static_cast<std::size_t>(self)];
    const Event now{self, static_cast<int>(own.size())};
    Clock clock = own.empty() ? Clock(streams) : own.back();
    for (int d = *rc::gen::inRange(0, 3); d > 0; --d) {
      const int other = *rc::gen::inRange(0, streams);
      const auto& theirs = clocks[static_cast<std::size_t>(other)];
      if (other == self || theirs.empty()) continue;
      const int number = *rc::gen::inRange(0, static_cast<int>(theirs.size()));
      order.learn(now, {other, number});
      for (std::size_t s = 0; s < clock.size(); ++s)
        clock[s] = std::max(clock[s], theirs[static_cast<std::size_t>(number)][s]);
    }
    clock[static_cast<std::size_t>(self)] = now.number + 1;
    own.push_back(clock);
    for (int other = 0; other < streams; ++other) {
      const auto count = static_cast<int>(clocks[static_cast<std::size_t>(other)].size());
      if (count == 0) continue;
      const int number = *rc::gen::inRange(0, count);
      RC_ASSERT(order.happens_before({other, number}, now) ==
                (clock[static_cast<std::size_t>(other)] > number));
    }
  }
}

}  // namespace
}  // namespace hemiola::verify
