// The blocks of run_page(), one function each.
#pragma once

#include <string>
#include <vector>

#include "report/page.h"
#include "report/report.h"
#include "sim/result/result.h"

namespace hemiola::report {

/// What sets a result apart from the others: its size where they differ, its settings.
std::string label_of(const sim::Result& result, const std::vector<sim::Result>& results);

/// The columns of print_table(), with a column for each setting before them.
page::Table results_table(const Run& run, const std::vector<sim::Result>& results);
/// Of at least three sizes: times with their bounds, rates where there are some. Empty otherwise.
std::vector<page::Block> size_curves(const Run& run, const std::vector<sim::Result>& results);
/// Where the time goes: of one result by rank, of several each result's latest rank, then a table
/// of the reasons of the last one.
std::vector<page::Block> attribution_blocks(const std::vector<sim::Result>& results);
/// How busy links were in the last result, and the busiest as a table. Empty where nothing was
/// carried.
std::vector<page::Block> link_blocks(const sim::Result& result, int repetitions);
/// Launches of a job: when, where their time goes beside what they take alone, whom they wait for.
std::vector<page::Block> launch_blocks(const sim::Result& result);

}  // namespace hemiola::report
