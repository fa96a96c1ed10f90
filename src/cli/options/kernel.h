// Options of verbs that read a Triton kernel.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "compile/describe/describe.h"

namespace hemiola::cli {

struct KernelOptions {
  std::string file, kernel;
  std::vector<std::string> bind, role, constants, helpers;
  std::string target = "cuda";
};
/// KERNEL, described as `what`, and what says how it is meant.
void add_kernel_options(CLI::App& verb, KernelOptions& options,
                        const char* what = "a Python file with a @triton.jit kernel");
compile::DescribeRequest describe_request(const KernelOptions& options);

}  // namespace hemiola::cli
