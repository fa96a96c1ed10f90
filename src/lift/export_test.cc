// The real files that lie beside the project, where they do: lifted, and exported to the other
// format.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/testing/long_tests.h"
#include "core/units.h"
#include "lift/lift.h"
#include "program/export.h"
#include "verify/verify.h"

namespace hemiola::lift {
namespace {

using program::ExecutorFormat;

class ExportOfInputs : public ::testing::TestWithParam<const char*> {};

TEST_P(ExportOfInputs, lifted_to_the_other_format_are_proven) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(HEMIOLA_SOURCE_DIR "/../shared/inputs") / GetParam();
  if (!fs::is_directory(folder))
    GTEST_SKIP() << "\n*** SKIPPED: the real input files are not here (" << folder << ") ***\n";
  const auto other =
      std::string(GetParam()) == "msccl_xml" ? ExecutorFormat::mscclpp : ExecutorFormat::msccl;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (left_to_long_tests(entry.path().filename().string())) continue;
    if (entry.path().filename() == "reduce_tbg.json") continue;  // wrong itself (docs/inputs.md)
    const program::Program program = program::load(entry.path().string());
    const program::Bound sized = program::bind(
        program, nullptr, {.size = program.next_legal_size(KiB(64), DataType::float32)});
    const std::string text = export_lifted(sized, other);
    const program::Program written = other == ExecutorFormat::mscclpp
                                         ? program::read_mscclpp(text, "exported")
                                         : program::read_msccl(text, "exported");
    const Bytes size = std::max(Bytes{1000}, written.min_size);
    const verify::Proof proof = verify::check(program::bind(
        written, nullptr, {.size = written.next_legal_size(size, DataType::float32)}));
    EXPECT_EQ(proof.verdict, verify::Verdict::proven)
        << entry.path().filename() << ": " << proof.summary;
  }
}
INSTANTIATE_TEST_SUITE_P(Formats, ExportOfInputs, ::testing::Values("mscclpp_json", "msccl_xml"));

}  // namespace
}  // namespace hemiola::lift
