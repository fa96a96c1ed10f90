#include "hemiola/compile.h"

#include <memory>
#include <utility>

#include "compile/emit/torch.h"
#include "compile/fused/fused_file.h"
#include "library/convert.h"
#include "library/implementations.h"
#include "plan/plan_json.h"
#include "study/laboratory/experiment.h"
#include "study/support/digest.h"
#include "verify/verify.h"

namespace hemiola {
namespace {

compile::KernelRequest kernel_request(const KernelSource& kernel, const CompileOptions& options) {
  if (options.target != "cuda" && options.target != "hip")
    throw Failure("'" + options.target + "' is no target", {.file = "target"},
                  "there are: cuda, hip");
  compile::KernelRequest request{
      .describe = {.file = kernel.file,
                   .kernel = kernel.kernel,
                   .helpers = kernel.helpers,
                   .bind = options.bind,
                   .target =
                       options.target == "hip" ? compile::Target::hip : compile::Target::cuda},
      .text = kernel.text};
  for (const auto& [name, value] : options.constants) request.describe.constants[name] = value;
  if (!options.configurations.empty())
    request.configurations = compile::read_configurations(options.configurations, "configurations");
  return request;
}

void prove(const plan::Plan& plan, const std::string& name) {
  auto proof = std::make_shared<const verify::Proof>(verify::check(plan));
  const bool is_right =
      proof->verdict == verify::Verdict::proven || proof->verdict == verify::Verdict::partial;
  if (is_right) return;
  Proof shown = public_proof(*proof, name);
  shown.of_plan = true;
  throw WrongProgram(study::WrongProgram(std::move(proof), name), std::move(shown));
}

void prove_text(const compile::FusedFile& fused, const std::string& text, bool allow_partial) {
  const char* name = "<compiled>";
  auto proof = std::make_shared<const verify::Proof>(fused.prove(name, text));
  if (proof->verdict == verify::Verdict::partial && !allow_partial)
    throw Failure("is not proven: " + proof->summary, {.file = name},
                  "allow_partial hands out what is not proven", ExitCode::not_proven);
  if (proof->verdict == verify::Verdict::proven || proof->verdict == verify::Verdict::partial)
    return;
  Proof shown = public_proof(*proof, name);
  throw WrongProgram(study::WrongProgram(std::move(proof), name), std::move(shown));
}

}  // namespace

CompiledPlan compile_plan(const Plan& plan, const std::optional<KernelSource>& kernel,
                          const CompileOptions& options) {
  const plan::Plan& inner = *plan.implementation().plan;
  const compile::TorchOptions torch{
      .file = options.plan_name, .command = "hemiola.compile(...)", .version = HEMIOLA_VERSION};
  CompiledPlan made{.plan_hash = study::digest(plan::write_plan(inner))};
  std::optional<compile::FusedFile> fused;
  if (kernel) {
    fused.emplace(kernel_request(*kernel, options), inner, options.plan_name);
    made.text = fused->write(torch, "<compiled>").text;
    made.kernel = fused->fusion().kernel->kernel;
    made.dropped = fused->fusion().dropped;
  } else {
    made.text = compile::torch_of(inner, torch).text;
  }
  if (!options.check) return made;
  prove(inner, options.plan_name);
  if (fused) prove_text(*fused, made.text, options.allow_partial);
  return made;
}

}  // namespace hemiola
