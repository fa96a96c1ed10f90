#include "compile/fused/fused_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"
#include "plan/template.h"

namespace hemiola::compile {
namespace {

using testing::HasSubstr;

TEST(Configurations, are_read_as_python_writes_them) {
  const auto all = read_configurations(
      R"([{"BLOCK_M": 128, "FAST": true, "num_warps": 8, "num_stages": 3}, {"KIND": "a", "X": null}])",
      "mine.json");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].constants.at("BLOCK_M"), "128");
  EXPECT_EQ(all[0].constants.at("FAST"), "True");
  EXPECT_EQ(all[0].warps, "8");
  EXPECT_EQ(all[0].stages, "3");
  EXPECT_EQ(all[1].constants.at("KIND"), "\"a\"");
  EXPECT_EQ(all[1].constants.at("X"), "None");
}

TEST(Configurations, are_refused_with_their_place) {
  const auto message = [](const std::string& text) {
    return test::message_of([&] { read_configurations(text, "mine.json"); });
  };
  EXPECT_THAT(message("[]"), HasSubstr("has no configuration"));
  EXPECT_THAT(message("[{\"BLOCK_M\": [1]}]"), HasSubstr("is no value of a parameter"));
  EXPECT_THAT(message("[\n{\"num_warps\": 0}]"), HasSubstr("mine.json:2"));
  EXPECT_THAT(message("{"), HasSubstr("mine.json"));
}

TEST(Emitted, realizations_follow_from_what_the_plan_does) {
  const plan::Parameters sizes{{"m", "256"}, {"n", "256"}, {"k", "256"}};
  EXPECT_EQ(emitted_realization(plan::make("ag-gemm/swizzle", 4, sizes)), "copy-engine");
  EXPECT_EQ(emitted_realization(plan::make("gemm-rs/direct", 4, sizes)), "load-store") << "sums";
  EXPECT_EQ(emitted_realization(plan::make("gemm-ar/partitioned", 4, sizes)), "load-store");
}

}  // namespace
}  // namespace hemiola::compile
