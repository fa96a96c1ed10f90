// What `hemiola explore --block` prints and writes (docs/explore.md).
#pragma once

#include <iosfwd>
#include <string>

#include "explore/search/block_explorer.h"
#include "report/exploration.h"

namespace hemiola::report {

/// The block, serial and the operators' best schedules with their parts, the fastest chains, and
/// what the best of them loses.
void print_block_exploration(std::ostream& out, const explore::BlockExploration& found);

/// One JSON object (docs/results.md).
std::string block_exploration_json(const std::string& command,
                                   const explore::BlockExploration& found);

page::Page block_exploration_page(const std::string& command,
                                  const explore::BlockExploration& found,
                                  const ExplorationTimelines& timelines);

/// `hemiola run ...` for a chain.
std::string command_of(const explore::BlockExploration& found,
                       const explore::BlockCandidate& candidate);

}  // namespace hemiola::report
