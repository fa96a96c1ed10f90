#include "cli/verbs/explore_block.h"

#include <iostream>
#include <utility>
#include <vector>

#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "cli/options/timelines.h"
#include "core/text.h"
#include "explore/search/block_explorer.h"
#include "plan/plan_json.h"
#include "report/block_exploration.h"

namespace hemiola::cli {
namespace {

constexpr std::int64_t kMostSize = std::int64_t{1} << 40;

/// Options of one kind of block alone.
Given of_mlp(const BlockOptions& options) {
  return {{"--intermediate", !options.intermediate.empty()},
          {"--activation", !options.activation.empty()}};
}
Given of_attention(const BlockOptions& options) {
  return {{"--heads", !options.heads.empty()},
          {"--kv-heads", !options.kv_heads.empty()},
          {"--head-dim", !options.head_dim.empty()},
          {"--sequences", !options.sequences.empty()},
          {"--causal", !options.causal.empty()}};
}

explore::Block block_of(const BlockOptions& options) {
  explore::Block block;
  block.kind = explore::block_named(options.block, {.file = "--block"});
  const auto size = [](const char* name, const std::string& text, std::int64_t& value) {
    if (!text.empty()) value = count_value(name, text, 1, kMostSize);
  };
  size("--tokens", options.tokens, block.tokens);
  size("--hidden", options.hidden, block.hidden);
  if (block.kind == explore::BlockKind::mlp) {
    refuse_given(of_attention(options), "is of --block attention, not of an MLP", "leave it out");
    size("--intermediate", options.intermediate, block.intermediate);
    block.gated = options.activation.empty() ||
                  choice_value("--activation", options.activation, {"swiglu", "gelu"}) == "swiglu";
    return block;
  }
  refuse_given(of_mlp(options), "is of --block mlp, not of attention", "leave it out");
  size("--heads", options.heads, block.heads);
  block.kv_heads = block.heads;
  size("--kv-heads", options.kv_heads, block.kv_heads);
  size("--head-dim", options.head_dim, block.head_dim);
  size("--sequences", options.sequences, block.sequences);
  block.causal =
      options.causal.empty() || choice_value("--causal", options.causal, {"yes", "no"}) == "yes";
  return block;
}

}  // namespace

void add_block_options(CLI::App& verb, BlockOptions& options) {
  const TextOptions add(verb);
  add("--block", options.block,
      "explore a chain in place of an operator: all-gather, product, what is local, product, "
      "reduce-scatter",
      "mlp|attention");
  add("--tokens", options.tokens, "of a block: rows, over all GPUs", "N");
  add("--hidden", options.hidden, "of a block: columns of a row", "N");
  add("--intermediate", options.intermediate, "of an MLP: intermediate size, over all GPUs", "N");
  add("--activation", options.activation, "of an MLP: swiglu (with a gate, the default) or gelu",
      "swiglu|gelu");
  add("--heads", options.heads, "of attention: heads of queries, over all GPUs", "N");
  add("--kv-heads", options.kv_heads, "of attention: heads of keys and values; --heads by default",
      "N");
  add("--head-dim", options.head_dim, "of attention: elements of a head; 128 by default", "N");
  add("--sequences", options.sequences,
      "of attention: that the tokens belong to, equally long; 1 by default", "N");
  add("--causal", options.causal,
      "of attention: queries meet keys before them only (the default): half of the work", "yes|no");
}

void refuse_block_options(const BlockOptions& options) {
  const Given of_all{{"--tokens", !options.tokens.empty()}, {"--hidden", !options.hidden.empty()}};
  for (const Given& given : {of_all, of_mlp(options), of_attention(options)})
    refuse_given(given, "goes with --block only", "--gemm has the sizes of an operator");
}

ExitCode explore_block(Session& session, const explore::Request& request,
                       const BlockOptions& options, const BlockOutputs& outputs) {
  explore::BlockRequest asked{.block = block_of(options),
                              .machine = request.machine,
                              .options = request.options,
                              .limits = request.limits,
                              .fluid = request.fluid,
                              .top = request.top,
                              .exhaustive = request.exhaustive,
                              .losses = request.losses};
  asked.block.type = request.op.type;
  explore::BlockExploration found;
  report::ExplorationTimelines timelines;
  {
    Progress progress(session);
    asked.block.ranks = session.laboratory.machine(asked.machine)->ranks();
    explore::check(asked.block);
    progress.doing("exploring " + explore::text_of(asked.block));
    explore::ExploreWatch watch{.watch = {.monitor = &session.monitor}};
    watch.on_progress = [&](std::int64_t done, std::int64_t all) {
      progress.parts(done, all, "chains");
    };
    found = explore::explore_block(session.laboratory, asked, watch);
    if (!outputs.report.empty()) {
      const sim::Launch launch = asked.options.launch;
      if (const explore::BlockCandidate* winner = found.winner())
        timelines.winner = timeline_of_plan(
            session, asked.machine, explore::plan_of(session.laboratory, asked, winner->schedule),
            asked.block.type, launch);
      timelines.serial = timeline_of_job(session, asked.machine, found.serial.job, launch);
    }
  }
  report::print_block_exploration(std::cout, found);
  if (!outputs.json.empty())
    write_file(outputs.json, report::block_exploration_json(session.command, found));
  if (!outputs.report.empty())
    write_file(outputs.report, report::page::render(report::block_exploration_page(
                                   session.command, found, timelines)));
  if (outputs.emit.empty()) return ExitCode::done;
  if (const explore::BlockCandidate* winner = found.winner()) {
    write_file(outputs.emit,
               plan::write_plan(explore::plan_of(session.laboratory, asked, winner->schedule)));
  } else {
    // What is the fastest is a job, which run and check take as well.
    const bool apart = found.apart.time < found.serial.time;
    write_file(outputs.emit, apart ? found.apart.job : found.serial.job);
  }
  return ExitCode::done;
}

}  // namespace hemiola::cli
