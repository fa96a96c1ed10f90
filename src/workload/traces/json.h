// Numbers of traces in JSON, as written.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/diagnostics.h"

namespace hemiola::workload {

/// Nanoseconds of a number of microseconds, e.g. "4458677009853.422"; nothing for what is none.
std::optional<std::int64_t> nanoseconds_of(std::string_view microseconds);
/// Of a number or a text that begins with one.
std::optional<std::int64_t> integer_of_token(std::string_view token);

/// Failure for a text that a quick parser has refused: at the first place where it is no JSON, or,
/// if it is, at `place` (null: not known), where something else was expected.
[[noreturn]] void fail_with_json(const std::string& file, std::string_view content,
                                 const char* place);

}  // namespace hemiola::workload
