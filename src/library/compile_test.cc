#include "hemiola/compile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/python/syntax.h"
#include "hemiola/experiment.h"

namespace hemiola {
namespace {

using testing::HasSubstr;

constexpr const char* kTriton = R"(import triton
import triton.language as tl

@triton.jit
def gemm(a_ptr, b_ptr, c_ptr, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    offs_m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    offs_n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        offs_k = k + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + offs_m[:, None] * K + offs_k[None, :])
        b = tl.load(b_ptr + offs_k[:, None] * N + offs_n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + offs_m[:, None] * N + offs_n[None, :], acc.to(tl.float16))
)";

Plan small_plan(const std::string& name) {
  return Plan::make(name, 2, {{"m", "128"}, {"n", "64"}, {"k", "64"}});
}

TEST(CompilePlan, puts_a_plan_into_the_text_of_a_kernel) {
  if (!compile::can_parse()) GTEST_SKIP() << compile::why_it_cannot_parse();
  CompileOptions options;
  options.configurations = R"([{"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
                               {"BLOCK_M": 128, "BLOCK_N": 32, "BLOCK_K": 32}])";
  const CompiledPlan made = compile_plan(small_plan("ag-gemm/swizzle"),
                                         KernelSource{.file = "gemm.py", .text = kTriton}, options);
  EXPECT_EQ(made.kernel, "gemm");
  EXPECT_THAT(made.text, HasSubstr("PLAN = \"" + made.plan_hash + "\""));
  EXPECT_THAT(made.text, HasSubstr("VALUES = {\"N\": 32, "));
  EXPECT_THAT(made.dropped, testing::ElementsAre(HasSubstr("straddle chunks")));
}

TEST(CompilePlan, writes_products_of_pytorch_without_a_kernel) {
  const CompiledPlan made = compile_plan(small_plan("ag-gemm/sequence"), std::nullopt);
  EXPECT_EQ(made.kernel, "");
  EXPECT_THAT(made.text, HasSubstr(".mm("));
}

TEST(CompilePlan, does_not_write_a_plan_that_is_proven_wrong) {
  std::string text = small_plan("ag-gemm/sequence").to_json();
  const std::string after = "\"after\": [";
  const std::size_t at = text.find(after);
  ASSERT_NE(at, text.npos);
  std::size_t end = at + after.size();
  for (int depth = 1; depth > 0; ++end) depth += text[end] == '[' ? 1 : text[end] == ']' ? -1 : 0;
  text.replace(at, end - at, "\"after\": []");  // a product no longer waits for its rows
  EXPECT_THROW(compile_plan(Plan::from_json(text), std::nullopt), WrongProgram);
}

}  // namespace
}  // namespace hemiola
