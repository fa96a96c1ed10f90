// What an iteration of a workload gave: tables, JSON, CSV, a trace, a page.
#pragma once

#include <iosfwd>
#include <string>

#include "report/page.h"
#include "workload/iteration/iteration.h"

namespace hemiola::report {

struct IterationRun {
  std::string command;  ///< the command line
  std::string engine;   ///< "fluid"
};

/// "all-reduce tp", "send pp".
std::string call_name(const workload::Workload& workload, const workload::CallKey& key);
/// "all-gather tp + product" of one that is fused with a product.
std::string call_name(const workload::Workload& workload, workload::NodeKind kind,
                      std::int32_t work);
/// "38.121 ms" in the table's unit; times of iterations are long.
std::string table_ms(Time time);

/// A line "# memory    stage 0: ..." for each class of a model; empty where nothing is known.
std::string memory_text(const workload::Workload& workload);

/// The time, where it goes by class, communication by kind and group, the critical path.
void print_iteration(std::ostream& out, const IterationRun& run,
                     const workload::IterationOutcome& outcome);
/// The object of the design: results[0] with `launches[]` by distinct call, `classes[]`,
/// `critical_path[]`.
std::string iteration_json(const IterationRun& run, const workload::IterationOutcome& outcome);
/// One line per class.
std::string iteration_csv(const workload::IterationOutcome& outcome);
/// Perfetto: a process per class with a track per stream, and one with the critical path.
std::string iteration_trace(const workload::IterationOutcome& outcome);
/// Classes over time, exposed communication stacked, the critical path.
page::Page iteration_page(const IterationRun& run, const workload::IterationOutcome& outcome);

}  // namespace hemiola::report
