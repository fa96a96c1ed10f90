
#include "explore/search/block_explorer.h"
#include "hemiola/explore.h"
#include "library/exploring.h"
#include "library/implementations.h"
#include "library/watching.h"

namespace hemiola {
namespace {

explore::Block inner_block(const TransformerBlock& block, int ranks) {
  explore::Block inner{.kind = explore::block_named(block.kind, {.file = "block"}),
                       .ranks = ranks,
                       .tokens = block.tokens,
                       .hidden = block.hidden,
                       .intermediate = block.intermediate,
                       .gated = block.gated,
                       .heads = block.heads,
                       .kv_heads = block.kv_heads == 0 ? block.heads : block.kv_heads,
                       .head_dim = block.head_dim,
                       .sequences = block.sequences,
                       .causal = block.causal,
                       .type = block.type};
  explore::check(inner, "");
  return inner;
}

ExploredChain public_chain(const explore::BlockExploration& found,
                           const explore::BlockCandidate& one) {
  ExploredChain chain{.text = one.schedule.text(),
                      .degree = one.schedule.degree,
                      .hetero = one.schedule.hetero,
                      .program = explore::template_of(found.block),
                      .parameters = one.parameters,
                      .time = one.time(),
                      .fluid = one.fluid,
                      .confirmed = one.confirmed,
                      .speedup = found.speedup(one),
                      .buffers = one.buffers,
                      .extra_traffic = one.extra_traffic,
                      .losses = {}};
  if (!one.losses) return chain;
  chain.dil_compute = one.losses->dil_compute;
  chain.dil_communication = one.losses->dil_communication;
  chain.cil_compute = one.losses->cil_compute;
  chain.losses = {{"decomposition", {one.losses->decomposition}},
                  {"exposed", {one.losses->exposed}},
                  {"contention", {one.losses->contention}}};
  return chain;
}

}  // namespace

const ExploredChain* BlockExploration::best() const {
  if (chains.empty()) return nullptr;
  const ExploredChain& first = chains.front();
  const auto time_of = [&](const OperatorsTime& job) {
    return first.confirmed && job.confirmed ? *job.confirmed : job.time;
  };
  return first.time < std::min(time_of(serial), time_of(apart)) ? &first : nullptr;
}

BlockExploration explore_block(const Machine& machine, const TransformerBlock& block,
                               const ExploreOptions& options, const Watch& watch) {
  Watching watching(watch);
  study::Laboratory laboratory;
  const explore::BlockExploration found = explore::explore_block(
      laboratory, {exploration_request(machine, options), inner_block(block, machine.ranks())},
      {.watch = watching.inner});
  BlockExploration result{.machine = machine.name(),
                          .block = block,
                          .ranks = found.block.ranks,
                          .serial = found.serial,
                          .apart = found.apart,
                          .compute = found.compute(),
                          .communication = found.communication(),
                          .ideal = found.ideal,
                          .chains = {},
                          .space = found.space};
  result.block.kv_heads = found.block.kv_heads;
  for (const explore::BlockCandidate& one : found.candidates)
    result.chains.push_back(public_chain(found, one));
  return result;
}

}  // namespace hemiola
