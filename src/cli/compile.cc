// hemiola compile: plans as programs for GPUs.
#include <memory>

#include "cli/cli.h"
#include "cli/compile_plan.h"

namespace hemiola::cli {
namespace {

constexpr const char* kCompileExamples =
    "  hemiola explore ag-gemm --gemm 8192,28672,8192 --machine dgx-h100 --bench bench\n"
    "  hemiola compile --plan bench/plan-1.json -o overlap.py  # torchrun --nproc-per-node 8 ...\n"
    "\n"
    "  hemiola plan make ag-gemm/sequence --ranks 4 --param m=256 --param n=128 --param k=64 \\\n"
    "      --param steps=hetero -o small.json\n"
    "  hemiola compile --plan small.json -o small.py       # python -m hemiola_rt small.py "
    "--poison";

}  // namespace

void add_compile(CLI::App& app, Session& session) {
  auto options = std::make_shared<CompilePlanOptions>();
  CLI::App* verb = add_verb(app, "compile",
                            "Writes a plan as plain PyTorch: products on streams, copies between "
                            "peers, waits as the plan\n"
                            "states them. The file calls hemiola_rt (docs/compile_plan.md).",
                            kCompileExamples);
  verb->add_option("--plan", options->plan,
                   "a plan whose products are launches, or that only moves")
      ->type_name("FILE");
  verb->add_option("-o,--output", options->output, "the Python file to write")->type_name("FILE");
  verb->add_flag("--runtime", options->runtime,
                 "also write the package hemiola_rt beside it, for machines without Hemiola");
  verb->add_flag("--no-check", options->no_check, "do not prove the plan first");
  verb->add_flag("--quiet", session.quiet, "no notes and no progress");
  verb->callback([options, &session] {
    session.action = [options, &session] {
      for (const auto& [name, value] :
           {std::pair("--plan", &options->plan), std::pair("--output", &options->output)}) {
        if (value->empty())
          throw Failure("is missing", {.file = name},
                        "for example hemiola compile --plan best.json -o overlap.py");
      }
      return compile_plan(session, *options);
    };
  });
}

}  // namespace hemiola::cli
