// What text and page of judged rows share.
#pragma once

#include <string>
#include <vector>

#include "report/page.h"
#include "study/tables/rows.h"

namespace hemiola::report {

/// A row per machine, ranks, operation and regime.
page::Table judged_groups_table(const study::JudgedTable& table);
/// Coverage of the intervals, and why rows were not simulated.
std::vector<std::string> judged_notes(const study::JudgedTable& table);

}  // namespace hemiola::report
