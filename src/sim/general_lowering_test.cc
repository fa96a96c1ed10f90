// What the general lowering makes runs on machines, with each realization, and overlaps.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "plan/template.h"
#include "program/lower/lower.h"
#include "program/testing/plan_fixtures.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace program::fixtures;
using namespace test;
using program::lower;
using program::LowerOptions;
using program::Realization;

Result run_lowered(const plan::Plan& plan, const machine::Machine& machine,
                   const LowerOptions& options, const Options& how = {}) {
  const program::Program program = lower(plan, options);
  const Bytes size = program.fixed_size.count > 0
                         ? program.fixed_size
                         : program.next_legal_size({1000}, DataType::float32);
  const program::Bound bound =
      program::bind(program, machine::share(machine), {.size = size, .type = DataType::float32});
  return simulate(bound, how);
}

TEST(GeneralLowering, of_any_plan_ends_on_a_machine_and_delivers_every_byte) {
  const machine::Machine machine = distinct("switch:4");
  EXPECT_TRUE(rc::check([&] {
    const plan::Plan plan = RandomPlan(*rc::gen::arbitrary<unsigned>()).make();
    LowerOptions options;
    options.realization = *rc::gen::element(Realization::load_store, Realization::bulk);
    options.workgroups = *rc::gen::inRange(1, 7);
    options.threads = 64;
    const Result result = run_lowered(plan, machine, options, {.warmup = 1, .iterations = 1});
    RC_ASSERT(result.counters.at("stores.injected_bytes") ==
              result.counters.at("stores.delivered_bytes"));
  }));
}

TEST(GeneralLowering, of_any_plan_of_pushes_ends_across_nics) {
  machine::Machine machine = machine::load("dgx-h100:2", {});
  machine.place(std::vector<int>{6, 7, 8, 9});
  EXPECT_TRUE(rc::check([&] {
    const plan::Plan plan =
        RandomPlan(*rc::gen::arbitrary<unsigned>(), RandomPlan::Form::pushes).make();
    const Result result = run_lowered(plan, machine, {.workgroups = 3, .threads = 64},
                                      {.warmup = 1, .iterations = 1});
    RC_ASSERT(result.counters.at("stores.injected_bytes") ==
              result.counters.at("stores.delivered_bytes"));
  }));
}

TEST(GeneralLowering, by_copy_engines_of_any_plan_ends_on_a_machine) {
  const machine::Machine machine = distinct("switch:4");
  EXPECT_TRUE(rc::check([&] {
    const plan::Plan plan =
        RandomPlan(*rc::gen::arbitrary<unsigned>(), RandomPlan::Form::copies).make();
    const Result result = run_lowered(plan, machine, {.realization = Realization::copy_engine},
                                      {.warmup = 1, .iterations = 1});
    RC_ASSERT(result.counters.at("stores.injected_bytes") ==
              result.counters.at("stores.delivered_bytes"));
  }));
}

TEST(GeneralLowering, by_copy_engines_ends_on_a_machine) {
  const machine::Machine machine = distinct("switch:4");
  for (const char* name : {"all-gather/direct", "all-gather/ring", "all-to-all/direct"}) {
    const Result result =
        run_lowered(plan::make(name, 4), machine, {.realization = Realization::copy_engine},
                    {.warmup = 1, .iterations = 2});
    EXPECT_GT(result.counters.at("requests.bursts"), 0) << name;
    EXPECT_EQ(result.counters.at("requests.stores"), 0) << name;
    EXPECT_EQ(result.counters.at("stores.injected_bytes"),
              result.counters.at("stores.delivered_bytes"))
        << name;
  }
}

TEST(GeneralLowering, of_a_scattered_matrix_product_ends_on_a_machine) {
  const machine::Machine machine = machine::load("dgx-h100", {.set = {{"gpu.cu.count", "12"}}});
  for (const Realization realization :
       {Realization::load_store, Realization::bulk, Realization::co_located}) {
    const Result result =
        run_lowered(gemm_rs(4), machine,
                    {.workgroups = 4, .compute_workgroups = 8, .realization = realization});
    EXPECT_EQ(result.counters.at("stores.injected_bytes"),
              result.counters.at("stores.delivered_bytes"));
    // Steps whose operands come before those of an earlier one, too.
    for (const Attribution& attribution : result.attribution)
      EXPECT_EQ(sum(attribution), result.time.fs);
  }
}

class GatheredProduct : public testing::TestWithParam<std::tuple<Realization, bool>> {};

// With the gather and the product each as long as the other, doing both takes less than their sum.
TEST_P(GatheredProduct, overlaps_its_gather) {
  const auto [realization, pulls] = GetParam();
  const machine::Machine machine =
      machine::load("dgx-h100", {.set = {{"gpu.cu.count", "12"}, {"gpu.cu.matrix_rate", "256"}}});
  const LowerOptions options{.workgroups = 4, .compute_workgroups = 8, .realization = realization};
  const AgGemm shape{.ranks = 4, .m = 1024, .n = 128, .k = 512, .pulls = pulls};
  AgGemm gather = shape, product = shape;
  gather.computes = false;
  product.gathers = false;
  product.m = shape.m * shape.ranks;  // all rows are there: as many tiles
  LowerOptions alone = options;
  if (realization == Realization::co_located) alone.realization = Realization::bulk;
  const Time both = run_lowered(ag_gemm(shape), machine, options).time;
  const Time gathered = run_lowered(ag_gemm(gather), machine, alone).time;
  const Time computed = run_lowered(ag_gemm(product), machine, options).time;
  EXPECT_GT(both, gathered);
  EXPECT_LT(both, gathered + computed);
  if (realization != Realization::co_located) {  // most of the shorter one is hidden
    EXPECT_LT(both.fs, computed.fs + gathered.fs / 3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Realizations, GatheredProduct,
    testing::Combine(testing::Values(Realization::load_store, Realization::bulk,
                                     Realization::copy_engine, Realization::co_located),
                     testing::Bool()));

}  // namespace
}  // namespace hemiola::sim
