// hemiola check KERNEL.py: the order of memory in a Triton kernel.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "compile/rules/rules.h"

namespace hemiola::cli {

struct CheckKernelOptions {
  std::string kernel;  ///< empty: all that are no helpers
  std::vector<std::string> constants, helpers;
  std::string target = "cuda";
};

/// Whether `check` is given a kernel.
bool is_kernel_file(const std::string& name);

struct KernelCheck {
  ExitCode code = ExitCode::done;  ///< wrong_program: a rule is broken
  std::vector<compile::RuleReport> reports;
};
/// Says what each kernel of the file waits for and tells, and which rules it breaks.
KernelCheck check_kernel(const std::string& file, const CheckKernelOptions& options);

}  // namespace hemiola::cli
