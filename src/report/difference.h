// Two results side by side, on paper.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include "study/results/difference.h"

namespace hemiola::report {

namespace page {
struct Page;
}

/// Of which results attribution, ranks, links and counters are printed: none, the one whose time
/// moved most, or all.
enum class Details { none, most, all };

struct DifferenceView {
  std::size_t top = 5;  ///< ranks, links and counters that are listed
  Details details = Details::most;
  std::optional<study::Limit> limit;
};

/// What was run and where the runs are unlike; a line per pair of results with the reasons that
/// moved most on the latest rank; results without a counterpart; the details. With a limit, whether
/// it is kept. Lines that are no row of the table start with '#'.
void print_difference(std::ostream& out, const study::Difference& difference,
                      const DifferenceView& view);

/// Schema "hemiola/1" with `a`, `b`, `unlike`, `differences` (all that moved, not only the top),
/// `only_a`, `only_b` and, with a limit, `fail_above` and `exceeded`.
std::string difference_json(const std::string& command, const study::Difference& difference,
                            const std::optional<study::Limit>& limit);
/// One line per pair of results: times, ranks, and a column per reason of either.
std::string difference_csv(const study::Difference& difference,
                           const std::optional<study::Limit>& limit);

/// The table, and of each result where the time of the latest rank went before and after; of the
/// one that moved most all reasons, and the links and counters that moved.
page::Page difference_page(const std::string& command, const study::Difference& difference);

/// "2 of 3 results take more than 2% longer in B: 1 MiB (+18.10 %); 2 MiB (+3.00 %)"; empty: none
/// does.
std::string exceeded_text(const study::Difference& difference, const study::Limit& limit);

}  // namespace hemiola::report
