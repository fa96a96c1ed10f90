#include "study/laboratory/evaluator.h"

#include <gtest/gtest.h>

#include "core/diagnostics.h"
#include "plan/plan_json.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "sim/simulate.h"

namespace hemiola::study {
namespace {

using machine::SharedMachine;

Experiment synthesis(const SharedMachine& machine, const std::string& name, Bytes size) {
  return {.machine = {.given = machine}, .subject = name, .size = size};
}

Time time_of(const SharedMachine& machine, const program::Program& program, Bytes size) {
  return sim::simulate(program::bind(program, machine, {.size = size})).time;
}

// Plans that are derived from a machine, chosen as `run` and `plan make` choose them.
TEST(Judge, synthesis_is_never_slower_than_a_template) {
  const Bytes size = KiB(64);
  const SharedMachine machine = machine::share(machine::load("dgx1-v100"));
  for (const plan::TemplateInfo& synthesised : plan::templates()) {
    if (!synthesised.needs_machine) continue;
    Experiment experiment = synthesis(machine, synthesised.name, size);
    experiment.parameters = {{"size", std::to_string(size.count)}};
    const program::Program program = *Laboratory().program(experiment, machine);
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

TEST(Judge, neighbouring_sizes_take_about_as_long) {
  const SharedMachine machine = machine::share(machine::load("dgx1-v100"));
  Time before{0};
  // Of these only 200,064 B are 8 chunks of whole 16 B, and 204,800 B also 16.
  for (const std::int64_t size : {200'000, 200'016, 200'064, 204'800}) {
    const Experiment experiment = synthesis(machine, "all-reduce/synth", Bytes{size});
    const Time time = time_of(machine, *Laboratory().program(experiment, machine), Bytes{size});
    if (before > Time{0}) {
      EXPECT_GT(time.us(), 0.985 * before.us()) << size;
      EXPECT_LT(time.us(), 1.025 * before.us()) << size;
    }
    before = time;
  }
}

TEST(Judge, an_interrupt_ends_the_choice) {
  const SharedMachine machine = machine::share(machine::load("ring:4"));
  std::atomic<bool> stop{true};
  Monitor monitor{.stop = &stop};
  const Experiment experiment = synthesis(machine, "all-reduce/synth", KiB(64));
  EXPECT_THROW(Laboratory().program(experiment, machine, {.monitor = &monitor}), Interrupted);
}

TEST(Judge, the_choice_is_deterministic) {
  const SharedMachine machine = machine::share(machine::load("ring:4"));
  const auto made = [&] {
    Laboratory laboratory;
    const Experiment experiment = synthesis(machine, "all-reduce/synth", KiB(64));
    return plan::write_plan(
        program::plan_of_built_in("all-reduce/synth", laboratory.load_options(experiment, machine))
            ->plan);
  };
  EXPECT_EQ(made(), made());
}

TEST(Judge, large_sizes_are_judged_as_they_are) {
  const SharedMachine machine = machine::share(machine::load("ring:2"));
  Laboratory laboratory;
  const auto time = [&](Bytes size) {
    return make_judge(laboratory)->cost(synthesis(machine, "all-gather/direct", size))->us();
  };
  EXPECT_NEAR(time(MiB(1024)) / time(MiB(256)), 4, 0.1);
}

TEST(Judge, many_ranks_are_not_simulated_and_illegal_sizes_are_refused) {
  const auto judged = [](const char* name, Bytes size) {
    const SharedMachine machine = machine::share(machine::load(name));
    Laboratory laboratory;
    return make_judge(laboratory)->cost(synthesis(machine, "all-gather/direct", size));
  };
  EXPECT_FALSE(judged("ring:33", MiB(33)).has_value());
  EXPECT_THROW(judged("ring:3", KiB(64)), Failure);
}

TEST(Evaluators, agree_as_far_as_they_say) {
  Laboratory laboratory;
  const auto line = make_evaluator(laboratory, sim::Engine::line);
  const auto fluid = make_evaluator(laboratory, sim::Engine::fluid);
  EXPECT_EQ(line->error().above, 0);
  for (const char* name : {"all-reduce/ring", "all-gather/direct", "all-reduce/one-shot"}) {
    const Experiment candidate{.machine = {.name = "ring:4"}, .subject = name, .size = KiB(64)};
    const Time time = *line->cost(candidate);
    EXPECT_EQ(time, laboratory.run(candidate).result.time);
    const double cost = fluid->cost(candidate)->us();
    EXPECT_LE(cost, time.us() * (1 + fluid->error().above)) << name;
    EXPECT_GE(cost, time.us() * (1 - fluid->error().below)) << name;
  }
}

}  // namespace
}  // namespace hemiola::study
