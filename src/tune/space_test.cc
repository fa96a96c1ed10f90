#include "tune/space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/testing/failure.h"
#include "study/laboratory/experiment.h"

namespace hemiola::tune {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Pair;

compile::Configuration tiles(const std::string& m, const std::string& stages = {}) {
  compile::Configuration one;
  one.constants = {{"BLOCK_M", m}};
  one.stages = stages;
  return one;
}

const plan::TemplateInfo& swizzle() {
  return *plan::find_template("ag-gemm/swizzle");
}

machine::SharedMachine four_gpus() {
  static study::Laboratory laboratory;
  return laboratory.machine({.name = "dgx-h100", .ranks = "4"});
}

const study::Settings kSizes{{"m", "1024"}, {"n", "512"}, {"k", "256"}};

TEST(TuneSpaces, have_each_point_once_and_leave_out_what_means_nothing) {
  const Choices choices{{"split", {"1", "2"}},       {"realization", {"copy-engine", "load-store"}},
                        {"workgroups", {"8", "16"}}, {"transfer", {"pull"}},
                        {"order", {"clockwise"}},    {"stages", {"2", "3", "4"}}};
  const Space space(swizzle(), kSizes, choices, {tiles("64"), tiles("128", "4")}, *four_gpus());
  const std::vector<Point> points = space.points();
  // Stages where the configuration has none (3 + 1), copy engines once, workgroups of load-store.
  EXPECT_EQ(points.size(), 4u * 2 * (1 + 2));
  EXPECT_EQ(std::set<Point>(points.begin(), points.end()).size(), points.size());
  std::set<std::string> texts;
  for (const Point& point : points) {
    texts.insert(space.text(point));
    const bool copies = space.value(point, "realization") == "copy-engine";
    EXPECT_EQ(space.value(point, "workgroups").empty(), copies);
  }
  EXPECT_EQ(texts.size(), points.size());
}

TEST(TuneSpaces, give_template_and_lowering_what_is_theirs) {
  const Space space(swizzle(), kSizes, {{"realization", {"load-store"}}, {"workgroups", {"8"}}},
                    {tiles("64", "3")}, *four_gpus());
  const Point usual = space.usual();
  const study::Settings plan = space.plan_parameters(usual), lowering = space.lowering(usual);
  EXPECT_THAT(plan, testing::Contains(Pair("split", "1")));
  EXPECT_THAT(plan, testing::Not(testing::Contains(Pair("workgroups", "8"))));
  EXPECT_THAT(lowering, testing::UnorderedElementsAre(Pair("realization", "load-store"),
                                                      Pair("workgroups", "8"), Pair("stages", "3"),
                                                      Pair("compute_workgroups", "124")));
  EXPECT_EQ(space.configuration(usual).stages, "3");
}

TEST(TuneSpaces, begin_with_the_usual_value_of_what_begins_to_mean_something) {
  const Space space(swizzle(), kSizes, {}, {tiles("64", "3")}, *four_gpus());
  const std::vector<Dimension>& all = space.dimensions();
  const auto at = [&](const std::string& name) {
    return static_cast<std::size_t>(
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; }) -
        all.begin());
  };
  EXPECT_EQ(space.value(space.usual(), "realization"), "copy-engine");
  const Point changed = space.with(space.usual(), at("realization"), 0);
  EXPECT_EQ(space.value(changed, "realization"), "load-store");
  EXPECT_EQ(space.value(changed, "workgroups"), "16");
}

TEST(TuneSpaces, find_which_parameter_says_which_tile) {
  EXPECT_THAT(tile_parameters(swizzle(), 4, kSizes, nullptr),
              ElementsAre("tile_m", "tile_n", "tile_k"));
  EXPECT_THAT(tile_parameters(*plan::find_template("ring-attention/ring"), 4,
                              {{"heads", "2"}, {"sequence", "512"}, {"head", "16"}}, nullptr),
              testing::Contains("tile_kv"));
}

TEST(TuneSpaces, take_lists_of_sizes_as_buckets_and_others_as_choices) {
  const Asked asked =
      asked_of({{"m", "256,512"}, {"n", "64"}, {"split", "2,4"}, {"prelaunch", "0,1"}}, swizzle());
  EXPECT_THAT(asked.choices, ElementsAre(Pair("prelaunch", ElementsAre("0", "1")),
                                         Pair("split", ElementsAre("2", "4"))));
  ASSERT_EQ(asked.buckets.size(), 2u);
  EXPECT_EQ(bucket_name(asked.buckets, 0), "m=256");
  EXPECT_EQ(bucket_name({asked.buckets[1]}, 0), "m=512 n=64");
}

TEST(TuneSpaces, refuse_what_is_not_theirs) {
  const auto message = [](const study::Settings& given) {
    return test::message_of([&] {
      const Asked asked = asked_of(given, swizzle());
      const Space space(swizzle(), asked.buckets.front(), asked.choices, {tiles("64")},
                        *four_gpus());
    });
  };
  EXPECT_THAT(message({{"tile_m", "64"}}), HasSubstr("is what a configuration of the kernel says"));
  EXPECT_THAT(message({{"spilt", "2"}}), HasSubstr("did you mean 'split'"));
  EXPECT_THAT(message({{"m", "1,,2"}}), HasSubstr("a value of 'm' is empty"));
  EXPECT_THAT(message({{"m", "1"}, {"m", "2"}}), HasSubstr("'m' is given twice"));
}

}  // namespace
}  // namespace hemiola::tune
