// What a sweep's database holds, as a table, CSV and JSON.
#pragma once

#include <iosfwd>
#include <span>
#include <string>

#include "study/sweep/sweep_database.h"

namespace hemiola::report {

/// The columns of print_table(), for points that are done; before them those of machine, settings,
/// ranks, program, parameters, engine, launch and skew in which points differ. What they share
/// stands above, points that are not done below, with their errors. `file`: of the database.
void print_sweep(std::ostream& out, const std::string& file, const study::SweepDatabase::Head& head,
                 std::span<const study::SweepRow> rows);

/// One line per point: all columns of the database but the JSON ones, with times in ns.
std::string sweep_csv(std::span<const study::SweepRow> rows);
/// `schema` "hemiola/1", `command`, and `points`, each with what it is and, where it is done, the
/// keys of results as in to_json().
std::string sweep_json(const std::string& command, std::span<const study::SweepRow> rows);

}  // namespace hemiola::report
