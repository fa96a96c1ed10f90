#include "report/iteration_validation.h"

#include <fmt/format.h>

#include <ostream>

#include "report/values/result_tables.h"

namespace hemiola::report {

void print_iteration_validation(std::ostream& out, const workload::IterationValidation& found) {
  out << fmt::format("# table      {}\n# machine    {}, as many nodes as a row has GPUs for\n",
                     found.file, found.machine);
  out << fmt::format(
      "# regression four constants (flop, layer steps, bytes, steps), fitted to {}\n#\n",
      found.regression.fitted_to);
  printed(iterations_table(found)).print(out, "  ");
  for (const workload::IterationCheck& check : found.rows)
    if (!check.refused.empty())
      out << fmt::format("# line {} was not simulated: {}\n", check.row.line, check.refused);
  out << "#\n";
  for (const std::string& line : iteration_summary(found)) out << "# " << line << '\n';
}

}  // namespace hemiola::report
