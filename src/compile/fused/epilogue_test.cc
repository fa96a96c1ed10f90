// Kernels that make something of a product before they store it, with plans whose sums are whole
// and with such that add up over ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "compile/fused/fused_file.h"
#include "compile/testing/describe.h"
#include "compile/testing/fused_text.h"
#include "core/testing/failure.h"
#include "plan/template.h"
#include "verify/verify.h"

namespace hemiola::compile {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// A product with `epilogue`, statements of which the last gives `out`, and more parameters.
std::string kernel(const std::string& epilogue, const std::string& more = {}) {
  return "import triton\nimport triton.language as tl\n\n\n@triton.jit\n"
         "def mm(a_ptr, b_ptr, c_ptr, " +
         more +
         "M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):\n"
         "    pm = tl.program_id(0)\n"
         "    pn = tl.program_id(1)\n"
         "    rm = pm * BM + tl.arange(0, BM)\n"
         "    rn = pn * BN + tl.arange(0, BN)\n"
         "    acc = tl.zeros((BM, BN), tl.float32)\n"
         "    for k in range(0, K, BK):\n"
         "        rk = k + tl.arange(0, BK)\n"
         "        a = tl.load(a_ptr + rm[:, None] * K + rk[None, :])\n"
         "        b = tl.load(b_ptr + rk[:, None] * N + rn[None, :])\n"
         "        acc += tl.dot(a, b)\n" +
         epilogue +
         "    tl.store(c_ptr + rm[:, None] * N + rn[None, :], out, mask=(rm[:, None] < M) & "
         "(rn[None, :] < N))\n";
}

struct Compiled {
  std::string text;
  verify::Proof proof;
};

Compiled compiled(const std::string& text, const char* plan_name) {
  const plan::Plan plan =
      plan::make(plan_name, 2, {{"m", "64"}, {"n", "64"}, {"k", "64"}, {"dtype", "float16"}});
  KernelRequest request{.describe = {.file = "mm.py",
                                     .kernel = {},
                                     .helpers = {},
                                     .constants = {{"BM", "16"}, {"BN", "16"}, {"BK", "16"}}}};
  request.text = text;
  const FusedFile fused(request, plan, "plan.json");
  Compiled made{
      fused.write({.file = "plan.json", .command = "hemiola", .version = "0"}, "o.py").text, {}};
  made.proof = fused.prove("o.py", made.text);
  return made;
}

const std::string kBias = "    bias = tl.load(bias_ptr + rn, mask=rn < N, other=0.0)\n";

TEST(Epilogues, of_whole_sums_are_in_the_reference_and_proven) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::pair<std::string, std::string> kKernels[] = {
      {"    out = tl.maximum(acc, 0.0)\n", ""},
      {"    out = tl.where(acc >= 0, acc, 0.01 * acc)\n", ""},
      {"    out = acc * tl.sigmoid(acc)\n", ""},
      {"    out = acc / (1 + tl.exp(-acc))\n", ""},
      {kBias + "    acc += bias[None, :]\n    out = acc * 0.5 * (1.0 + tl.erf(acc * "
               "0.7071067811865476))\n",
       "bias_ptr, "},
      {"    s = tl.load(s_ptr + rm)\n    out = acc * s[:, None]\n", "s_ptr, "},
      {"    out = tl.clamp(acc * 0.5, -1.0, 6.0)\n", ""},
      {"    out = tl.maximum(tl.minimum(acc, 2), tl.exp(-1.5))\n", ""},
      {kBias + "    out = acc + tl.broadcast_to(bias[None, :], (BM, BN))\n", "bias_ptr, "},
      {"    if bias_ptr is not None:\n        acc += tl.load(bias_ptr + rn)[None, :]\n    out = "
       "acc\n",
       "bias_ptr, "},
      {"    r = tl.load(r_ptr + rm[:, None] * stride_r + rn[None, :])\n    out = (acc + "
       "r).to(tl.float16)\n",
       "r_ptr, stride_r, "}};
  for (const auto& [epilogue, more] : kKernels) {
    for (const char* plan : {"ag-gemm/swizzle", "a2a-gemm/direct"}) {
      const Compiled made = compiled(kernel(epilogue, more), plan);
      EXPECT_EQ(made.proof.summary, "proven") << plan << '\n' << made.text;
      EXPECT_THAT(made.text, HasSubstr("def epilogue(product, of):"));
      EXPECT_THAT(made.text, Not(HasSubstr("given.pop")));
    }
  }
}

TEST(Epilogues, before_a_sum_over_ranks_are_linear_or_refused) {
  HEMIOLA_NEEDS_PYTHON_READER();
  for (const char* plan : {"gemm-rs/direct", "gemm-ar/partitioned", "gemm-rs/ring"}) {
    for (const char* epilogue :
         {"    out = tl.maximum(acc, 0.0)\n", "    out = acc * acc\n",
          "    out = tl.where(acc >= 0, acc, 0.01 * acc)\n", "    out = acc * tl.sigmoid(acc)\n",
          "    out = acc + 1.0\n", "    out = tl.minimum(acc, 1000.0)\n"})
      EXPECT_THAT(test::message_of([&] { compiled(kernel(epilogue), plan); }),
                  AllOf(HasSubstr("mm.py:"), HasSubstr("adds up over ranks"), HasSubstr("hint:")))
          << plan << epilogue;
    EXPECT_EQ(compiled(kernel("    out = acc * 0.5\n"), plan).proof.summary, "proven");
    // Scales of its own rank.
    EXPECT_EQ(
        compiled(kernel("    s = tl.load(s_ptr + rm)\n    out = acc * s[:, None]\n", "s_ptr, "),
                 plan)
            .proof.summary,
        "proven");
    // A bias is added by one rank.
    const Compiled bias =
        compiled(kernel(kBias + "    out = acc + bias[None, :]\n", "bias_ptr, "), plan);
    EXPECT_EQ(bias.proof.summary, "proven") << bias.text;
    EXPECT_THAT(bias.text, HasSubstr("zero(t.bias_ptr)"));
    const std::string zero = bias.text.substr(bias.text.find("compute[0].zero(t.bias_ptr)"), 27);
    std::string twice = bias.text;
    twice.replace(twice.find(zero), zero.size(), "pass");
    EXPECT_EQ(prove_fused("o.py", twice).verdict, verify::Verdict::wrong) << "nobody gave it";
  }
}

// A sum that begins with a bias, and block pointers, which Triton had before descriptors.
TEST(Epilogues, of_sums_that_begin_with_a_bias) {
  HEMIOLA_NEEDS_PYTHON_READER();
  std::string text = kernel("    out = acc\n", "bias_ptr, ");
  const std::string zeros = "tl.zeros((BM, BN), tl.float32)";
  text.replace(text.find(zeros), zeros.size(), zeros + " + tl.load(bias_ptr + rn)[None, :]");
  for (const char* plan : {"ag-gemm/swizzle", "gemm-rs/direct"})
    EXPECT_EQ(compiled(text, plan).proof.summary, "proven") << plan;
}

TEST(Emitted, block_pointers_are_read_back) {
  HEMIOLA_NEEDS_PYTHON_READER();
  std::string text = kernel("    out = acc\n");
  const auto replace = [&](const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
  };
  replace("    acc = tl",
          "    ap = tl.make_block_ptr(a_ptr, shape=(M, K), strides=(K, 1), "
          "offsets=(pm * BM, 0), block_shape=(BM, BK), order=(1, 0))\n    acc = tl");
  replace(
      "tl.load(a_ptr + rm[:, None] * K + rk[None, :])",
      "tl.load(ap, boundary_check=(0, 1), padding_option=\"zero\")\n        ap = tl.advance(ap, "
      "(0, BK))");
  EXPECT_EQ(compiled(text, "ag-gemm/swizzle").proof.summary, "proven");
  replace("(0, BK))", "(0, 1))");
  try {
    compiled(text, "ag-gemm/swizzle");
    FAIL() << "blocks of K that overlap";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::wrong_program);
    EXPECT_THAT(failure.what(), AllOf(HasSubstr("mm.py:"), HasSubstr("is not what reference()")));
  }
}

// What fractions are as whole numbers is not followed, and nobody says that it was.
TEST(Epilogues, with_a_cast_to_whole_numbers_are_not_proven) {
  HEMIOLA_NEEDS_PYTHON_READER();
  for (const char* epilogue : {"    out = acc.to(tl.int32).to(tl.float32)\n",
                               "    out = tl.cast(acc, tl.int8).to(tl.float32)\n"})
    EXPECT_EQ(compiled(kernel(epilogue), "ag-gemm/swizzle").proof.verdict, verify::Verdict::partial)
        << epilogue;
}

TEST(Epilogues, name_the_function_and_its_line_in_the_kernel) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string said = test::message_of(
      [&] { compiled(kernel("    acc = acc * 0.5\n    out = tl.exp(acc)\n"), "gemm-rs/direct"); });
  EXPECT_THAT(said, HasSubstr("mm.py:18:"));
  EXPECT_THAT(said, HasSubstr("'exp'"));
}

// What is no function of one product at its element is the kernel's affair, and its line is named.
TEST(Epilogues, that_nobody_can_say_are_refused_where_they_stand) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::vector<std::pair<const char*, const char*>> all = {
      {"    out = tl.where(rm[:, None] >= rn[None, :], acc, 0.0)\n", "where it lies"},
      {"    out = acc + rn[None, :] * 0.1\n", "where it lies"},
      {"    out = acc / tl.sum(acc, axis=1)[:, None]\n", "of others by 'sum'"},
      {"    out = acc * tl.dot(a, b)\n", "several products"},
      {"    out = acc + pm\n", "in some tiles"},
      {"    out = acc\n    if pn == 0:\n        out = acc * 2\n", "in some tiles"},
      {"    x = tl.load(x_ptr + rn % 8)\n    out = acc + x[None, :]\n", "reads 'x_ptr'"}};
  for (const auto& [epilogue, words] : all) {
    const std::string said = test::message_of(
        [&,
         text = kernel(epilogue,
                       std::string(epilogue).find("x_ptr") == std::string::npos ? "" : "x_ptr, ")] {
          const Compiled made = compiled(text, "ag-gemm/swizzle");
          FAIL() << epilogue << made.proof.summary;
        });
    EXPECT_THAT(said, AllOf(HasSubstr("mm.py:"), Not(HasSubstr("mm.py:6:")), HasSubstr(words),
                            HasSubstr("hint:")))
        << epilogue;
  }
  const Compiled turned =
      compiled(kernel("    x = tl.load(x_ptr + rn[None, :] * M + rm[:, None])\n    out = acc + x\n",
                      "x_ptr, "),
               "ag-gemm/swizzle");
  EXPECT_EQ(turned.proof.verdict, verify::Verdict::partial);
  EXPECT_THAT(turned.proof.reasons.back(),
              AllOf(HasSubstr("mm.py:17"), HasSubstr("reads 'x_ptr'")));
  std::string relu = kernel("    out = acc\n");
  relu.replace(relu.find("tl.dot(a, b)"), 12, "tl.dot(tl.maximum(a, 0.0), b)");
  EXPECT_THAT(test::message_of([&] { compiled(relu, "ag-gemm/swizzle"); }),
              AllOf(HasSubstr("mm.py:16:"), HasSubstr("changes an operand"), HasSubstr("'max'")));
}

TEST(Emitted, texts_are_judged_by_rules_and_by_the_proof) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text = fused_text("gemm_persistent", "gemm-rs/direct");
  EXPECT_EQ(prove_fused("o.py", text).summary, "proven");
  for (const auto& [from, to] :
       {std::pair{"sem=\"acq_rel\"", "sem=\"release\""}, {"tl.debug_barrier()", "pass"}})
    EXPECT_THROW(prove_fused("o.py", changed(text, from, to)), Failure) << from;
}

// Values are looked at where something is stored; what is stored nowhere has to be missed, too.
TEST(Emitted, tiles_that_are_not_stored_are_missed) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string store = "    tl.store(c_ptrs";
  for (const char* plan : {"ag-gemm/swizzle", "gemm-rs/direct", "a2a-gemm/direct"}) {
    const std::string text = fused_text("gemm", plan);
    const verify::Proof proof =
        prove_fused("o.py", changed(text, store, "    if tl.program_id(0) != 1:\n    " + store));
    EXPECT_EQ(proof.verdict, verify::Verdict::wrong) << plan;
    const std::string mask = "mask=(offs_m[:, None] < M) & (offs_n";
    const verify::Proof cut =
        prove_fused("o.py", changed(text, mask, "mask=(offs_m[:, None] < M - 16) & (offs_n"));
    EXPECT_EQ(cut.verdict, verify::Verdict::wrong) << plan;
  }
  // What begins as zeros has been written everywhere.
  ParameterValues constants{
      {"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"BLOCK_K", "16"}, {"SPLIT_K", "2"}};
  const std::string text = fused_text("gemm_split_k", "a2a-gemm/direct", constants);
  const std::string mask = "mask=(offs_m[:, None] < M) & (offs_n";
  EXPECT_THROW(
      prove_fused("o.py", changed(text, mask, "mask=(offs_m[:, None] < M - 16) & (offs_n")),
      Failure);
}

}  // namespace
}  // namespace hemiola::compile
