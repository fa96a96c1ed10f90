// What `hemiola explore` prints and writes (docs/explore.md).
#pragma once

#include <iosfwd>
#include <string>

#include "explore/explorer.h"
#include "report/page.h"
#include "report/run_timeline.h"

namespace hemiola::report {

/// The operator, serial, the fastest schedules and the best of each family, what the best loses,
/// and what was left out.
void print_exploration(std::ostream& out, const explore::Exploration& found);

/// One JSON object (docs/results.md): serial, and all schedules that were simulated.
std::string exploration_json(const std::string& command, const explore::Exploration& found);

/// `hemiola run ...` for a schedule.
std::string command_of(const explore::Exploration& found, const explore::Candidate& candidate);

/// Timelines of winner and serial, where there are any.
struct ExplorationTimelines {
  RunTimeline::Panels winner, serial;
};
page::Page exploration_page(const std::string& command, const explore::Exploration& found,
                            const ExplorationTimelines& timelines);

}  // namespace hemiola::report
