#include "report/parts.h"

#include "report/values/json_text.h"

namespace hemiola::report {

std::string parts_json(const parts::Registry& registry, const std::string& command) {
  return json_file("schema", "hemiola/1", "command", command, "parts",
                   json_lines(part_rows(registry), "  ", [](const PartRow& row) {
                     return json_object("role", row.role, "name", row.name, "description",
                                        row.description, "source", row.source, "parameters",
                                        json_array(row.parameters, [](const parts::Parameter& one) {
                                          return json_object("name", one.name, "default",
                                                             one.default_value, "unit", one.unit,
                                                             "choices", json_array(one.choices),
                                                             "description", one.description);
                                        }));
                   }));
}

}  // namespace hemiola::report
