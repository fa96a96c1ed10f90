// Plans that are derived from a machine, chosen as `run` and `plan make` choose them.
#include "study/simulated_time.h"

#include <gtest/gtest.h>

#include "core/diagnostics.h"
#include "core/long_tests_test_support.h"
#include "plan/plan_json.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "sim/simulate.h"
#include "study/preparation.h"

namespace hemiola::study {
namespace {

using machine::SharedMachine;

program::LoadOptions options_for(const SharedMachine& machine, Bytes size) {
  return {.ranks = machine->ranks(),
          .parameters = {{"size", std::to_string(size.count)}},
          .machine = machine,
          .judge = [machine](const program::Program& program, Bytes at) {
            return simulated_time(machine, program, at, DataType::float32, ReduceOp::sum);
          }};
}

Time time_of(const SharedMachine& machine, const program::Program& program, Bytes size) {
  return sim::simulate(program::bind(program, machine, {.size = size})).time;
}

TEST(SimulatedTime, synthesis_is_never_slower_than_a_template) {
  const Bytes size = KiB(64);
  const SharedMachine machine = machine::share(machine::load("dgx1-v100"));
  for (const plan::TemplateInfo& synthesised : plan::templates()) {
    if (!synthesised.needs_machine) continue;
    const program::Program program = program::load(synthesised.name, options_for(machine, size));
    EXPECT_TRUE(program.name.ends_with(" (simulated)")) << program.name;
    const Time time = time_of(machine, program, size);
    for (const plan::TemplateInfo& info : plan::templates()) {
      if (info.collective != synthesised.collective || info.needs_machine || !info.in_chunks)
        continue;
      if (info.name == "all-reduce/nvls") continue;  // no switch here
      const program::Program other =
          program::load(info.name, {.ranks = machine->ranks(), .machine = machine});
      EXPECT_LE(time, time_of(machine, other, size)) << program.name << " against " << info.name;
    }
  }
}

TEST(SimulatedTime, neighbouring_sizes_take_about_as_long) {
  const SharedMachine machine = machine::share(machine::load("dgx1-v100"));
  Time before{0};
  // Of these only 200,064 B are 8 chunks of whole 16 B, and 204,800 B also 16.
  for (const std::int64_t size : {200'000, 200'016, 200'064, 204'800}) {
    if (size == 200'000 && !long_tests()) continue;
    const program::LoadOptions options =
        load_options("all-reduce/synth", {}, machine->ranks(), machine, DataType::float32,
                     ReduceOp::sum, Bytes{size});
    const Time time = time_of(machine, program::load("all-reduce/synth", options), Bytes{size});
    if (before > Time{0}) {
      EXPECT_GT(time.us(), 0.985 * before.us()) << size;
      EXPECT_LT(time.us(), 1.025 * before.us()) << size;
    }
    before = time;
  }
}

TEST(SimulatedTime, an_interrupt_ends_the_choice) {
  const SharedMachine machine = machine::share(machine::load("ring:4"));
  std::atomic<bool> stop{true};
  const program::LoadOptions options =
      load_options("all-reduce/synth", {}, machine->ranks(), machine, DataType::float32,
                   ReduceOp::sum, KiB(64), &stop);
  EXPECT_THROW(program::load("all-reduce/synth", options), Interrupted);
}

TEST(SimulatedTime, the_choice_is_deterministic) {
  const SharedMachine machine = machine::share(machine::load("ring:4"));
  const auto made = [&] {
    return plan::write_plan(
        program::plan_of_built_in("all-reduce/synth", options_for(machine, KiB(64)))->plan);
  };
  EXPECT_EQ(made(), made());
}

TEST(SimulatedTime, large_sizes_are_judged_at_smaller_ones) {
  const SharedMachine machine = machine::share(machine::load("ring:2"));
  const program::Program program =
      program::load("all-gather/direct", {.ranks = 2, .machine = machine});
  const auto judged = simulated_time(machine, program, MiB(256), DataType::float32, ReduceOp::sum);
  ASSERT_TRUE(judged.has_value());
  EXPECT_EQ(judged->size, MiB(64));
}

TEST(SimulatedTime, many_ranks_are_not_simulated_and_illegal_sizes_are_refused) {
  const auto judged = [](const char* name, Bytes size) {
    const SharedMachine machine = machine::share(machine::load(name));
    const program::Program program =
        program::load("all-gather/direct", {.ranks = machine->ranks(), .machine = machine});
    return simulated_time(machine, program, size, DataType::float32, ReduceOp::sum);
  };
  EXPECT_FALSE(judged("ring:33", MiB(33)).has_value());
  EXPECT_THROW(judged("ring:3", KiB(64)), Failure);
}

}  // namespace
}  // namespace hemiola::study
