#include "report/iteration_validation.h"

#include <fmt/format.h>

#include <ostream>

#include "report/iteration.h"
#include "report/values/columns.h"

namespace hemiola::report {
namespace {

using workload::IterationCheck;
using workload::IterationValidation;
using workload::PairOrder;

std::string share_of(const PairOrder& order) {
  if (order.pairs == 0) return "none";
  return fmt::format("{} of {} right, {:.1f} %", order.right, order.pairs,
                     100.0 * order.right / order.pairs);
}

std::string error_cell(double error) {
  return fmt::format("{:+.1f}", 100 * error);
}

}  // namespace

void print_iteration_validation(std::ostream& out, const IterationValidation& found) {
  out << fmt::format("# table      {}\n# machine    {}, as many nodes as a row has GPUs for\n",
                     found.file, found.machine);
  out << fmt::format(
      "# regression four constants (flop, layer steps, bytes, steps), fitted to {}\n#\n",
      found.regression.fitted_to);
  Columns table({kLeft, kRight, kRight, kRight, kRight});
  table.add_heading({"iteration", "measured(ms)", "simulated(ms)", "error(%)", "regression(%)"});
  for (const IterationCheck& check : found.rows) {
    if (!check.refused.empty()) {
      table.add({check.row.text, table_ms(check.row.measured), "-", "-",
                 error_cell(check.regression_error)});
      continue;
    }
    table.add({check.row.text, table_ms(check.row.measured), table_ms(check.simulated),
               error_cell(check.error), error_cell(check.regression_error)});
  }
  table.print(out, "  ");
  for (const IterationCheck& check : found.rows)
    if (!check.refused.empty())
      out << fmt::format("# line {} was not simulated: {}\n", check.row.line, check.refused);
  const study::Summary& summary = found.summary;
  out << fmt::format(
      "#\n# regime iteration: {} rows, median {:.1f} %, worst {:.1f} %, geometric mean {:.1f} %, "
      "bias {:+.1f} %; regression median {:.1f} %\n",
      summary.n, 100 * summary.median, 100 * summary.worst, 100 * summary.geomean,
      100 * summary.bias, 100 * summary.trivial_median);
  out << fmt::format("# order of pairs that differ by more than 10 %: {}; by 3 to 10 %: {}\n",
                     share_of(found.beyond_10), share_of(found.from_3_to_10));
}

}  // namespace hemiola::report
