// What tiles store is what reference() says, or the line that stores it is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/readback/readback.h"
#include "compile/testing/fused_text.h"
#include "core/diagnostics.h"
#include "plan/plan.h"

namespace hemiola::compile {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class ReadBackValues : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_parse()) GTEST_SKIP() << why_it_cannot_parse();
  }

  static std::vector<std::string> unjudged(const std::string& text) {
    return read_fused("fused.py", text).program.plan->unjudged;
  }
  /// A text whose values are wrong.
  static void expect_wrong(const std::string& text, const std::string& tensor) {
    try {
      read_fused("fused.py", text);
      ADD_FAILURE() << "nothing was found in\n" << text;
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::wrong_program);
      EXPECT_THAT(failure.what(),
                  HasSubstr("what is stored to '" + tensor + "' is not what reference() says"));
    }
  }
};

TEST_F(ReadBackValues, of_files_as_they_were_written_are_judged) {
  for (const char* kernel : {"gemm", "gemm_persistent", "gemm_split_k", "gemm_tma"}) {
    ParameterValues constants{{"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"BLOCK_K", "16"}};
    if (std::string_view(kernel) == "gemm_split_k") constants["SPLIT_K"] = "2";
    for (const char* plan : {"ag-gemm/swizzle", "gemm-rs/direct", "a2a-gemm/direct"})
      EXPECT_THAT(unjudged(fused_text(kernel, plan, constants)), IsEmpty())
          << kernel << ' ' << plan;
  }
  for (const char* plan : {"gemm-a2a-gemm/direct", "mlp/domino"})
    EXPECT_THAT(unjudged(fused_text("gemm_persistent", plan)), IsEmpty()) << plan;
  for (const char* plan : {"ring-attention/ring", "ring-attention/swizzle"})
    EXPECT_THAT(unjudged(fused_text("attention", plan)), IsEmpty()) << plan;
}

TEST_F(ReadBackValues, need_all_of_the_depth_once) {
  const std::string text = fused_text("gemm_persistent", "ag-gemm/swizzle");
  const std::string loop = "for ki in range(steps_k):";
  for (const char* other : {"for ki in range(steps_k - 1):", "for ki in range(1, steps_k):",
                            "for ki in range(0, steps_k, 2):"})
    expect_wrong(changed(text, loop, other), "c");
  expect_wrong(changed(text, loop, "for ki in [0, 0, 1, 2, 3]:"), "c");
}

TEST_F(ReadBackValues, need_every_piece_of_a_loop_once) {
  const std::string text = fused_text("attention", "ring-attention/ring");
  expect_wrong(changed(text, "range(0, hm_pieces)", "range(0, hm_pieces - 1)"), "o");
  expect_wrong(changed(text, "range(0, hm_pieces)", "range(1, hm_pieces)"), "o");
}

TEST_F(ReadBackValues, are_followed_from_the_product_to_the_store) {
  const std::string text = fused_text("gemm", "gemm-rs/direct");
  const std::string stored = "acc.to(c_ptr.dtype.element_ty)";
  for (const char* other : {"(acc + 1.0)", "(acc * 2)", "tl.exp(acc)", "tl.maximum(acc, 0.0)",
                            "tl.where(acc > 0, acc, 0.01 * acc)", "(acc / (1 + tl.exp(-acc)))"})
    expect_wrong(changed(text, stored, other), "partial");
  for (const char* same : {"(acc * 1.0)", "(2 * acc - acc)", "tl.trans(tl.trans(acc))",
                           "tl.where(acc > 0, acc, acc)", "tl.maximum(acc, acc)"})
    EXPECT_THAT(unjudged(changed(text, stored, same)), IsEmpty()) << same;
}

TEST_F(ReadBackValues, that_nobody_can_tell_are_said) {
  const std::string text = fused_text("gemm", "ag-gemm/swizzle");
  EXPECT_THAT(unjudged(changed(text, "acc.to(c_ptr.dtype.element_ty)", "tl.cumsum(acc, 1)")),
              ElementsAre(HasSubstr("what tiles store to 'c'")));
  const std::size_t reference = text.find("def reference(");
  ASSERT_NE(reference, text.npos);
  const std::size_t main = text.find("if __name__");
  EXPECT_THAT(unjudged(text.substr(0, reference) + "reference = None\n\n\n" + text.substr(main)),
              ElementsAre(HasSubstr("the file has no reference()")));
}

}  // namespace
}  // namespace hemiola::compile
