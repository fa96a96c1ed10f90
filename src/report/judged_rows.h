// Rows of measured tables beside what stands for each, on paper.
#pragma once

#include <iosfwd>
#include <string>

#include "study/tables/rows.h"

namespace hemiola::report {

namespace page {
struct Page;
}

/// A line for each machine, program and regime; why rows were not simulated; how many measured
/// times lie within the interval that other tables give.
void print_judged(std::ostream& out, const study::JudgedTable& table);
/// The frame of the design: `rows[]` with `evidence`, `summary` by regime, `coverage`.
std::string judged_json(const std::string& command, const study::JudgedTable& table);
/// One line per row.
std::string judged_csv(const study::JudgedTable& table);
/// The same as the text, measured and simulated times as a chart, and every row.
page::Page judged_page(const std::string& command, const study::JudgedTable& table);

}  // namespace hemiola::report
