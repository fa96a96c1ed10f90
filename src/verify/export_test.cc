// What is exported of plans is read back as it was written, proven, and right on real data.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>

#include "machine/machine.h"
#include "plan/shape.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/export.h"
#include "program/testing/plan_fixtures.h"
#include "verify/execute.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using program::ExecutorFormat;
using ::testing::HasSubstr;

std::string_view name_of(ExecutorFormat format) {
  return format == ExecutorFormat::mscclpp ? "mscclpp" : "msccl";
}

program::Program read(ExecutorFormat format, const std::string& text) {
  return format == ExecutorFormat::mscclpp ? program::read_mscclpp(text, "exported")
                                           : program::read_msccl(text, "exported");
}

program::Bound bound_for_export(const program::Program& program,
                                machine::SharedMachine machine = nullptr) {
  const Bytes wanted = std::max(Bytes{1000}, program.min_size);
  return program::bind(program, std::move(machine),
                       {.size = program.next_legal_size(wanted, DataType::float32)});
}

std::string message_of(const auto& attempt) {
  try {
    attempt();
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

struct ExportCase {
  std::string name;
  int ranks = 0;
  ExecutorFormat format{};
};
void PrintTo(const ExportCase& c, std::ostream* out) {
  *out << c.name << " " << c.ranks << " " << name_of(c.format);
}

/// Templates that compute are of elements.
std::vector<ExportCase> cases() {
  std::vector<ExportCase> all;
  for (const plan::TemplateInfo& info : plan::templates()) {
    if (!info.in_chunks) continue;
    for (const int ranks : {2, 4, 8})
      for (const auto format : {ExecutorFormat::mscclpp, ExecutorFormat::msccl})
        all.push_back({info.name, ranks, format});
  }
  return all;
}

/// Why a template is not exported; empty: it has to be.
std::string refusal_of(const ExportCase& c) {
  if (c.name == "send-recv/direct" && c.format == ExecutorFormat::msccl)
    return "the format has no collective 'send-recv'";
  if (c.name == "all-reduce/nvls" && c.format == ExecutorFormat::msccl)
    return "for which MSCCL XML has no words";
  if (c.name == "all-to-all/uneven")  // neither format says how large buffers are
    return c.format == ExecutorFormat::mscclpp ? "where the format implies" : "MSCCL XML knows";
  return "";
}

class Export : public ::testing::TestWithParam<ExportCase> {};

TEST_P(Export, of_a_template_is_read_back_proven_and_right) {
  const ExportCase& c = GetParam();
  const machine::Machine machine = machine::load("switch:" + std::to_string(c.ranks));
  const auto built_in =
      program::plan_of_built_in(c.name, {.ranks = c.ranks, .machine = machine::share(machine)});
  ASSERT_TRUE(built_in.has_value());
  std::string text;
  const std::string failure = message_of(
      [&] { text = program::export_plan(built_in->plan, c.format, built_in->lowering); });
  const std::string refused = refusal_of(c);
  if (!refused.empty()) {
    EXPECT_THAT(failure, HasSubstr(refused));
    return;
  }
  ASSERT_EQ(failure, "");
  const program::Program program = read(c.format, text);
  EXPECT_EQ(program::write_as(c.format, program), text);
  EXPECT_TRUE(program.warnings.empty()) << program.warnings.render();
  const program::Bound sized = bound_for_export(program);
  const Proof proof = check(sized);
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  const Execution run = execute(sized, {.rounds = 2});
  EXPECT_EQ(run.outcome, Outcome::right) << run.summary;
}

std::string name_of_test(const ::testing::TestParamInfo<ExportCase>& info) {
  std::string name = info.param.name + "_" + std::to_string(info.param.ranks) + "_" +
                     std::string(name_of(info.param.format));
  std::replace_if(
      name.begin(), name.end(), [](unsigned char letter) { return !std::isalnum(letter); }, '_');
  return name;
}
INSTANTIATE_TEST_SUITE_P(Templates, Export, ::testing::ValuesIn(cases()), name_of_test);

TEST(ExportOfRandomPlans, is_free_of_races_and_ends) {
  EXPECT_TRUE(rc::check([] {
    const plan::Plan plan = program::fixtures::RandomPlan(*rc::gen::arbitrary<unsigned>()).make();
    plan::validate(plan);
    const int workgroups = *rc::gen::inRange(1, 5);
    for (const char* sync : {"channels", "connections"}) {
      const program::Program program =
          program::lower_plan(plan, {{"sync", sync}, {"workgroups", std::to_string(workgroups)}});
      const Proof proof = check(program::bind(
          program, nullptr, {.size = program.next_legal_size({1000}, DataType::float32)}));
      if (!test::is_right(proof))
        RC_FAIL(std::string(sync) + ": " + proof.summary +
                (proof.counterexample.empty() ? "" : "; " + proof.counterexample.front().text));
    }
  }));
}

TEST(ExportOfPlansOfElements, cuts_strided_rows_into_chunks) {
  // Columns of a row-major matrix: every rank's part is a row of each of 4 rows.
  const plan::Plan plan =
      plan::shaped(plan::make("all-gather/direct", 4), {4, 64}, DataType::float32, 1);
  for (const auto format : {ExecutorFormat::mscclpp, ExecutorFormat::msccl}) {
    const program::Program program = read(format, program::export_plan(plan, format, {}));
    EXPECT_EQ(program.min_size, Bytes{4 * 64 * 4});
    EXPECT_EQ(program.max_size, program.min_size);
    const Proof proof = check(bound_for_export(program));
    EXPECT_NE(proof.verdict, Verdict::deadlock) << proof.summary;
    EXPECT_THAT(proof.summary, ::testing::Not(HasSubstr("race"))) << proof.summary;
  }
}

TEST(ExportInPlace, shares_memory_as_the_formats_imply) {
  for (const char* name : {"all-gather/ring", "reduce-scatter/ring", "all-reduce/two-shot"}) {
    for (const auto format : {ExecutorFormat::mscclpp, ExecutorFormat::msccl}) {
      const auto built_in = program::plan_of_built_in(name, {.ranks = 4});
      const std::string text = program::export_plan(built_in->plan, format, {{"in_place", "1"}});
      const program::Program program = read(format, text);
      EXPECT_TRUE(program.in_place);
      const Proof proof = check(bound_for_export(program));
      EXPECT_EQ(proof.verdict, Verdict::proven) << name << ": " << proof.summary;
    }
  }
}

TEST(ExportThroughNics, puts_and_signals_on_ports) {
  const machine::Machine machine = machine::load("dgx-h100:2");
  const auto built_in = program::plan_of_built_in(
      "all-gather/hierarchical", {.ranks = machine.ranks(), .machine = machine::share(machine)});
  const std::string text =
      program::export_plan(built_in->plan, ExecutorFormat::mscclpp, built_in->lowering, &machine);
  EXPECT_THAT(text, HasSubstr("\"port\""));
  const Proof proof =
      check(bound_for_export(program::read_mscclpp(text, "exported"), machine::share(machine)));
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
}

std::string failure_of(const std::string& name, int ranks, ExecutorFormat format,
                       const plan::Parameters& parameters = {}) {
  return message_of([&] {
    const auto built_in =
        program::plan_of_built_in(name, {.ranks = ranks, .parameters = parameters});
    program::export_plan(built_in->plan, format, built_in->lowering);
  });
}

TEST(ExportRefuses, what_executors_have_no_room_for_and_names_the_limit) {
  const auto mscclpp = ExecutorFormat::mscclpp, msccl = ExecutorFormat::msccl;
  EXPECT_THAT(failure_of("all-reduce/two-shot", 32, mscclpp, {{"gather", "pull"}}),
              HasSubstr("channels of one type; the executor has room for 16 (MAX_CHANNEL)"));
  EXPECT_THAT(failure_of("all-gather/direct", 1000, mscclpp),
              HasSubstr("1000000 transfers; executors list them one by one, 100000 at most"));
  EXPECT_THAT(failure_of("all-gather/direct", 310, mscclpp),
              HasSubstr("rank 0 needs 309 thread blocks at a time; the executor has room for 304"));
  EXPECT_THAT(
      failure_of("all-gather/direct", 120, msccl),
      HasSubstr("thread blocks; the executor has room for 216 (MSCCL_MAX_NUM_THREAD_BLOCK"));
  EXPECT_THAT(failure_of("all-gather/ring", 4, msccl, {{"channels", "64"}}),
              HasSubstr("the executor has room for"));
}

TEST(ExportRefuses, compute_by_name_and_words_that_a_format_lacks) {
  const auto mscclpp = ExecutorFormat::mscclpp, msccl = ExecutorFormat::msccl;
  for (const auto format : {mscclpp, msccl})
    EXPECT_THAT(failure_of("ag-gemm/swizzle", 4, format), HasSubstr("computes ('gemm')"));
  EXPECT_THAT(failure_of("broadcast/tree", 4, msccl, {{"root", "1"}}),
              HasSubstr("its root is rank 1"));
  EXPECT_THAT(failure_of("all-gather/direct", 4, msccl, {{"realization", "copy-engine"}}),
              HasSubstr("cannot be moved by copy-engine"));
}

}  // namespace
}  // namespace hemiola::verify
