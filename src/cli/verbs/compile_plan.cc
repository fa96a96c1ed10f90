#include "cli/verbs/compile_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <iostream>
#include <optional>

#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "compile/emit/torch.h"
#include "compile/emit/torch_runtime.h"
#include "compile/fused/fused_file.h"
#include "core/text.h"
#include "plan/template.h"
#include "report/report.h"
#include "study/laboratory/size_check.h"
#include "verify/verify.h"

namespace hemiola::cli {
namespace {

plan::Plan plan_to_compile(const std::string& name, const Session& session) {
  if (plan::find_template(name, &session.registry) != nullptr)
    throw Failure("'" + name + "' is a template, whose sizes are not said", {.file = "--plan"},
                  "'hemiola plan make " + name + " ... -o plan.json' makes a plan of it");
  std::optional<plan::Plan> plan = read_plan_file(name, session);
  if (plan) return *std::move(plan);
  const Format format = recognise(read_file(name));
  throw Failure("is no plan but " + std::string(describe(format)), {.file = name},
                "'hemiola plan convert " + name + " --to plan' makes one of a program");
}

constexpr const char* kCoLocated = "co-located";

/// Who moves data. Failure for words that files know nothing of.
compile::TorchMovers movers_of(const CompilePlanOptions& options) {
  const std::string& word = options.realization;
  if (word.empty() || word == "copy-engine" || word == kCoLocated) {
    if (options.workgroups != 0)
      throw Failure("is for data that workgroups move", {.file = "--workgroups"},
                    "--realization load-store, or bulk");
    return {};
  }
  if (word != "load-store" && word != "bulk" && word != "multicast")
    throw Failure("'" + word + "' is not written yet", {.file = "--realization"},
                  "there are copy-engine, load-store, bulk, co-located and multicast");
  if (options.workgroups < 0 || options.workgroups > 1024)
    throw Failure(fmt::format("{} workgroups", options.workgroups), {.file = "--workgroups"},
                  "from 1 to 1024");
  return {.workgroups = options.workgroups == 0 ? 16 : options.workgroups,
          .bulk = word == "bulk",
          .by_switch = word == "multicast"};
}

/// Programs that wait keep their places; as many as there are tiles leave none for movers.
void check_room(const compile::TorchMovers& movers, const compile::FusedFile& fused) {
  if (movers.workgroups == 0 || fused.takes_movers()) return;
  throw Failure("kernel '" + fused.fusion().kernel->kernel +
                    "' has a program for each tile; those that wait fill a GPU, and workgroups "
                    "that move what they wait for would find no room",
                {.file = "--realization"},
                "a persistent kernel leaves room for them; copy engines need none");
}

/// What was fused: tiles, waves, waits, signals, configurations that were dropped.
std::string fused_summary(const compile::Fusion& fusion, const std::string& output,
                          const plan::Plan& plan, std::size_t computes) {
  std::size_t waves = 0, waiting = 0, parts = 0;
  std::int64_t tiles = 1;
  if (!fusion.ranks.empty()) {
    const compile::FusedRank& first = fusion.ranks.front();
    waves = first.waves.size();
    parts = first.parts.size();
    for (const compile::FusedWave& wave : first.waves) waiting += wave.needs.empty() ? 0 : 1;
  }
  std::vector<std::string> axes;
  for (std::size_t i = 0; i < fusion.axes.size(); ++i) {
    if (fusion.axes[i].is_derived) continue;
    const std::int64_t block = fusion.configs.front().tiles[i];
    const std::int64_t along = (fusion.axes[i].extent + block - 1) / block;
    tiles *= along;
    axes.push_back(fmt::format("{} of {}", along, fusion.axes[i].name));
  }
  std::string text = fmt::format(
      "{}: {} on {} ranks in kernel {}; of a rank {}{} tiles ({}) in {} waves, of which {} wait, "
      "and {} parts that others wait for; configuration {}\n",
      output, plan.name, plan.ranks, fusion.kernel->kernel,
      computes > 1 ? fmt::format("{} computes as ", computes) : "", tiles, fmt::join(axes, " x "),
      waves, waiting, parts, fusion.configs.front().name);
  if (fusion.waits_in_loop() && !fusion.ranks.empty())
    text +=
        fmt::format("turns of its loop over {} wait for what arrives in {} pieces{}\n",
                    fusion.kernel->loop(fusion.loop.loop)->axis, fusion.ranks.front().pieces.size(),
                    fusion.loop.reorders ? ", and come in its order" : "");
  for (const std::string& one : fusion.dropped) text += "dropped: " + one + '\n';
  return text;
}

}  // namespace

ExitCode prove_plan(Session& session, const std::string& name, const plan::Plan& plan) {
  verify::Proof proof;
  {
    Progress progress(session);
    progress.doing("checking " + name);
    proof = verify::check(plan, &session.monitor);
  }
  const ExitCode code = study::exit_code_of(proof.verdict);
  if (proof.verdict >= verify::Verdict::wrong)
    report::print_proof(std::cerr, proof, name + ": ");
  else if (proof.verdict == verify::Verdict::partial)
    Notices(session).note(name + ": not proven in full, as 'hemiola check' explains");
  return code;
}

ExitCode prove_text(Session& session, const compile::FusedFile& fused, const std::string& name,
                    const std::string& text) {
  verify::Proof proof;
  {
    Progress progress(session);
    progress.doing("proving " + name);
    proof = fused.prove(name, text, &session.monitor);
  }
  if (proof.verdict != verify::Verdict::proven)
    report::print_proof(std::cerr, proof, name + " as it would be written: ");
  return study::exit_code_of(proof.verdict);
}

namespace {

/// Of the plan, and of `text` with a kernel; null: there is none.
ExitCode proven(Session& session, const CompilePlanOptions& options, const plan::Plan& plan,
                const compile::FusedFile* fused, const std::string& text) {
  if (options.no_check) return ExitCode::done;
  ExitCode code = prove_plan(session, options.plan, plan);
  if (fused != nullptr && (code == ExitCode::done || code == ExitCode::not_proven))
    code = study::worse(code, prove_text(session, *fused, options.output, text));
  if (code == ExitCode::not_proven && options.allow_partial) return ExitCode::done;
  if (code == ExitCode::not_proven)
    Notices(session).note("nothing was written; --allow-partial writes what is not proven");
  return code;
}

}  // namespace

ExitCode compile_plan(Session& session, const CompilePlanOptions& options,
                      const compile::DescribeRequest* kernel) {
  const plan::Plan plan = plan_to_compile(options.plan, session);
  std::optional<compile::FusedFile> fused;
  const bool carries = options.realization == kCoLocated;
  if (carries && kernel == nullptr)
    throw Failure("'co-located' is for the programs of a kernel", {.file = "--realization"},
                  "'hemiola compile KERNEL.py --plan PLAN' writes one");
  if (options.store_to_peers && (kernel == nullptr || carries))
    throw Failure("is for the tiles of a kernel that moves nothing else",
                  {.file = "--store-to-peers"},
                  "'hemiola compile KERNEL.py --plan PLAN' with copy-engine, load-store or bulk");
  if (kernel != nullptr)
    fused.emplace(
        compile::KernelRequest{
            .describe = *kernel, .stores_to_peers = options.store_to_peers, .carries = carries},
        plan, options.plan);
  const compile::TorchOptions torch{.file = options.plan,
                                    .command = session.command,
                                    .version = HEMIOLA_VERSION,
                                    .movers = movers_of(options)};
  if (fused) check_room(torch.movers, *fused);
  const compile::TorchFile made =
      fused ? fused->write(torch, options.output) : compile::torch_of(plan, torch);
  const ExitCode code = proven(session, options, plan, fused ? &*fused : nullptr, made.text);
  if (code != ExitCode::done) return code;
  write_file(options.output, made.text);
  if (options.runtime)
    compile::write_runtime(std::filesystem::path(options.output).parent_path().string());
  if (fused) {
    const compile::Grids& grids = fused->grids();
    for (std::size_t i = 0; i < fused->fusions().size(); ++i) {
      if (i > 0) std::cout << "another launch, because " << grids.reasons[i - 1] << ":\n";
      const std::size_t computes =
          grids.are_of_launches ? grids.launches[i].front().size() : std::size_t{1};
      std::cout << fused_summary(fused->fusions()[i], options.output, plan, computes);
    }
    return code;
  }
  std::cout << fmt::format(
      "{}: {} on {} ranks as PyTorch; of a rank {} copies on {} streams, {} products on {}, {} "
      "waits, {} signals\n",
      options.output, plan.name, plan.ranks, made.copies, made.streams_of_copies, made.products,
      made.streams_of_products, made.waits, made.signals);
  return code;
}

}  // namespace hemiola::cli
