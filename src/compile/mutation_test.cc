// Damaged kernels: a message or a description, never a crash and never without end.
#include <random>

#include "compile/describe_test_support.h"
#include "compile/fused_kernel.h"
#include "core/long_tests_test_support.h"
#include "plan/template.h"

namespace hemiola::compile {
namespace {

std::vector<std::string> tokens_of(const std::string& text) {
  std::vector<std::string> tokens;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i + 1;
    const auto is_word = [&](std::size_t at) {
      return std::isalnum(static_cast<unsigned char>(text[at])) != 0 || text[at] == '_';
    };
    if (is_word(i)) {
      while (end < text.size() && is_word(end)) ++end;
    }
    tokens.push_back(text.substr(i, end - i));
    i = end;
  }
  return tokens;
}

std::string damaged(const std::string& text, std::mt19937& random) {
  const bool by_lines = random() % 3 == 0;
  std::vector<std::string> pieces;
  if (by_lines) {
    std::size_t begin = 0;
    while (begin < text.size()) {
      const std::size_t end = std::min(text.find('\n', begin), text.size() - 1);
      pieces.push_back(text.substr(begin, end + 1 - begin));
      begin = end + 1;
    }
  } else {
    pieces = tokens_of(text);
  }
  const int changes = 1 + static_cast<int>(random() % 4);
  for (int i = 0; i < changes && pieces.size() > 2; ++i) {
    const std::size_t at = random() % pieces.size();
    switch (random() % 3) {
      case 0:
        pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at));
        break;
      case 1:
        pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(at), std::string(pieces[at]));
        break;
      default:
        std::swap(pieces[at], pieces[random() % pieces.size()]);
    }
  }
  std::string all;
  for (const std::string& piece : pieces) all += piece;
  return all;
}

TEST(DamagedKernels, are_described_or_refused) {
  HEMIOLA_NEEDS_PYTHON_READER();
  std::mt19937 random(20);
  int refused = 0, described_ones = 0;
  const int cases = some_or_all(60, 2000);
  for (const std::string& name : example_kernels()) {
    const std::string text = example_text(name);
    for (int i = 0; i < cases; ++i) {
      const std::string changed = damaged(text, random);
      if (failure_of(changed).empty())
        ++described_ones;
      else
        ++refused;
    }
  }
  // Both happen, or the damage is not of the kind that is meant.
  EXPECT_GT(refused, cases);
  EXPECT_GT(described_ones, cases);
}

TEST(DamagedKernels, are_fused_into_python_or_refused) {
  HEMIOLA_NEEDS_PYTHON_READER();
  std::mt19937 random(21);
  const plan::Parameters sizes{{"m", "64"}, {"n", "32"}, {"k", "32"}};
  const plan::Plan plans[] = {plan::make("ag-gemm/swizzle", 2, sizes),
                              plan::make("gemm-rs/direct", 2, sizes)};
  int refused = 0, fused = 0;
  const int cases = some_or_all(40, 4000);
  for (const char* name : {"gemm", "gemm_grouped", "gemm_persistent", "gemm_split_k", "gemm_tma"}) {
    const std::string text = example_text(name);
    for (int i = 0; i < cases; ++i) {
      Library library;
      std::string made;
      try {
        const Module& module = library.add("kernel.py", damaged(text, random));
        const Description description = describe(library, module, {.kernel = name});
        const ParameterValues constants{{"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"BLOCK_K", "16"}};
        ParameterValues known;
        for (const KernelParameter& one : description.parameters) {
          if (constants.contains(one.name)) known.insert(*constants.find(one.name));
          if (one.name == "SPLIT_K") known[one.name] = "2";
        }
        Fusion fusion =
            fuse(description, plans[i % 2], {.plan_file = "plan.json", .constants = known});
        made = fused_text(library, choose_kernel(module, name), fusion).functions;
      } catch (const Failure&) {
        ++refused;
        continue;
      }
      ++fused;
      EXPECT_NO_THROW(Source("fused.py", made)) << made;
    }
  }
  EXPECT_GT(refused, cases);
  EXPECT_GT(fused, cases / 2);
}

TEST(DamagedKernels, that_are_cut_off_are_described_or_refused) {
  HEMIOLA_NEEDS_PYTHON_READER();
  const std::string text = example_text("attention");
  for (std::size_t length = 0; length < text.size(); length += 97)
    failure_of(text.substr(0, length));
}

}  // namespace
}  // namespace hemiola::compile
