#include "workload/scheduler/meetings.h"

#include <gtest/gtest.h>

namespace hemiola::workload {
namespace {

using Outcome = Meetings::Outcome;

Meetings::Call message(NodeKind kind, std::int64_t bytes) {
  return {.kind = kind, .lane = {1, 0}, .callers = 1, .receivers = 1, .bytes = bytes};
}
const auto kHolds100 = [] { return Bytes{100}; };

TEST(Meetings, ACollectiveBeginsWhenAllHaveCome) {
  Meetings meetings;
  const Meetings::Call call{.kind = NodeKind::collective, .lane = {0, 0}, .callers = 2};
  EXPECT_EQ(meetings.arrive(call, {0, 5}, kHolds100).outcome, Outcome::waits);
  ASSERT_EQ(meetings.waiting().size(), 1u);
  const Meetings::Arrival second = meetings.arrive(call, {1, 7}, kHolds100);
  EXPECT_EQ(second.outcome, Outcome::begins);
  EXPECT_EQ(second.members.size(), 2u);
  EXPECT_EQ(second.last.rank_class, 1);
  ASSERT_TRUE(second.other);
  EXPECT_EQ(second.other->node, 5u);
  EXPECT_TRUE(meetings.waiting().empty());
}

TEST(Meetings, ASendThatFitsDoesNotWaitForItsReceive) {
  Meetings meetings;
  const auto sent = meetings.arrive(message(NodeKind::send, 60), {0, 1}, kHolds100);
  EXPECT_EQ(sent.outcome, Outcome::begins);
  EXPECT_EQ(sent.members.size(), 1u);
  // The next one does not fit beside it.
  EXPECT_EQ(meetings.arrive(message(NodeKind::send, 60), {0, 2}, kHolds100).outcome,
            Outcome::waits);
  EXPECT_TRUE(meetings.end_send({0, 1}).empty());
  EXPECT_EQ(meetings.unreceived(), 1);
  const auto received = meetings.arrive(message(NodeKind::receive, 60), {1, 1}, kHolds100);
  EXPECT_EQ(received.outcome, Outcome::takes_out);
  ASSERT_EQ(received.members.size(), 1u);
  EXPECT_EQ(received.members[0].rank_class, 1);
  EXPECT_EQ(meetings.unreceived(), 0);
}

TEST(Meetings, MessagesOfAllTagsShareTheFifoOfTheirConnection) {
  Meetings meetings;
  Meetings::Call first = message(NodeKind::send, 60), second = first;
  second.lane.lane = 1;
  EXPECT_EQ(meetings.arrive(first, {0, 1}, kHolds100).outcome, Outcome::begins);
  EXPECT_EQ(meetings.arrive(second, {0, 2}, kHolds100).outcome, Outcome::waits);
}

TEST(Meetings, AReceiveThatComesMeanwhileEndsWithTheSend) {
  Meetings meetings;
  meetings.arrive(message(NodeKind::send, 60), {0, 1}, kHolds100);
  const auto received = meetings.arrive(message(NodeKind::receive, 60), {1, 1}, kHolds100);
  EXPECT_EQ(received.outcome, Outcome::joins);
  EXPECT_EQ(received.last.rank_class, 0);
  const std::vector<Member> through = meetings.end_send({0, 1});
  ASSERT_EQ(through.size(), 1u);
  EXPECT_EQ(through[0].rank_class, 1);
}

TEST(Meetings, ALargeSendWaitsForItsReceive) {
  Meetings meetings;
  EXPECT_EQ(meetings.arrive(message(NodeKind::send, 101), {0, 1}, kHolds100).outcome,
            Outcome::waits);
  const auto received = meetings.arrive(message(NodeKind::receive, 101), {1, 1}, kHolds100);
  EXPECT_EQ(received.outcome, Outcome::begins);
  EXPECT_EQ(received.members.size(), 2u);
}

}  // namespace
}  // namespace hemiola::workload
