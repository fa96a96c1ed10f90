// hemiola explore --block: a chain of operators that rows flow through.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "cli/cli.h"
#include "explore/search/explorer.h"
#include "explore/space/block.h"

namespace hemiola::cli {

struct BlockOptions {
  std::string block;       ///< empty: an operator or a suite is explored
  explore::Block sizes{};  ///< all but its kind, ranks and type
};
void add_block_options(CLI::App& verb, BlockOptions& options);

/// Failure for what blocks alone have.
void refuse_block_options(const Session& session);

struct BlockOutputs {
  std::string emit, json, report;
};
/// `request` says machine, data type and how it is searched; its operator's sizes are not asked.
ExitCode explore_block(Session& session, const explore::Request& request,
                       const BlockOptions& options, const BlockOutputs& outputs);

}  // namespace hemiola::cli
