#include "cli/compile_plan.h"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/inputs.h"
#include "cli/notices.h"
#include "compile/torch.h"
#include "compile/torch_runtime.h"
#include "core/text.h"
#include "plan/template.h"
#include "report/report.h"
#include "study/size_check.h"
#include "verify/verify.h"

namespace hemiola::cli {
namespace {

plan::Plan plan_to_compile(const std::string& name) {
  if (plan::find_template(name) != nullptr)
    throw Failure("'" + name + "' is a template, whose sizes are not said", {.file = "--plan"},
                  "'hemiola plan make " + name + " ... -o plan.json' makes a plan of it");
  std::optional<plan::Plan> plan = read_plan_file(name);
  if (plan) return *std::move(plan);
  const Format format = recognise(read_file(name));
  throw Failure("is no plan but " + std::string(describe(format)), {.file = name},
                "'hemiola plan convert " + name + " --to plan' makes one of a program");
}

/// That it is right; else its proof is printed.
ExitCode proven(Session& session, const std::string& name, const plan::Plan& plan) {
  verify::Proof proof;
  {
    Progress progress(session);
    progress.doing("checking " + name);
    proof = verify::check(plan, &session.monitor);
  }
  const ExitCode code = study::exit_code_of(proof.verdict);
  if (code != ExitCode::done)
    report::print_proof(std::cerr, proof, name + ": ");
  else if (proof.verdict == verify::Verdict::partial)
    Notices(session).note(name + ": not proven in full, as 'hemiola check' explains");
  return code;
}

}  // namespace

ExitCode compile_plan(Session& session, const CompilePlanOptions& options) {
  check_output("--output", options.output);
  const plan::Plan plan = plan_to_compile(options.plan);
  const compile::TorchFile made = compile::torch_of(
      plan, {.file = options.plan, .command = session.command, .version = HEMIOLA_VERSION});
  if (!options.no_check) {
    const ExitCode code = proven(session, options.plan, plan);
    if (code != ExitCode::done) return code;
  }
  write_file(options.output, made.text);
  if (options.runtime)
    compile::write_runtime(std::filesystem::path(options.output).parent_path().string());
  std::cout << fmt::format(
      "{}: {} on {} ranks as PyTorch; of a rank {} copies on {} streams, {} products on {}, {} "
      "waits, {} signals\n",
      options.output, plan.name, plan.ranks, made.copies, made.streams_of_copies, made.products,
      made.streams_of_products, made.waits, made.signals);
  return ExitCode::done;
}

}  // namespace hemiola::cli
