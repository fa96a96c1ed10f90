// The files with defects that lie beside the project, where they do; own copies of each kind are in
// calls_test.cc, sizes_test.cc and collective_defects_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "plan/plan_json.h"
#include "verify/programs/sizes.h"

namespace hemiola::verify {
namespace {

using ::testing::HasSubstr;

std::string shared_defect(const std::string& name) {
  return HEMIOLA_SOURCE_DIR "/../shared/defects/" + name;
}
std::string content(const std::string& file) {
  std::ostringstream text;
  text << std::ifstream(file).rdbuf();
  return text.str();
}
plan::Plan plan_of(const std::string& name) {
  return plan::read_plan(content(shared_defect(name)), name);
}
Proof defect_proof(const std::string& name, Bytes size, int calls = 0) {
  return check(program::bind(program::load(shared_defect(name)), nullptr, {.size = size}),
               {.calls = calls});
}

class SharedDefects : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::is_directory(shared_defect("")))
      GTEST_SKIP() << "\n*** SKIPPED: the files with defects are not here (" << shared_defect("")
                   << ") ***\n";
  }
};

TEST_F(SharedDefects, a_send_that_nobody_receives) {
  const Proof proof = defect_proof("extra_send.xml", MiB(1));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("in call 2: wrong result"));
  EXPECT_EQ(proof.counterexample.at(0).where, "/algo/gpu[0]/tb[0]/step[2]");
  EXPECT_EQ(defect_proof("extra_send.xml", MiB(1), 1).verdict, Verdict::proven);
}

TEST_F(SharedDefects, the_reduce_scatter_of_msccl_tools) {
  EXPECT_EQ(defect_proof("programs/rs_2g_inplace.xml", MiB(1)).verdict, Verdict::proven);
}

TEST_F(SharedDefects, a_plan_in_the_older_schema_of_mscclpp) {
  EXPECT_EQ(defect_proof("programs/old_schema.json", MiB(1)).verdict, Verdict::proven);
}

TEST_F(SharedDefects, a_reduction_into_what_nobody_wrote) {
  const Proof proof = check(plan_of("programs/self_race_message.json"));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("a reduction adds to output[0] of rank 0, which nothing"));
}

TEST_F(SharedDefects, a_plan_that_unrolls_to_too_much) {
  try {
    plan_of("programs/plan_loop_1e9.json");
    FAIL() << "it was read";
  } catch (const Failure& failure) {
    EXPECT_THAT(failure.diagnostics().render(), HasSubstr("12000000004 in all"));
  }
}

TEST_F(SharedDefects, one_signal_too_many) {
  const Proof proof = defect_proof("mscclpp_extra_signal.json", MiB(1));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.counterexample.at(0).text, HasSubstr("no wait takes"));
  const Proof once = defect_proof("mscclpp_extra_signal.json", MiB(1), 1);
  EXPECT_EQ(once.verdict, Verdict::proven);
  EXPECT_FALSE(once.warnings.empty());
}

TEST_F(SharedDefects, two_operators_in_a_plan_and_in_a_program) {
  const Proof plan = check(plan_of("mixed_ops.json"));
  EXPECT_EQ(plan.verdict, Verdict::wrong);
  EXPECT_THAT(plan.summary, HasSubstr("reductions with sum and with max"));
  const Proof program = defect_proof("mscclpp_mixed_reduce_op.json", MiB(1));
  EXPECT_EQ(program.verdict, Verdict::wrong);
  EXPECT_THAT(program.summary, HasSubstr("reduces with min"));
}

TEST_F(SharedDefects, an_output_that_is_too_short) {
  try {
    plan_of("ar_short_output.json");
    FAIL() << "it was read";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    EXPECT_THAT(failure.diagnostics().render(), HasSubstr("'output' of shape [1]"));
  }
}

TEST_F(SharedDefects, no_chunks_per_size) {
  const plan::Plan plan = plan_of("no_cps.json");
  EXPECT_EQ(plan.chunks_per_size, 2);
  EXPECT_EQ(check(plan).verdict, Verdict::proven);
}

TEST_F(SharedDefects, the_callers_input_overwritten) {
  const Proof proof = check(plan_of("writes_input.json"));
  EXPECT_EQ(proof.verdict, Verdict::proven);
  ASSERT_EQ(proof.warnings.items().size(), 1u);
  EXPECT_THAT(proof.warnings.items()[0].message, HasSubstr("overwrites the caller's input"));
}

TEST_F(SharedDefects, right_at_one_size_and_a_deadlock_at_another) {
  const program::Program program = program::load(shared_defect("size_7_103_0_3.xml"));
  const program::Bound bound = program::bind(program, nullptr, {.size = KiB(4)});
  const Proof proof = check(bound);
  EXPECT_EQ(proof.verdict, Verdict::proven);
  const SizeClass sizes = size_class(program, bound, proof);
  EXPECT_EQ(sizes.why, "");
  EXPECT_LT(sizes.max, KiB(64) + Bytes{1});
  const Proof larger = defect_proof("size_7_103_0_3.xml", Bytes{65552});
  EXPECT_TRUE(larger.verdict == Verdict::deadlock || larger.verdict == Verdict::wrong);
}

TEST_F(SharedDefects, programs_that_their_executor_does_not_run_as_they_are_meant) {
  const Proof exchange = defect_proof("programs/simple_exchange_3.xml", Bytes{96 << 10});
  EXPECT_EQ(exchange.verdict, Verdict::deadlock);
  EXPECT_EQ(exchange.counterexample.size(), 2u);
  EXPECT_EQ(defect_proof("programs/simple_count_mismatch.xml", MiB(1)).verdict, Verdict::wrong);
  const Proof port = defect_proof("programs/wait_then_signal_port.json", KiB(1));
  EXPECT_EQ(port.verdict, Verdict::deadlock);
  EXPECT_EQ(port.counterexample.size(), 2u);
}

}  // namespace
}  // namespace hemiola::verify
