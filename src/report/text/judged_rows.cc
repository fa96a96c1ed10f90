#include "report/judged_rows.h"

#include <fmt/format.h>

#include <ostream>

#include "report/values/judged_tables.h"
#include "report/values/result_tables.h"

namespace hemiola::report {

void print_judged(std::ostream& out, const study::JudgedTable& table) {
  out << fmt::format("# table     {}, rows of kind {}\n#\n", table.file, table.kind.name);
  printed(judged_groups_table(table), Units::beside).print(out, "  ");
  out << "#\n";
  for (const std::string& line : judged_notes(table)) out << "# " << line << '\n';
}

}  // namespace hemiola::report
