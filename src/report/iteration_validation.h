// Measured beside simulated iterations.
#pragma once

#include <iosfwd>
#include <string>

#include "workload/iteration/iteration_table.h"

namespace hemiola::report {

namespace page {
struct Page;
}

/// A line per row, then errors and the order of pairs.
void print_iteration_validation(std::ostream& out, const workload::IterationValidation& found);
/// One line per row of the table.
std::string iteration_validation_csv(const workload::IterationValidation& found);
/// Errors and order, measured beside simulated times as bars, and a row per row.
page::Page iteration_validation_page(const std::string& command,
                                     const workload::IterationValidation& found);
/// The frame of the design: `rows[]`, `summary` with the regime "iteration".
std::string iteration_validation_json(const std::string& command,
                                      const workload::IterationValidation& found);

}  // namespace hemiola::report
