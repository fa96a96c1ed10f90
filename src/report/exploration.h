// What `hemiola explore` prints and writes (docs/explore.md).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "explore/search/explorer.h"
#include "explore/search/thresholds.h"
#include "report/page.h"
#include "report/run_timeline.h"

namespace hemiola::report {

/// The operator, serial, the fastest schedules and the best of each family, what the best loses,
/// and what was left out.
void print_exploration(std::ostream& out, const explore::Exploration& found);

/// A row for each, and from which M on overlap pays.
void print_range(std::ostream& out, const explore::RangeOfRows& range);
/// One JSON object with an object of exploration_json() for each.
std::string range_json(const std::string& command, const explore::RangeOfRows& range);

/// One JSON object (docs/results.md): serial, and all schedules that were simulated.
std::string exploration_json(const std::string& command, const explore::Exploration& found);

/// The schedules that data/bench/bench.py times: the `top` fastest, of each family and number of
/// steps one. They point into `found`.
std::vector<const explore::Candidate*> bench_candidates(const explore::Exploration& found,
                                                        std::size_t top);
/// What that program reads: the operator, and which schedule each file is.
std::string bench_schedules(const explore::Exploration& found,
                            const std::vector<const explore::Candidate*>& chosen);

/// `hemiola run ...` for a schedule.
std::string command_of(const explore::Exploration& found, const explore::Candidate& candidate);

/// Timelines of winner and serial, where there are any.
struct ExplorationTimelines {
  RunTimeline::Panels winner, serial;
};
page::Page exploration_page(const std::string& command, const explore::Exploration& found,
                            const ExplorationTimelines& timelines);

}  // namespace hemiola::report
