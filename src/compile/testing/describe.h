// Kernels as text, for the tests of this layer.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "compile/describe/describe.h"
#include "core/text.h"

namespace hemiola::compile {

inline const std::string kTriton = "import triton\nimport triton.language as tl\n\n\n@triton.jit\n";

/// The description of the only kernel of a text.
inline Description described(const std::string& text, const DescribeRequest& request = {}) {
  Library library;
  return describe(library, library.add("kernel.py", text), request);
}

/// Of a kernel's definition, "def k(...):\n    ...".
inline Description described_kernel(const std::string& definition,
                                    const DescribeRequest& request = {}) {
  return described(kTriton + definition, request);
}

/// What describing it fails with, rendered; empty: it does not.
inline std::string failure_of(const std::string& text, const DescribeRequest& request = {}) {
  try {
    described(text, request);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return {};
}

inline const std::vector<std::string>& example_kernels() {
  static const std::vector<std::string> names{
      "attention",    "elementwise", "gemm",        "gemm_grouped",    "gemm_persistent",
      "gemm_split_k", "gemm_tma",    "row_softmax", "moe_grouped_gemm"};
  return names;
}

inline std::string example_text(const std::string& name) {
  return read_file(HEMIOLA_SOURCE_DIR "/examples/kernels/" + name + ".py");
}

}  // namespace hemiola::compile

/// Tests that read Python say so where this build cannot.
#define HEMIOLA_NEEDS_PYTHON_READER() \
  if (!hemiola::compile::can_parse()) GTEST_SKIP() << hemiola::compile::why_it_cannot_parse()
