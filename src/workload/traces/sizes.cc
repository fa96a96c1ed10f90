#include "workload/traces/sizes.h"

#include <fmt/format.h>

#include "core/diagnostics.h"
#include "core/text.h"
#include "core/units.h"

namespace hemiola::workload {
namespace {

std::string_view trim_size(std::string_view text) {
  const std::string_view blanks = " \t\r\"'";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// A line is `name: size` or `name,size`. Names have colons themselves: the last one counts.
std::size_t separator_of(std::string_view line) {
  const std::size_t comma = line.rfind(',');
  if (comma != std::string_view::npos) return comma;
  std::size_t colon = line.rfind(": ");
  if (colon == std::string_view::npos && line.ends_with(":")) colon = line.size() - 1;
  return colon;
}

}  // namespace

CallSizes::CallSizes(const std::string& path) {
  const std::string text = read_file(path);
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trim_size(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty() || line.front() == '#' || line == "---") continue;
    const std::size_t separator = separator_of(line);
    const std::string_view name =
        separator == std::string_view::npos ? line : trim_size(line.substr(0, separator));
    const std::string_view size = separator == std::string_view::npos
                                      ? std::string_view()
                                      : trim_size(line.substr(separator + 1));
    const bool is_head = number == 1 && (size == "bytes" || size == "size");
    if (is_head) continue;
    std::optional<std::int64_t> bytes = parse_count(size);
    if (!bytes) {
      if (const std::optional<Bytes> with_unit = parse_bytes(size)) bytes = with_unit->count;
    }
    if (name.empty() || !bytes || *bytes < 1)
      throw Failure(
          fmt::format("'{}' is no name with a size", line), {.file = path, .line = number},
          "a line is a name or number and bytes: 'nccl:all_reduce: 64 MiB' or '3,1048576'");
    const std::optional<std::int64_t> call = parse_count(name);
    const bool is_new = call ? by_number_.emplace(*call, *bytes).second
                             : by_name_.emplace(std::string(name), *bytes).second;
    if (!is_new)
      throw Failure(fmt::format("'{}' has two sizes", name), {.file = path, .line = number});
  }
  if (by_name_.empty() && by_number_.empty()) throw Failure("has no size in it", {.file = path});
}

std::optional<std::int64_t> CallSizes::find(std::int64_t number, std::string_view name) const {
  const auto numbered = by_number_.find(number);
  if (numbered != by_number_.end()) return numbered->second;
  const auto named = by_name_.find(name);
  if (named != by_name_.end()) return named->second;
  return std::nullopt;
}

}  // namespace hemiola::workload
