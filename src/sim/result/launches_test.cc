// Sequences of launches run in time: what overlaps and what does not, equally in both engines.
#include <gtest/gtest.h>

#include <utility>

#include "plan/template.h"
#include "program/lower/lower.h"
#include "sim/testing/line_compare.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;
using program::lower;
using program::LowerOptions;
using program::Realization;

/// Small GPUs with slow links: the gather takes half as long as the product, in 4 waves of tiles.
machine::Machine machine_of_four() {
  machine::Machine machine =
      machine::load("dgx-h100", {.set = {{"gpu.cu.count", "12"},
                                         {"gpu.cu.matrix_rate", "512"},
                                         {"link.nvlink4.bandwidth", "1GB/s"}}});
  machine.place(std::vector<int>{0, 1, 2, 3});
  return machine;
}

plan::Plan product(const char* name, plan::Parameters more = {}) {
  more.insert(more.end(), {{"m", "1024"}, {"n", "512"}, {"k", "512"}});
  return plan::make(name, 4, more);
}

Result run_plan(const plan::Plan& plan, const machine::Machine& machine,
                const LowerOptions& options) {
  const program::Program program = lower(plan, options);
  return simulate(program::bind(program, machine::share(machine),
                                {.size = program.fixed_size, .type = DataType::float16}),
                  {});
}

class Sequence : public testing::TestWithParam<Realization> {};

TEST_P(Sequence, overlaps_what_serial_does_one_after_the_other) {
  const machine::Machine machine = machine_of_four();
  const LowerOptions options{.workgroups = 6, .compute_workgroups = 2, .realization = GetParam()};
  plan::Plan gather = product("ag-gemm/serial"), alone = gather;
  for (plan::Code& code : gather.codes) {
    code.computes.clear();
    code.expected.clear();
  }
  for (plan::Code& code : alone.codes) {
    code.streams.clear();
    code.computes[0].after.clear();
  }
  const Time gathered = run_plan(gather, machine, options).time;
  const Time computed = run_plan(alone, machine, options).time;
  const Time serial = run_plan(product("ag-gemm/serial"), machine, options).time;
  // Both parts alone are started, and only one start counts. Buffers of the three plans lie at
  // different addresses, so that lines spread over the planes unevenly by up to 9 % of a link.
  const double sum = static_cast<double>(gathered.fs + computed.fs);
  EXPECT_GT(static_cast<double>(serial.fs), 0.9 * sum);
  EXPECT_LT(static_cast<double>(serial.fs), 1.05 * sum);
  const Time sequence =
      run_plan(product("ag-gemm/sequence", {{"degree", "4"}}), machine, options).time;
  EXPECT_GT(sequence, std::max(gathered, computed));
  EXPECT_LT(sequence.fs, serial.fs - std::min(gathered, computed).fs / 4);
}

INSTANTIATE_TEST_SUITE_P(Realizations, Sequence,
                         testing::Values(Realization::load_store, Realization::copy_engine));

// Every launch along k but the first loads and stores the whole result once more.
TEST(Launches, that_add_move_the_result_again) {
  const machine::Machine machine = machine_of_four();
  const auto stores = [&](const char* degree) {
    return run_plan(product("ag-gemm/sequence", {{"axis", "k"}, {"degree", degree}}), machine,
                    {.compute_workgroups = 6, .realization = Realization::copy_engine})
        .counters.at("requests.stores");
  };
  EXPECT_EQ(stores("4"), 4 * stores("1"));
}

TEST(Launches, take_as_long_in_both_engines) {
  machine::Machine machine = machine::load("dgx-h100", {.set = {{"gpu.cu.count", "8"}}});
  machine.place(std::vector<int>{0, 1, 2});
  for (const Realization realization :
       {Realization::load_store, Realization::bulk, Realization::copy_engine}) {
    for (const auto& [axis, transfer] : {std::pair{"m", "push"}, std::pair{"k", "pull"}}) {
      const plan::Plan plan = plan::make("ag-gemm/sequence", 3,
                                         {{"m", "96"},
                                          {"n", "48"},
                                          {"k", "64"},
                                          {"tile_m", "16"},
                                          {"tile_n", "16"},
                                          {"tile_k", "16"},
                                          {"degree", "2"},
                                          {"axis", axis},
                                          {"transfer", transfer}});
      const program::Program program =
          lower(plan, {.workgroups = 3, .compute_workgroups = 4, .realization = realization});
      const program::Bound bound =
          program::bind(program, machine::share(machine),
                        {.size = program.fixed_size, .type = DataType::float16});
      for (const Options& options :
           {Options{}, Options{.launch = Launch::graph, .warmup = 1, .iterations = 2}})
        EXPECT_EQ(compare(machine, bound, options), "")
            << name_of(realization) << ", along " << axis << ", " << transfer;
    }
  }
}

}  // namespace
}  // namespace hemiola::sim
