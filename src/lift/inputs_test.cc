// The real files that lie beside the project, where they do: each lifts to a plan that is proven.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/testing/long_tests.h"
#include "core/units.h"
#include "lift/lift.h"
#include "plan/plan_json.h"
#include "program/built_in.h"
#include "verify/verify.h"

namespace hemiola::lift {
namespace {

namespace fs = std::filesystem;

class Inputs : public ::testing::TestWithParam<const char*> {};

TEST_P(Inputs, every_file_lifts_to_a_plan_that_is_proven) {
  const fs::path folder = fs::path(HEMIOLA_SOURCE_DIR "/../shared/inputs") / GetParam();
  if (!fs::is_directory(folder))
    GTEST_SKIP() << "\n*** SKIPPED: the real input files are not here (" << folder << ") ***\n";
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  for (const fs::path& file : files) {
    if (left_to_long_tests(file.filename().string())) continue;
    const program::Program program = program::load(file.string());
    const plan::Plan plan = lift(program::bind(
        program, nullptr, {.size = program.next_legal_size(KiB(64), DataType::float32)}));
    const verify::Proof proof = verify::check(plan);
    verify::Verdict expected = verify::Verdict::proven;
    // It is wrong as a program, in the same way (docs/inputs.md).
    if (file.filename() == "reduce_tbg.json") expected = verify::Verdict::wrong;
    EXPECT_EQ(proof.verdict, expected)
        << file.filename() << ": " << proof.summary
        << (proof.counterexample.empty() ? "" : "; " + proof.counterexample.front().text);
    if (expected == verify::Verdict::wrong) continue;
    // As it proposes to be lowered, it is free of races and ends, also when it is called again.
    const program::Program again = program::lower_plan(plan, {});
    const verify::Proof lowered = verify::check(program::bind(
        again, nullptr, {.size = {program.next_legal_size(KiB(64), DataType::float32)}}));
    EXPECT_TRUE(lowered.verdict == verify::Verdict::proven ||
                lowered.verdict == verify::Verdict::partial)
        << file.filename() << ": " << lowered.summary;
    const std::string text = plan::write_plan(plan);
    EXPECT_EQ(plan::write_plan(plan::read_plan(text, "file")), text) << file.filename();
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Inputs, ::testing::Values("mscclpp_json", "msccl_xml"));

}  // namespace
}  // namespace hemiola::lift
