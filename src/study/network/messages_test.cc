// A plan's messages over a network whose times are known in closed form.
#include "study/network/messages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/testing/failure.h"
#include "plan/template.h"

namespace hemiola::study {
namespace {

/// Every message takes a latency and its bytes at a rate, whatever else is under way.
class FreeNetwork : public MessageNetwork {
 public:
  void send(std::int32_t number, Time time, const Message& message) override {
    under_way_.emplace(time + Time::from_ns(1000 + message.bytes), number);
  }
  std::optional<Arrival> next() override {
    if (under_way_.empty()) return std::nullopt;
    const auto first = under_way_.begin();
    const Arrival arrival{first->first, first->second};
    under_way_.erase(first);
    return arrival;
  }

 private:
  std::multimap<Time, std::int32_t> under_way_;
};

MessageRun run(const std::string& plan, int ranks, std::int64_t bytes) {
  FreeNetwork network;
  return run_messages(messages_of(plan::make(plan, ranks), Bytes{bytes}), network);
}

TEST(Messages, of_a_ring_come_one_after_the_other) {
  // 2 (n - 1) steps, each of an n-th of the size.
  EXPECT_EQ(run("all-reduce/ring", 8, 8 * 500).time, Time::from_ns(14 * 1500));
}

TEST(Messages, of_a_direct_exchange_are_under_way_together) {
  EXPECT_EQ(run("all-gather/direct", 8, 8 * 500).time, Time::from_ns(1500));
}

TEST(Messages, carry_what_the_collective_has_to) {
  const MessageGraph graph = messages_of(plan::make("all-reduce/ring", 8), Bytes{8 << 10});
  std::int64_t bytes = 0;
  for (const Message& message : graph.messages)
    if (message.from != message.to) bytes += message.bytes;
  EXPECT_EQ(bytes, 8 * 14 * 1024);
}

TEST(Messages, that_wait_for_each_other_are_a_deadlock) {
  FreeNetwork network;
  const MessageGraph graph{
      .name = "circle", .ranks = 2, .messages = {{0, 1, 8, {1}}, {1, 0, 8, {0}}}};
  try {
    run_messages(graph, network);
    FAIL() << "it ended";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
  }
}

TEST(Messages, a_size_that_is_not_whole_chunks_is_refused) {
  EXPECT_NE(test::message_of([] { run("all-reduce/ring", 8, 1001); }).find("equal chunks"),
            std::string::npos);
}

TEST(Messages, multicast_is_refused) {
  EXPECT_NE(test::message_of([] { run("all-reduce/nvls", 8, 8192); }).find("multicast"),
            std::string::npos);
}

}  // namespace
}  // namespace hemiola::study
