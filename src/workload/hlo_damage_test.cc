// Modules that are cut short or changed end in a Failure or in a workload, and in nothing else.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/long_tests_test_support.h"
#include "core/random.h"
#include "workload/hlo_lift.h"
#include "workload/hlo_test_support.h"

namespace hemiola::workload {
namespace {

struct HloDraw {
  std::uint64_t state;
  std::uint64_t next(std::uint64_t below) {
    state += kSplitMixStep;
    return splitmix64(state) % below;
  }
};

/// Everything that is done with a module; whether it could be.
bool survives(const std::string& text, bool lenient) {
  try {
    const hlo::Module module = hlo::parse("m.txt", text);
    for (const hlo::ProductOfModule& product : hlo::find_products(module)) {
      if (product.lifts.empty()) continue;
      EXPECT_GE(product.lifts.front().ranks, 2);
    }
    read_hlo({.lenient = lenient}, "m.txt", text);
    return true;
  } catch (const Failure& failure) {
    EXPECT_NE(failure.code(), ExitCode::internal);
    EXPECT_FALSE(failure.diagnostics().items().front().message.empty());
    return false;
  }
}

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

TEST(HloDamage, changed_modules_do_not_crash) {
  HloDraw draw{27};
  const std::vector<std::string> names = all_modules();
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(test::hlo_text(name));
  int read = 0;
  const int count = some_or_all(3000, 40000);
  for (int i = 0; i < count; ++i) {
    std::string text = texts[draw.next(texts.size())];
    const std::uint64_t places = 1 + draw.next(4);
    for (std::uint64_t k = 0; k < places; ++k) {
      const std::size_t at = draw.next(text.size());
      switch (draw.next(6)) {
        case 0:
          text[at] = static_cast<char>(draw.next(256));
          break;
        case 1:
          text[at] = "{}[]()%,=\"'<>-0123456789"[draw.next(24)];
          break;
        case 2:
          text.erase(at, 1 + draw.next(8));
          break;
        case 3:
          text.insert(at, text.substr(draw.next(text.size()), 1 + draw.next(40)));
          break;
        case 4: {  // a number for another
          const std::size_t digit = text.find_first_of("0123456789", at);
          if (digit != std::string::npos)
            text.replace(digit, 1, std::to_string(draw.next(std::uint64_t{1} << draw.next(63))));
          break;
        }
        default: {  // a line twice, or not at all
          const std::size_t begin = text.rfind('\n', at) + 1, end = text.find('\n', at);
          if (end == std::string::npos) break;
          const std::string line = text.substr(begin, end + 1 - begin);
          draw.next(2) == 0 ? text.erase(begin, line.size()) : text.insert(begin, line);
        }
      }
    }
    read += survives(text, draw.next(2) == 0) ? 1 : 0;
  }
  EXPECT_GT(read, count / 20) << "changes of names and bytes that mean nothing";
}

}  // namespace
}  // namespace hemiola::workload
