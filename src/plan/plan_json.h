// The file form of plans: JSON, one object, schema in docs/plan.schema.json, explained in
// docs/plan_files.md. Expressions are numbers or text (core/affine.h).
#pragma once

#include <string>
#include <string_view>

#include "plan/plan.h"

namespace hemiola {
class JsonValue;
}

namespace hemiola::plan {

/// Reads and validates a plan. Failure for what is wrong first, with file, line, JSON pointer and a
/// hint.
Plan read_plan(std::string_view json, const std::string& file);

/// Canonical: the same plan always gives the same bytes, and reading them gives the same plan
/// (expressions normalised). Ends with a newline.
std::string write_plan(const Plan& plan);

/// Whether this is meant to be a plan file, damaged or not.
bool is_plan(std::string_view content);

/// "0-3,8": ranks as files list them, ascending.
std::string ranks_text(const std::vector<int>& ranks);
/// Back again, of so many ranks, which are "all". Failure: one that is not there, or stands twice.
std::vector<int> ranks_of(const JsonValue& text, int ranks);

}  // namespace hemiola::plan
