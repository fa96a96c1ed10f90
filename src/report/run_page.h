// What `hemiola run --report` puts on its page.
#pragma once

#include <string>
#include <vector>

#include "report/page.h"
#include "report/report.h"
#include "report/run_timeline.h"
#include "sim/result/result.h"

namespace hemiola::report {

/// What a page says beside results.
struct RunPageExtras {
  std::vector<std::string> remarks;  ///< sentences: what was rounded, how other built-ins did
  int repetitions = 1;  ///< that the counts of links are sums of: warm-up and measured ones
  RunTimeline::Panels timeline;
  std::string no_timeline;  ///< the sentence that stands in its place; empty: there is one
};

/// Why a page of so many runs has no timeline; empty: it has one.
std::string why_no_timeline(std::size_t runs, bool is_sampled);

/// The table, how results depend on the size, where the time goes, links, and what happened when.
/// One result at least. Launches of a job take the place of the table.
page::Page run_page(const Run& run, const std::vector<sim::Result>& results,
                    const RunPageExtras& extras);

}  // namespace hemiola::report
