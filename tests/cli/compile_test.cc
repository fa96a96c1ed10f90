// hemiola compile --plan: what it writes, says and refuses. tests/torch executes what it writes.
#include <gtest/gtest.h>

#include "program.h"

namespace hemiola::test {
namespace {

constexpr const char* kMake =
    "plan make ag-gemm/sequence --ranks 4 --param m=128 --param n=64 --param k=64 -o plan.json";

TEST(CompilePlan, writes_a_file_and_says_what_is_in_it) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  const Outcome outcome = place.run("compile --plan plan.json -o overlap.py");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out,
            "overlap.py: ag-gemm/sequence on 4 ranks as PyTorch; of a rank 12 copies on 3 streams, "
            "4 products on 1, 12 waits, 0 signals\n");
  EXPECT_TRUE(contains(place.read("overlap.py"), "hemiola compile --plan plan.json -o overlap.py"));
  EXPECT_EQ(place.files(), "overlap.py plan.json ");
}

TEST(CompilePlan, writes_the_runtime_beside_it_where_that_is_asked_for) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  ASSERT_EQ(place.run("compile --plan plan.json -o overlap.py --runtime").code, 0);
  EXPECT_TRUE(contains(place.read("hemiola_rt/__init__.py"), "def connect("));
  EXPECT_TRUE(contains(place.read("hemiola_rt/_plan.py"), "def load_plan("));
}

TEST(CompilePlan, does_not_compile_a_wrong_plan_unless_it_is_told_to) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  // A product that no longer waits for the first of its chunks.
  std::string text = place.read("plan.json");
  const std::size_t first = text.find('{', text.find("\"after\": ["));
  ASSERT_NE(first, text.npos);
  text.erase(first, text.find("},", first) + 2 - first);
  place.write("wrong.json", text);
  const Outcome outcome = place.run("compile --plan wrong.json -o overlap.py");
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "wrong.json: check: wrong: data race on a[1, 0:8, 0:64]"))
      << outcome.err;
  EXPECT_EQ(place.files(), "plan.json wrong.json ");
  EXPECT_EQ(place.run("compile --plan wrong.json -o overlap.py --no-check").code, 0);
}

TEST(CompilePlan, refuses_bad_usage_and_input_with_one_message) {
  const Workplace place;
  ASSERT_EQ(place.run(kMake).code, 0);
  place.write("half.json", place.read("plan.json").substr(0, 900));
  place.write("text.json", "no plan at all\n");
  ASSERT_EQ(place.run("plan make ag-gemm/swizzle --ranks 4 -o tiles.json").code, 0);
  const std::string before = place.files();
  const auto expect = [&](const std::string& arguments, const std::string& message) {
    const Outcome outcome = place.run("compile " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_TRUE(contains(outcome.err, message)) << outcome.err;
  };
  expect("-o overlap.py", "--plan: error: is missing");
  expect("--plan plan.json", "--output: error: is missing");
  expect("--plan absent.json -o overlap.py", "absent.json: error: no such file");
  expect("--plan half.json -o overlap.py", "half.json:");
  expect("--plan text.json -o overlap.py", "text.json: error: is no plan but");
  expect("--plan ag-gemm/sequence -o overlap.py", "is a template, whose sizes are not said");
  expect("--plan tiles.json -o overlap.py", "waits for its data inside the kernel, tile by tile");
  expect("--plan plan.json -o /", "--output: error: '/' is a folder, not a file");
  expect("--plan plan.json -o absent/overlap.py", "is in a folder that is not there");
  expect("--plan plan.json -o overlap.py --plann x", "unknown option '--plann'");
  EXPECT_EQ(place.files(), before) << "nothing is written";
}

}  // namespace
}  // namespace hemiola::test
