#include "report/parts.h"

#include <ostream>

#include "core/lists.h"

namespace hemiola::report {

void print_parts(std::ostream& out, const parts::Registry& registry) {
  std::string_view role;
  for (const PartRow& row : part_rows(registry)) {
    if (row.role != role) out << (role.empty() ? "" : "\n") << row.role << '\n';
    role = row.role;
    out << "  " << row.name << ": " << row.description << '\n';
    if (!row.source.empty()) out << "      from " << row.source << '\n';
    for (const parts::Parameter& parameter : row.parameters) {
      out << "      " << parameter.name << '=' << parameter.default_value
          << (parameter.unit.empty() ? "" : " ") << parameter.unit << "  " << parameter.description;
      if (!parameter.choices.empty()) out << ": " << joined(parameter.choices, "|");
      out << '\n';
    }
  }
}

}  // namespace hemiola::report
