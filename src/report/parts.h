// What `machine show --parts` gives: what is registered, role by role, as text and JSON.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

#include "hemiola/parts/registry.h"

namespace hemiola::report {

/// What a part says of itself.
struct PartRow {
  std::string_view role;
  std::string name, description, source;  ///< no source: the description says all that there is
  std::vector<parts::Parameter> parameters;
};
/// Role by role, in the order of the registry.
std::vector<PartRow> part_rows(const parts::Registry& registry);

void print_parts(std::ostream& out, const parts::Registry& registry);
std::string parts_json(const parts::Registry& registry, const std::string& command);

}  // namespace hemiola::report
