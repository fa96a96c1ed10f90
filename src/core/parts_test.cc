// What a registry takes, and what it says of the rest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hemiola/parts/registry.h"

namespace hemiola::parts {
namespace {

plan::TemplateInfo algorithm(const std::string& name, Collective collective) {
  return {.name = name,
          .description = "moves",
          .make = [](const plan::TemplateArguments&) { return plan::Plan(); },
          .collective = collective};
}

/// The only thing that is wrong.
std::string problem_of(const Registry& registry) {
  const auto& items = registry.problems().items();
  return items.size() == 1 ? items.front().message : std::to_string(items.size()) + " problems";
}

std::vector<std::string> names(const Registry& registry) {
  std::vector<std::string> all;
  for (const plan::TemplateInfo& one : registry.algorithms()) all.push_back(one.name);
  return all;
}

TEST(Registry, LeavesOutWhatHasANameThatIsTaken) {
  Registry registry;
  registry.add(algorithm("all-reduce/mine", Collective::all_reduce));
  registry.add(program::KernelInfo{
      .name = "all-reduce/mine",
      .description = "adds",
      .make = [](const program::KernelArguments&) { return program::Program(); },
      .collective = Collective::all_reduce});
  EXPECT_EQ(problem_of(registry), "there are two parts 'all-reduce/mine'");
  EXPECT_TRUE(registry.kernels().empty());
}

TEST(Registry, KeepsAlgorithmsOfACollectiveTogetherAndOfAFamilyToo) {
  Registry registry;
  registry.add(algorithm("gemm/a", Collective::custom));
  registry.add(algorithm("all-gather/a", Collective::all_gather));
  registry.add(algorithm("attention/a", Collective::custom));
  registry.add(algorithm("gemm/b", Collective::custom));
  registry.add(algorithm("all-reduce/a", Collective::all_reduce));
  registry.add(algorithm("all-gather/b", Collective::all_gather));
  EXPECT_THAT(names(registry), testing::ElementsAre("all-reduce/a", "all-gather/a", "all-gather/b",
                                                    "gemm/a", "gemm/b", "attention/a"));
  EXPECT_TRUE(registry.problems().empty());
}

TEST(Registry, SaysWhatBreaksTheContract) {
  const auto said = [](auto part) {
    Registry registry;
    registry.add(std::move(part));
    return problem_of(registry);
  };
  plan::TemplateInfo part = algorithm("all-gather/mine", Collective::all_reduce);
  EXPECT_EQ(said(part),
            "collective algorithm 'all-gather/mine' does not begin with its collective, "
            "'all-reduce/'");
  part = algorithm("all-gather/mine", Collective::all_gather);
  part.parameters = {{"way", "up", {"left", "right"}, "where to"}};
  EXPECT_EQ(said(part),
            "collective algorithm 'all-gather/mine' has a parameter 'way' whose default 'up' is "
            "none of its choices");
  part.parameters = {{"n", "1", {}, "a number"}, {"n", "2", {}, "a number"}};
  EXPECT_EQ(said(part), "collective algorithm 'all-gather/mine' has two parameters 'n'");
  part.parameters = {{"n", "1", {}, {}}};
  EXPECT_EQ(said(part),
            "collective algorithm 'all-gather/mine' has a parameter 'n' without a description");
  EXPECT_EQ(said(algorithm("my own", Collective::custom)),
            "collective algorithm 'my own' has blanks in its name");
  EXPECT_EQ(said(workload::TraceReader{.name = "mine", .description = "texts"}),
            "trace reader 'mine' has no function");
  EXPECT_EQ(said(explore::ScheduleRule{}), "a schedule rule has no name");
}

}  // namespace
}  // namespace hemiola::parts
