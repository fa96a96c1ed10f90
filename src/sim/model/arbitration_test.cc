#include "sim/model/arbitration.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hemiola::sim {
namespace {

PickFunction policy(const std::string& name) {
  return pick_function(*machine::parse_arbitration(name));
}

TEST(Arbitration, every_policy_but_fifo_has_a_function) {
  for (const std::string_view name : machine::arbitration_names())
    EXPECT_EQ(policy(std::string(name)) == nullptr, name == "fifo") << name;
}

TEST(Arbitration, fair_takes_turns_and_begins_with_control) {
  const PickFunction fair = policy("fair");
  std::int64_t memory = 0;
  const WaitingQueue control{.requests = 1}, data{.requests = 9};
  for (int turn = 0; turn < 3; ++turn) {
    EXPECT_EQ(fair(control, data, memory), Traffic::control);
    EXPECT_EQ(fair(control, data, memory), Traffic::data);
  }
}

TEST(Arbitration, priorities_do_not_depend_on_the_queues) {
  std::int64_t memory = 0;
  const WaitingQueue few{.requests = 1, .since = 9}, many{.requests = 9, .since = 1};
  for (const auto& [control, data] : {std::pair{few, many}, std::pair{many, few}}) {
    EXPECT_EQ(policy("data_first")(control, data, memory), Traffic::data);
    EXPECT_EQ(policy("control_first")(control, data, memory), Traffic::control);
  }
}

TEST(Arbitration, names_are_parsed_back) {
  for (const std::string_view name : machine::arbitration_names())
    EXPECT_EQ(machine::name_of(*machine::parse_arbitration(name)), name);
  EXPECT_FALSE(machine::parse_arbitration("longest"));
}

}  // namespace
}  // namespace hemiola::sim
