// Plans as Python files: alone, or fused into a Triton kernel (docs/compile_plan.md,
// docs/compile_kernel.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hemiola/plan.h"

namespace hemiola {

/// A Triton kernel, as text.
struct KernelSource {
  std::string file;                    ///< is read, unless there is `text`: then it is only a name
  std::optional<std::string> text{};   ///< of the file
  std::string kernel;                  ///< which one; empty: the only one of the file
  std::vector<std::string> helpers{};  ///< files to look into for what imports do not lead to
};

struct CompileOptions {
  std::map<std::string, std::string> bind{};       ///< tensor of the plan: parameter of the kernel
  std::map<std::string, std::string> constants{};  ///< parameter: Python, "128"
  /// Configurations in place of @triton.autotune's: JSON, a list of objects of values by parameter,
  /// "num_warps", "num_stages". Empty: none.
  std::string configurations{};
  std::string target = "cuda";  ///< or "hip"
  bool check = true;            ///< prove the plan, and a kernel's file before it is handed out
  bool allow_partial = false;   ///< hand out what is not proven, too
  std::string plan_name = "<plan>";  ///< what messages about the plan begin with
};

struct CompiledPlan {
  std::string text;                  ///< the Python file, which calls hemiola_rt
  std::string plan_hash;             ///< as it stands in the file: PLAN
  std::string kernel;                ///< empty: there is none
  std::vector<std::string> dropped;  ///< configurations that do not fit, each with the reason
};

/// Without a kernel the plan's products are those of PyTorch. The same arguments give the same
/// bytes. Failure: what `hemiola compile` refuses, with place and hint; a plan or a file that is
/// proven wrong (exit code 3 or 4), or not proven (6).
CompiledPlan compile_plan(const Plan& plan, const std::optional<KernelSource>& kernel,
                          const CompileOptions& options = {});

}  // namespace hemiola
