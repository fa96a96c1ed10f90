// hemiola check KERNEL.py: the order of memory in a Triton kernel, and its protocol.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "compile/rules/rules.h"

namespace hemiola::cli {

struct CheckKernelOptions {
  std::string kernel;  ///< empty: all that are no helpers
  std::vector<std::string> constants, helpers;
  std::string target = "cuda", triton, protocol;
};

/// Whether `check` is given a kernel.
bool is_kernel_file(const std::string& name);

struct KernelCheck {
  /// wrong_program: a rule is broken; deadlock: a wait cannot end; not_proven: nothing is, and
  /// something is not judged.
  ExitCode code = ExitCode::done;
  std::vector<compile::RuleReport> reports;
};
/// Says what each kernel of the file waits for and tells, and which rules it breaks. What is not
/// judged counts only where nobody else proves the file (`is_proven_elsewhere`).
KernelCheck check_kernel(const std::string& file, const CheckKernelOptions& options,
                         bool is_proven_elsewhere);

}  // namespace hemiola::cli
