// The line engine gives what the reference engine gives: copy engines, proxies and NICs.

#include <gtest/gtest.h>
#include <optional>

#include "sim/line/line.h"
#include "sim/testing/line_compare.h"

namespace hemiola::sim {
namespace {

using namespace test;

TEST(LineEngines, give_the_reference_result_on_random_machines_with_copy_engines) {
  std::int64_t bursts = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    for (int i = 0; i < 2; ++i) {
      machine::Machine machine = any_machine(none_or_at_links());
      for (const auto& [name, value] : any_engine_costs()) machine.set(name, value);
      program::Bound program = any_exchange(machine);
      program = program::changed(
          program, [&](auto& p) { p.groups.clear(); });  // which none of its operations uses
      const Options options = any_options(program.ranks());
      if (!Line::refuses(machine, program, options).empty()) continue;
      bursts += expect_equal(machine, program, options).counters.at("requests.bursts");
    }
  }));
  EXPECT_GT(bursts, 200);
}

TEST(LineEngines, give_the_reference_result_on_random_networks) {
  std::int64_t bursts = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    for (int i = 0; i < 2; ++i) {
      const machine::Machine machine = any_network(none_or_at_links());
      std::optional<program::Bound> made;
      try {
        made = any_program(machine);
      } catch (const Failure&) {
        continue;  // not over NICs
      }
      program::Bound program = *made;
      if (program.name() == "test")
        program = program::changed(program, [&](auto& p) { p.groups.clear(); });
      const Options options = any_options(program.ranks());
      if (!Line::refuses(machine, program, options).empty()) continue;
      bursts += expect_equal(machine, program, options).counters.at("requests.bursts");
    }
  }));
  EXPECT_GT(bursts, 200);
}

class LineEnginesShipped : public ::testing::TestWithParam<Shipped> {};

TEST_P(LineEnginesShipped, gives_the_reference_result) {
  expect_equal(GetParam());
}

INSTANTIATE_TEST_SUITE_P(
    Machines, LineEnginesShipped,
    ::testing::Values(Shipped{"all-reduce/ring", "dgx-h100:2", 16, {}, KiB(16), 0},
                      Shipped{
                          "reduce-scatter/ring", "dgx-h100:4", 32, {{"channels", "1"}}, KiB(8), 0},
                      Shipped{"all-reduce/nccl", "dgx-h100:2", 16, {{"channels", "1"}}, KiB(8), 0},
                      Shipped{"all-gather/direct", "dgx-a100:2", 16, {}, KiB(64), 0},
                      Shipped{"all-to-all/direct", "dgx-h100:2", 12, {}, KiB(96), 0}));

}  // namespace
}  // namespace hemiola::sim
