// hemiola compile: what is in a Triton kernel, for people and for what transforms it; plans as
// PyTorch; products of HLO modules as plans.
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/options/inputs.h"
#include "cli/options/kernel.h"
#include "cli/verbs/compile_module.h"
#include "cli/verbs/compile_plan.h"
#include "compile/describe/describe.h"
#include "core/text.h"
#include "report/kernel_description.h"

namespace hemiola::cli {
namespace {

constexpr const char* kCompileExamples =
    "  hemiola compile examples/kernels/gemm_grouped.py --describe\n"
    "  hemiola compile attention.py --describe --kernel attention_forward --constexpr STAGE=3 \\\n"
    "      --bind k=k_ptr --role k=consumer --json attention.json\n"
    "\n"
    "  hemiola plan make ag-gemm/sequence --ranks 4 --param m=256 --param n=128 --param k=64 \\\n"
    "      --param steps=hetero -o small.json\n"
    "  hemiola compile --plan small.json -o small.py       # python -m hemiola_rt small.py "
    "--poison\n"
    "\n"
    "  hemiola compile module.after_optimizations.txt --dot dot.3 --template ag-gemm/ring -o "
    "plan.json";

struct CompileOptions {
  KernelOptions kernel;
  std::string json;
  bool describe = false;
  CompilePlanOptions plan;
  CompileModuleOptions module;
};

ExitCode describe_kernel(const CompileOptions& options, const Session& session) {
  const compile::DescribeRequest request = describe_request(options.kernel);
  const compile::Description description = compile::describe(request);
  report::print_kernel(std::cout, description);
  if (!options.json.empty())
    write_file(options.json, report::kernel_json(session.command, description));
  return ExitCode::done;
}

/// A module has products, and a kernel none of these options.
ExitCode compile_module_verb(const CompileOptions& options, const Session& session) {
  CompileModuleOptions module = options.module;
  module.module = options.kernel.file;
  module.output = options.plan.output;
  refuse_typed(session,
               {"--plan", "--kernel", "--bind", "--role", "--constexpr", "--helper", "--json"},
               "is for kernels, and this is an HLO module",
               "--dot NAME -o plan.json lifts a product of it, --describe lists them");
  if (options.describe && module.product.empty()) return describe_module(module);
  if (module.product.empty())
    throw Failure("no product is named", {.file = "--dot"},
                  "'hemiola compile " + module.module + " --describe' lists them");
  if (options.describe) throw Failure("lists products, and takes no --dot", {.file = "--describe"});
  if (module.output.empty())
    throw Failure("is missing", {.file = "--output"}, "for example -o plan.json");
  return compile_module(module);
}

ExitCode compile_verb(const CompileOptions& options, Session& session) {
  if (!options.kernel.file.empty() && is_module_file(options.kernel.file))
    return compile_module_verb(options, session);
  refuse_typed(session, {"--dot", "--template", "--param"},
               "is of an HLO module, and none is given",
               "for example hemiola compile module.txt --dot dot.3 -o plan.json");
  const bool has_plan = !options.plan.plan.empty() || !options.plan.output.empty();
  if (!has_plan && options.kernel.file.empty())
    throw Failure("no kernel is given", {},
                  "'hemiola compile KERNEL.py --describe' shows what is in one");
  if (!has_plan && !options.describe)
    throw Failure("nothing is asked for", {}, "--describe shows what is in the kernel");
  if (!has_plan) return describe_kernel(options, session);
  if (options.describe)
    throw Failure("describes a kernel and takes no plan", {.file = "--describe"},
                  "without it the kernel and the plan are fused");
  if (options.plan.plan.empty() || options.plan.output.empty())
    throw Failure("is missing", {.file = options.plan.plan.empty() ? "--plan" : "--output"},
                  "for example hemiola compile --plan best.json -o overlap.py");
  if (options.kernel.file.empty()) return compile_plan(session, options.plan, nullptr);
  const compile::DescribeRequest request = describe_request(options.kernel);
  return compile_plan(session, options.plan, &request);
}

void add_options(CLI::App& verb, CompileOptions& options, Session& session) {
  const AddOptions add(verb);
  add_kernel_options(verb, options.kernel,
                     "a Python file with a @triton.jit kernel, or an HLO module");
  verb.add_flag("--describe", options.describe, "print what was found in the kernel");
  add("--json", options.json, "write one JSON object", "FILE");
  add("--plan", options.plan.plan, "a plan whose products are launches, or that only moves",
      "FILE");
  add("-o,--output", options.plan.output, "the Python file to write; of a module the plan", "FILE");
  add("--dot", options.module.product, "of an HLO module: the product to lift", "NAME");
  add("--template", options.module.template_name,
      "what the plan is made by: ag-gemm/ring; without it the family's serial one", "NAME");
  add("--param", options.module.parameters, "a parameter of the template", "NAME=VALUE");
  verb.add_option("--realization", options.plan.realization,
                  "with --plan: who moves data: copy-engine|load-store|bulk|co-located|multicast "
                  "(copy-engine)");
  verb.add_option("--workgroups", options.plan.workgroups,
                  "that move data by load-store or bulk, on all streams together (16)");
  verb.add_flag("--store-to-peers", options.plan.store_to_peers,
                "tiles that the plan pushes are stored into the peer's memory by the kernel");
  verb.add_flag("--runtime", options.plan.runtime,
                "also write the package hemiola_rt beside it, for machines without Hemiola");
  verb.add_flag("--no-check", options.plan.no_check, "write without proving the plan and the file");
  verb.add_flag("--allow-partial", options.plan.allow_partial,
                "also write what is not proven, with exit code 0 in place of 6");
  verb.add_flag("--quiet", session.quiet, "no notes and no progress");
}

}  // namespace

void add_compile(CLI::App& app, Session& session) {
  add_verb<CompileOptions>(
      app, session, "compile",
      "Describes a Triton kernel (tiles, operands, places for waits and signals: "
      "docs/compile.md), or "
      "writes a\nplan as plain PyTorch, which calls hemiola_rt (docs/compile_plan.md), or lifts a "
      "product of an HLO\nmodule to a plan (docs/hlo.md).",
      kCompileExamples, add_options, compile_verb);
}

}  // namespace hemiola::cli
