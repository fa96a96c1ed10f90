// Files that the compiler writes of kernels and plans, for tests.
#pragma once

#include <string>

#include "compile/describe/describe.h"

namespace hemiola::compile {

/// What is written of a kernel of examples/kernels and a template for two ranks, with small sizes.
std::string fused_text(const std::string& kernel, const char* plan_name,
                       ParameterValues constants = {
                           {"BLOCK_M", "16"}, {"BLOCK_N", "16"}, {"BLOCK_K", "16"}});

/// With the first `from` of the text replaced, which has to be there.
std::string changed(const std::string& text, const std::string& from, const std::string& to);

}  // namespace hemiola::compile
