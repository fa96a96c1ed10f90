// hemiola compile --plan: a plan as plain PyTorch, or fused into a kernel.
#pragma once

#include <string>

#include "cli/cli.h"
#include "compile/describe/describe.h"
#include "plan/plan.h"

namespace hemiola::compile {
class FusedFile;
}

namespace hemiola::cli {

struct CompilePlanOptions {
  std::string plan;             ///< file
  std::string output;           ///< file
  bool store_to_peers = false;  ///< by the kernel, where the plan pushes what it makes
  bool runtime = false;         ///< hemiola_rt beside it
  bool no_check = false;
  bool allow_partial = false;
  std::string realization;  ///< who moves data; empty: copy engines
  int workgroups = 0;       ///< that do; 0: 16
};

/// That a plan is right, or why it is not: then its proof is printed. `name`: what that begins
/// with.
ExitCode prove_plan(Session& session, const std::string& name, const plan::Plan& plan);
/// What would be written as `name` is read back: the kernel may do something else than the plan's
/// compute is. What is not proven is printed. Failure as compile::FusedFile::prove().
ExitCode prove_text(Session& session, const compile::FusedFile& fused, const std::string& name,
                    const std::string& text);

/// Writes the file, and says what is in it. A plan that is proven wrong is not compiled: the proof
/// is printed, and its exit code returned. With `kernel` its compute becomes that kernel.
ExitCode compile_plan(Session& session, const CompilePlanOptions& options,
                      const compile::DescribeRequest* kernel);

}  // namespace hemiola::cli
