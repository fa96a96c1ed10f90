// What `hemiola tune` prints and writes (docs/tune.md).
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "report/page.h"
#include "report/run_timeline.h"
#include "tune/tuner.h"

namespace hemiola::report {

/// By bucket the Pareto front, marked, among the fastest; what each of the others loses; how many
/// points there were and what became of them.
void print_tuning(std::ostream& out, const tune::Tuning& tuning);

/// One JSON object: every point that was simulated.
std::string tuning_json(const std::string& command, const tune::Tuning& tuning);
/// A line for each of them.
std::string tuning_csv(const tune::Tuning& tuning);

/// `timelines`: of each bucket's winner; empty panels where it has none.
page::Page tuning_page(const std::string& command, const tune::Tuning& tuning,
                       const std::vector<RunTimeline::Panels>& timelines);

/// What data/bench/bench.py reads beside the kernels that it times: see bench_schedules().
std::string bench_kernels(const tune::Tuning& tuning,
                          const std::vector<const tune::Candidate*>& chosen);

}  // namespace hemiola::report
