// The verdicts on the real files that lie beside the project, where they do.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "core/testing/long_tests.h"
#include "core/units.h"
#include "verify/execute.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

namespace fs = std::filesystem;

/// Files that are wrong, with what check must say (docs/verify.md tells the proof by hand).
const std::map<std::string, std::string>& wrong_files() {
  static const std::map<std::string, std::string> files = {
      {"reduce_tbg.json", "data race on bytes"},
  };
  return files;
}

class Inputs : public ::testing::TestWithParam<const char*> {};

TEST_P(Inputs, every_file_has_the_verdict_that_is_known) {
  const fs::path folder = fs::path(HEMIOLA_SOURCE_DIR "/../shared/inputs") / GetParam();
  if (!fs::is_directory(folder))
    GTEST_SKIP() << "\n*** SKIPPED: the real input files are not here (" << folder << ") ***\n";
  std::vector<std::string> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  for (const std::string& file : files) {
    if (left_to_long_tests(fs::path(file).filename().string())) continue;
    const program::Program program = program::load(file);
    for (const Bytes wanted : {KiB(1), KiB(256)}) {
      if (wanted > KiB(1) && !long_tests()) break;  // larger ones: tests/inputs
      const Proof proof = check(program::bind(
          program, nullptr, {.size = program.next_legal_size(wanted, DataType::float32)}));
      const auto wrong = wrong_files().find(fs::path(file).filename().string());
      const Verdict expected = wrong == wrong_files().end() ? Verdict::proven : Verdict::wrong;
      EXPECT_EQ(proof.verdict, expected)
          << file << " at " << to_string(wanted) << ": " << proof.summary;
      if (wrong != wrong_files().end()) {
        EXPECT_NE(proof.summary.find(wrong->second), std::string::npos) << proof.summary;
      }
    }
  }
}

TEST_P(Inputs, every_file_that_is_proven_gives_right_results) {
  const fs::path folder = fs::path(HEMIOLA_SOURCE_DIR "/../shared/inputs") / GetParam();
  if (!fs::is_directory(folder))
    GTEST_SKIP() << "\n*** SKIPPED: the real input files are not here (" << folder << ") ***\n";
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (wrong_files().contains(name) || left_to_long_tests(name)) continue;
    const program::Program program = program::load(entry.path().string());
    const program::Bound bound = program::bind(
        program, nullptr, {.size = program.next_legal_size(KiB(1), DataType::float32)});
    const Execution execution = execute(bound, {.rounds = 1});
    EXPECT_EQ(execution.outcome, Outcome::right) << entry.path() << ": " << execution.summary;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Inputs, ::testing::Values("mscclpp_json", "msccl_xml"));

}  // namespace
}  // namespace hemiola::verify
