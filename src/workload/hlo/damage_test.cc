// Modules that are cut short are refused with their place. Fuzzing changes them (tests/fuzz).
#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/long_tests.h"
#include "workload/hlo/lift.h"
#include "workload/testing/hlo.h"

namespace hemiola::workload {
namespace {

std::vector<std::string> all_modules() {
  std::vector<std::string> names = test::kDumpedModules;
  names.insert(names.end(), test::kGpuModules.begin(), test::kGpuModules.end());
  return names;
}

TEST(HloDamage, a_module_that_is_cut_short_is_refused_with_its_place) {
  for (const std::string& name : all_modules()) {
    const std::string text = test::hlo_text(name);
    const std::size_t last = text.rfind('}');
    const std::size_t step = std::max<std::size_t>(1, last / some_or_all<std::size_t>(150, 3000));
    for (std::size_t at = 0; at < last; at += step) {
      try {
        hlo::parse("m.txt", text.substr(0, at));
        ADD_FAILURE() << name << " cut at " << at << " was read";
      } catch (const Failure& failure) {
        const Diagnostic& first = failure.diagnostics().items().front();
        EXPECT_GT(first.where.line, 0) << name << " cut at " << at;
        EXPECT_GT(first.where.column, 0) << name << " cut at " << at;
      }
    }
  }
}

}  // namespace
}  // namespace hemiola::workload
