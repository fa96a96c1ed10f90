#include "explore/space/operator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/testing/failure.h"

namespace hemiola::explore {
namespace {

using ::testing::HasSubstr;

const SourceLocation kHere{.file = "--gemm"};

TEST(Operator, local_sizes_are_what_one_gpu_computes) {
  const Operator up{.ranks = 8, .m = 8192, .n = 28672, .k = 8192};
  EXPECT_EQ(local_product(up).n, 3584);
  EXPECT_EQ(collective_size(up).count, std::int64_t{8192} * 8192 * 2);
  const Operator down{.kind = OperatorKind::gemm_rs, .ranks = 8, .m = 8192, .n = 8192, .k = 28672};
  EXPECT_EQ(local_product(down).k, 3584);
  EXPECT_EQ(collective_size(down).count, std::int64_t{8192} * 8192 * 2);
  const Operator experts{.kind = OperatorKind::a2a_gemm, .ranks = 4, .m = 1024, .n = 512, .k = 256};
  EXPECT_EQ(local_product(experts).m, 256);
  EXPECT_EQ(local_product(experts).n, 512);
  EXPECT_EQ(collective_size(experts).count, 256 * 256 * 2);
  const Operator weights{.ranks = 4, .m = 1024, .n = 512, .k = 256, .gathers_b = true};
  EXPECT_EQ(local_product(weights).m, 256);
  EXPECT_EQ(local_product(weights).n, 512);
  EXPECT_EQ(collective_size(weights).count, 512 * 256 * 2);
}

TEST(Operator, from_local_sizes_is_the_same_operator) {
  for (const OperatorKind kind :
       {OperatorKind::ag_gemm, OperatorKind::gemm_rs, OperatorKind::gemm_ar, OperatorKind::a2a_gemm,
        OperatorKind::gemm_a2a}) {
    const Operator whole{.kind = kind, .ranks = 4, .m = 1024, .n = 512, .k = 256};
    const machine::GemmShape local = local_product(whole);
    Operator again = whole;
    again.m = local.m;
    again.n = local.n;
    again.k = local.k;
    EXPECT_EQ(from_local(again, kHere), whole) << name_of(kind);
    EXPECT_EQ(operator_named(std::string(name_of(kind)), kHere), kind);
    EXPECT_EQ(who_holds_what(whole).size(), 3U);
  }
}

TEST(Operator, the_busiest_rank_of_an_uneven_load_decides) {
  Operator op{.kind = OperatorKind::a2a_gemm, .ranks = 4, .m = 4096, .n = 512, .k = 256};
  op.load = "4/2/1/1";
  EXPECT_NO_THROW(check(op, kHere));
  // Each rank has 1024 tokens, of which 512 are for the experts of the first.
  EXPECT_EQ(local_product(op).m, 4 * 512);
  EXPECT_EQ(collective_size(op).count, 4 * 512 * 256 * 2);
  EXPECT_EQ(as_busiest(op).m, 4 * 4 * 512);
  EXPECT_EQ(as_busiest(op).load, "even");
  EXPECT_THAT(who_holds_what(op).front(), HasSubstr("512, 256, 128, 128 of them for the experts"));
  EXPECT_THAT(text_of(op), HasSubstr("load 4/2/1/1"));
  EXPECT_EQ(template_sizes(op).back().second, "4/2/1/1");
  op.m = 4 * 1030;  // which 16 does not divide
  EXPECT_NO_THROW(check(op, kHere));
  op.load = "4/2/1";
  EXPECT_THAT(test::message_of([&] { check(op, kHere); }), HasSubstr("of 3 ranks, not of 4"));
  op.kind = OperatorKind::gemm_rs;
  EXPECT_THAT(test::message_of([&] { check_load(op, kHere); }), HasSubstr("has no experts"));
}

TEST(Operator, what_does_not_divide_is_refused_with_what_does) {
  const auto refusal = [](const Operator& op) {
    return test::message_of([&] { check(op, kHere); });
  };
  EXPECT_FALSE(is_divided({.ranks = 8, .m = 100, .n = 512, .k = 256}));
  EXPECT_TRUE(is_divided({.ranks = 8, .m = 104, .n = 512, .k = 256}));
  const std::string odd = refusal({.ranks = 8, .m = 100, .n = 512, .k = 256});
  EXPECT_THAT(odd, HasSubstr("M = 100 does not divide by 8"));
  EXPECT_THAT(odd, HasSubstr("96 and 104"));
  EXPECT_THAT(refusal({.ranks = 8, .m = 0, .n = 512, .k = 256}), HasSubstr("M = 0 is not a size"));
  EXPECT_THAT(refusal({.ranks = 1, .m = 8, .n = 8, .k = 8}), HasSubstr("2 ranks at least"));
  EXPECT_THAT(refusal({.kind = OperatorKind::a2a_gemm, .ranks = 8, .m = 32, .n = 8, .k = 8}),
              HasSubstr("M = 32 does not divide by 64"));
  EXPECT_THAT(refusal({.ranks = 8, .m = 1 << 30, .n = 1 << 30, .k = 1 << 30}),
              HasSubstr("more than 2^60"));
  EXPECT_THAT(test::message_of([] { operator_named("ag-gem", kHere); }), HasSubstr("ag-gemm"));
}

}  // namespace
}  // namespace hemiola::explore
