#include "cli/verbs/explore_block.h"

#include <iostream>
#include <tuple>
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

/// Options of one kind of block alone.
std::vector<const char*> of_mlp() {
  return {"--intermediate", "--activation"};
}
std::vector<const char*> of_attention() {
  return {"--heads", "--kv-heads", "--head-dim", "--sequences", "--causal"};
}

explore::Block block_of(const BlockOptions& options, const Session& session) {
  explore::Block block = options.sizes;
  block.kind = explore::block_named(options.block, {.file = "--block"});
  if (block.kind == explore::BlockKind::mlp)
    refuse_typed(session, of_attention(), "is of --block attention, not of an MLP", "leave it out");
  else
    refuse_typed(session, of_mlp(), "is of --block mlp, not of attention", "leave it out");
  if (block.kv_heads == 0) block.kv_heads = block.heads;
  return block;
}

}  // namespace

void add_block_options(CLI::App& verb, BlockOptions& options) {
  const AddOptions add(verb);
  add("--block", options.block,
      "explore a chain in place of an operator: all-gather, product, what is local, product, "
      "reduce-scatter",
      "mlp|attention");
  explore::Block& block = options.sizes;
  const auto size = [&add](const char* name, std::int64_t& value, const char* description) {
    add.read(
        name, {},
        [name, &value](const std::string& text) {
          value = count_value(name, text, 1, std::int64_t{1} << 40);
        },
        description, "N");
  };
  /// One of two words, of which `yes` makes it true.
  const auto either = [&add](const char* name, bool& value, const char* yes, const char* no,
                             const char* description, const char* type) {
    add.read(
        name, {},
        [=, &value](const std::string& text) {
          value = choice_value(name, text, {yes, no}) == yes;
        },
        description, type);
  };
  size("--tokens", block.tokens, "of a block: rows, over all GPUs");
  size("--hidden", block.hidden, "of a block: columns of a row");
  size("--intermediate", block.intermediate, "of an MLP: intermediate size, over all GPUs");
  either("--activation", block.gated, "swiglu", "gelu",
         "of an MLP: swiglu (with a gate, the default) or gelu", "swiglu|gelu");
  size("--heads", block.heads, "of attention: heads of queries, over all GPUs");
  size("--kv-heads", block.kv_heads, "of attention: heads of keys and values; --heads by default");
  size("--head-dim", block.head_dim, "of attention: elements of a head; 128 by default");
  size("--sequences", block.sequences,
       "of attention: that the tokens belong to, equally long; 1 by default");
  either("--causal", block.causal, "yes", "no",
         "of attention: queries meet keys before them only (the default): half of the work",
         "yes|no");
}

void refuse_block_options(const Session& session) {
  for (const auto& of :
       {std::vector<const char*>{"--tokens", "--hidden"}, of_mlp(), of_attention()})
    refuse_typed(session, of, "goes with --block only", "--gemm has the sizes of an operator");
}

ExitCode explore_block(Session& session, const explore::Request& request,
                       const BlockOptions& options, const BlockOutputs& outputs) {
  explore::BlockRequest asked{request, block_of(options, session)};
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
    if (!outputs.report.empty())
      std::tie(timelines.winner, timelines.serial) =
          timelines_of(session, asked, found, asked.block.type);
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
