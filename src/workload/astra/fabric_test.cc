#include "workload/astra/fabric.h"

#include <gtest/gtest.h>

#include <vector>

#include "workload/testing/astra.h"

namespace hemiola::workload::astra {
namespace {

std::vector<std::uint32_t> subjects(Calendar& calendar) {
  std::vector<std::uint32_t> all;
  Event event;
  while (calendar.next(event)) all.push_back(event.subject);
  return all;
}

TEST(AstraCalendar, WhatIsEnteredFirstForATimeIsHandledFirst) {
  Calendar calendar(1);
  calendar.enter(70, {EventKind::hop, 3});
  calendar.enter(5, {EventKind::hop, 1});
  calendar.enter(69, {EventKind::hop, 2});  // 64 apart from 5
  calendar.enter(70, {EventKind::hop, 4});
  EXPECT_EQ(subjects(calendar), (std::vector<std::uint32_t>{1, 2, 3, 4}));
  EXPECT_EQ(calendar.now(), 70);
}

TEST(AstraCalendar, EventsOfARankAreHandledTogetherWhereTheFirstStands) {
  Calendar calendar(2);
  calendar.enter_of_rank(1, 7, {EventKind::reduced, 10});
  calendar.enter(7, {EventKind::hop, 20});
  calendar.enter_of_rank(0, 7, {EventKind::reduced, 30});
  calendar.enter_of_rank(1, 7, {EventKind::reduced, 11});
  EXPECT_EQ(subjects(calendar), (std::vector<std::uint32_t>{10, 11, 20, 30}));
}

TEST(AstraCalendar, WhatARankEntersForNowIsHandledWithTheRest) {
  Calendar calendar(1);
  calendar.enter_of_rank(0, 7, {EventKind::reduced, 1});
  calendar.enter(7, {EventKind::hop, 3});
  Event event;
  ASSERT_TRUE(calendar.next(event));
  EXPECT_EQ(event.subject, 1U);
  calendar.enter_of_rank(0, 7, {EventKind::reduced, 2});
  calendar.enter(7, {EventKind::hop, 4});
  EXPECT_EQ(subjects(calendar), (std::vector<std::uint32_t>{2, 3, 4}));
}

TEST(AstraFabric, GigabytesOfANetworkAreBinary) {
  const AstraNetwork::Dimension dimension{AstraNetwork::Topology::switched, 8, 1.0, 0.5};
  // A second, of which ASTRA-sim's arithmetic cuts off a nanosecond.
  EXPECT_EQ(unloaded_ns(dimension, 0, std::int64_t{1} << 30), 999'999'999);
  EXPECT_EQ(unloaded_ns(dimension, 0, (std::int64_t{1} << 30) + 1), 1'000'000'000);
  EXPECT_EQ(unloaded_ns(dimension, 1, 0), 0) << "half a nanosecond is cut off";
  EXPECT_EQ(unloaded_ns(dimension, 2, 0), 1);
}

/// When what is sent is there, by number.
std::vector<std::int64_t> arrivals(const AstraConfiguration& configuration,
                                   const std::vector<std::pair<int, int>>& messages,
                                   std::int64_t bytes) {
  Calendar calendar(8);
  Fabric fabric(configuration, false, calendar);
  std::vector<std::int64_t> times(messages.size(), -1);
  for (std::uint32_t m = 0; m < messages.size(); ++m)
    fabric.send(messages[m].first, messages[m].second, bytes, {EventKind::parcel, m});
  Event event;
  while (calendar.next(event)) {
    std::optional<Event> arrival;
    if (event.kind == EventKind::link_free) fabric.link_free(event.subject);
    if (event.kind == EventKind::hop) arrival = fabric.hop(event.subject);
    if (event.kind == EventKind::parcel) arrival = event;
    if (arrival) times[arrival->subject] = calendar.now();
  }
  return times;
}

TEST(AstraFabric, ARingGoesTheShorterWayAndUpwardsIfBothAreEqual) {
  AstraConfiguration ring = test::astra_ring(8);
  const std::int64_t bytes = 53'687'091;  // 999,999.98 ns
  const std::int64_t once = 999'999;
  EXPECT_EQ(arrivals(ring, {{0, 3}, {0, 5}, {0, 4}, {6, 1}}, bytes),
            (std::vector<std::int64_t>{once + 1500, once + 1500, once + 2000, once + 1500}));
  ring.aware = true;
  // Links from 0 upwards: 0 to 4 goes behind 0 to 3. Downwards there is nobody else.
  EXPECT_EQ(
      arrivals(ring, {{0, 3}, {0, 5}, {0, 4}}, bytes),
      (std::vector<std::int64_t>{3 * (once + 500), 3 * (once + 500), once + 4 * (once + 500)}));
}

TEST(AstraFabric, PortsOfASwitchCarryOneMessageAtATime) {
  AstraConfiguration one = test::astra_switch(8);
  one.network.dimensions.front().latency_ns = 100;
  const std::int64_t bytes = 429'496'729;  // 999,999.99 ns
  const std::int64_t cross = 999'999 + 100;
  EXPECT_EQ(arrivals(one, {{0, 1}, {2, 1}, {2, 3}}, bytes),
            (std::vector<std::int64_t>(3, 999'999 + 200)));
  one.aware = true;
  // 2 to 1 waits for the port of 1; 2 to 3 for the port of 2.
  EXPECT_EQ(arrivals(one, {{0, 1}, {2, 1}, {2, 3}}, bytes),
            (std::vector<std::int64_t>{2 * cross, 999'999 + 2 * cross, 999'999 + 2 * cross}));
}

TEST(AstraFabric, OnlyTheFirstDimensionInWhichTwoDifferCounts) {
  AstraConfiguration two = test::astra_ring(4);
  two.network.dimensions.push_back({AstraNetwork::Topology::switched, 2, 1.0, 1000.0});
  EXPECT_EQ(arrivals(two, {{0, 7}, {3, 7}}, 1),
            (std::vector<std::int64_t>{500, 2000}));  // 3 to 0 on the ring; then the switch
}

}  // namespace
}  // namespace hemiola::workload::astra
