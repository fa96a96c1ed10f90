// Parts of somebody else in a laboratory: what they are good for, and what is said of broken ones.
#include <gtest/gtest.h>

#include <stdexcept>

#include "hemiola/experiment.h"
#include "hemiola/parts/build_plan.h"
#include "hemiola/parts/registry.h"

namespace hemiola {
namespace {

/// An all-gather that forgets the last `forgets` distances.
plan::Plan pushed(const plan::TemplateArguments& arguments, int forgets) {
  using namespace plan;
  plan::Plan made = start_plan(arguments, arguments.ranks);
  made.tensors = {{"input", Role::input, 1}, {"output", Role::output, arguments.ranks}};
  const Region own = chunk_of(0), gathered = chunk_of(1, own_rank());
  Stream stream{"exchange", {copy(own, gathered)}};
  for (int distance = 1; distance < arguments.ranks - forgets; ++distance)
    stream.items.push_back(push(around(arguments.ranks, distance), own, gathered));
  run_everywhere(made, stream);
  return made;
}

Laboratory laboratory_with(std::function<plan::Plan(const plan::TemplateArguments&)> make) {
  parts::Registry registry = parts::built_ins();
  registry.add(plan::TemplateInfo{.name = "all-gather/mine",
                                  .description = "to all others",
                                  .make = std::move(make),
                                  .collective = Collective::all_gather});
  return Laboratory(std::move(registry));
}

Experiment mine(const Laboratory& laboratory) {
  return {.machine = Machine::load("ring:4"),
          .program = laboratory.program("all-gather/mine"),
          .size = KiB(64)};
}

/// Of making it.
Failure failure_with(std::function<plan::Plan(const plan::TemplateArguments&)> make) {
  Laboratory laboratory = laboratory_with(std::move(make));
  try {
    laboratory.run(mine(laboratory));
  } catch (const Failure& failure) {
    return failure;
  }
  return Failure("nothing failed");
}

TEST(LibraryParts, AnAlgorithmIsProvenAndRunAsTheBuiltInsAre) {
  Laboratory laboratory = laboratory_with([](const auto& asked) { return pushed(asked, 0); });
  const Outcome outcome = laboratory.run(mine(laboratory));
  EXPECT_EQ(outcome.program, "all-gather/mine");
  EXPECT_EQ(outcome.result.checked, "full");
  EXPECT_EQ(laboratory.plan("all-gather/mine", 4).transfers(), 16);
  // Who has not been given the registry does not know it.
  EXPECT_THROW(Program::load("all-gather/mine"), Failure);
  EXPECT_THROW(run(mine(laboratory)), Failure);
}

TEST(LibraryParts, AnAlgorithmThatForgetsIsFoundOut) {
  EXPECT_EQ(failure_with([](const auto& asked) { return pushed(asked, 1); }).code(),
            ExitCode::wrong_program);
}

TEST(LibraryParts, AnAlgorithmThatBreaksItsContractIsNamed) {
  const auto text_of = [](const auto& make) { return std::string(failure_with(make).what()); };
  using Arguments = plan::TemplateArguments;
  EXPECT_EQ(text_of([](const Arguments&) -> plan::Plan { throw std::out_of_range("at"); }),
            "error: algorithm 'all-gather/mine' threw 'at'");
  EXPECT_EQ(text_of([](const Arguments&) { return plan::Plan(); }),
            "error: algorithm 'all-gather/mine' made a plan of custom on 0 ranks, and was "
            "asked for one of all-gather on 4");
  const std::string invalid = text_of([](const Arguments& asked) {
    plan::Plan made = pushed(asked, 0);
    made.tensors.pop_back();
    return made;
  });
  EXPECT_NE(invalid.find("plan 'all-gather/mine'"), std::string::npos) << invalid;
}

TEST(LibraryParts, ALaboratoryRefusesARegistryWithBrokenParts) {
  parts::Registry registry = parts::built_ins();
  registry.add(explore::ScheduleRule{.name = "mine"});
  EXPECT_THROW(Laboratory{registry}, Failure);
  EXPECT_TRUE(parts::built_ins().problems().empty()) << parts::built_ins().problems().render();
}

}  // namespace
}  // namespace hemiola
