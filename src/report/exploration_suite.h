// What `hemiola explore --suite` prints and writes (docs/explore.md).
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "explore/suite/suite_database.h"
#include "report/page.h"

namespace hemiola::report {

struct SuiteExploration {
  std::string suite;  ///< as the user named it
  std::string file;   ///< of the database
  explore::SuiteDatabase::Head head;
  std::vector<explore::ScenarioRow> rows;
};

/// Over the scenarios that are done.
struct SuiteSummary {
  std::int64_t done = 0;
  std::int64_t serial = 0;  ///< in so many nothing is faster than serial
  std::vector<std::pair<std::string, std::int64_t>> wins;  ///< by family, the most first
  double mean = 1;     ///< geometric, of the speedups; 1 where serial is best
  double largest = 1;  ///< of the speedups
  std::string at;      ///< the scenario that has it
};
SuiteSummary summary_of(const std::vector<explore::ScenarioRow>& rows);

/// A row for each scenario that is done; below the summary, and those that are not with their
/// errors.
void print_suite(std::ostream& out, const SuiteExploration& found);
/// One line per scenario: all columns of the table `scenarios`, with times in ns.
std::string suite_csv(const SuiteExploration& found);
/// `scenarios`, each with the fastest schedule of every family, and `summary`.
std::string suite_json(const std::string& command, const SuiteExploration& found);
/// The same with a heat map of speedups, scenarios by families.
page::Page suite_page(const std::string& command, const SuiteExploration& found);

/// "ag-gemm"; "ag-gemm (b)" where B is gathered.
std::string operator_text(const explore::Operator& op);
/// The fastest schedule of each family of a scenario, the fastest first.
std::vector<const explore::ScheduleRow*> fastest_of_families(const explore::ScenarioRow& row);

}  // namespace hemiola::report
