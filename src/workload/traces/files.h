// Which files a path stands for, and which rank each is of.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/text.h"

namespace hemiola::workload {

/// On disk, or a member of an archive.
struct TraceFile {
  std::string name;  ///< as the user would call it: "folder/a.0.et", "a.tgz:a.0.et"
  std::shared_ptr<const std::string> member{};  ///< expanded; null: `name` is on disk

  std::string content() const;                ///< the whole file, expanded
  std::string start(std::size_t most) const;  ///< its first bytes, expanded; empty if unreadable
};

struct TraceFiles {
  std::vector<TraceFile> ranks;  ///< in their order
  /// Of ranks by the files' names, the number in them; of a single file only what its name says.
  std::optional<int> rank_of_single;
  std::string ranks_from;  ///< of a folder or archive of several: how their ranks are known
  std::optional<TraceFile> groups;  ///< process groups beside them
  std::string name;                 ///< of all: without folder and ending
};

/// Failure: nothing is there; a folder without a trace; a set of ranks with one missing.
TraceFiles find_traces(const std::string& path);

/// Whether find_traces() would find something, be it incomplete.
bool has_traces(const std::string& path);

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
/// Whether a file is of one rank of several. Others say themselves what all ranks do.
constexpr bool is_per_rank(TraceFormat format) {
  return format < TraceFormat::hlo;
}
/// How many first bytes tell it.
constexpr std::size_t kTraceStart = std::size_t{1} << 16;

/// The ranks that names give: the numbers in the only place where all names differ. Nothing if
/// there is no such place. Failure if a number from 0 to the largest is missing or there twice.
std::optional<std::vector<int>> ranks_by_name(const std::vector<std::string>& names);

}  // namespace hemiola::workload
