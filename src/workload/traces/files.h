// Which files a path stands for, and which rank each is of.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"
#include "hemiola/parts/trace_reader.h"

namespace hemiola::workload {

/// Failure: nothing is there; a folder without a trace; a set of ranks with one missing.
TraceFiles find_traces(const std::string& path, const parts::Registry* parts = nullptr);

/// Whether find_traces() would find something, be it incomplete.
bool has_traces(const std::string& path, const parts::Registry* parts = nullptr);

/// The format of a trace by its first bytes; `unknown` for what is none.
enum class TraceFormat : std::uint8_t {
  chakra,
  chakra_json,
  pytorch,
  kineto,
  hlo,
  astra_text,
  aicb,
  unknown
};
TraceFormat trace_format(std::string_view content);
/// The reader that recognises what a file begins with; null: none of them.
const TraceReader* reader_of(std::string_view start, const parts::Registry* parts);
/// How many first bytes tell it.
constexpr std::size_t kTraceStart = std::size_t{1} << 16;

/// The ranks that names give: the numbers in the only place where all names differ. Nothing if
/// there is no such place. Failure if a number from 0 to the largest is missing or there twice.
std::optional<std::vector<int>> ranks_by_name(const std::vector<std::string>& names);

}  // namespace hemiola::workload
