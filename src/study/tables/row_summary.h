// Rows of measured tables together: errors by kind and size, and what intervals hold.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "study/tables/rows.h"
#include "study/tables/statistics.h"

namespace hemiola::study {

struct RowSummary {
  std::string name;  ///< "<1MB" of collectives, "product", "iteration", ...
  Summary errors;    ///< without a trivial model
  int all = 0;       ///< rows, also those that were not simulated
};
/// By regime of size, or by kind where rows have no size, in the order of their first rows.
std::vector<RowSummary> summarise_kinds(std::span<const JudgedRow> rows);
/// The same for each machine, operation, library and number of ranks: name "dgx-h100, 4 ranks,
/// NCCL all-gather, <1MB".
std::vector<RowSummary> summarise_groups(std::span<const JudgedRow> rows);

/// How well intervals of other tables hold.
struct Coverage {
  int rows = 0;      ///< that were simulated
  int none = 0;      ///< of these, without a row like them
  int within = 0;    ///< of the others, measured within their interval
  double width = 0;  ///< of the intervals, median
  double error = 0;  ///< of the rows, median
};
Coverage coverage_of(std::span<const JudgedRow> rows);

/// "12 rows: larger than 64 MiB (--max-size)": reasons, the most frequent first.
std::vector<std::string> refusals_of(std::span<const JudgedRow> rows);

}  // namespace hemiola::study
