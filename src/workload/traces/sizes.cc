#include "workload/traces/sizes.h"

#include <fmt/format.h>

#include "core/diagnostics.h"
#include "core/lists.h"
#include "core/text.h"
#include "core/units.h"

namespace hemiola::workload {
namespace {

std::string_view trim_size(std::string_view text) {
  return trimmed(text, " \t\r\"'");
}

/// "ncclDevKernel_SendRecv(ncclDevComm*, unsigned long)" is known by what stands before.
std::string_view without_arguments(std::string_view name) {
  return name.substr(0, name.find('('));
}

struct SizeLine {
  std::string_view name, size;
};

/// A line is `name: size` or `name,size`. Names have colons and commas themselves, and may stand in
/// quotes: of the last of both the one counts behind which there is a size.
SizeLine parts_of(std::string_view line) {
  if (line.front() == '"' || line.front() == '\'') {
    const std::size_t end = line.find(line.front(), 1);
    const std::size_t next =
        end == std::string_view::npos ? end : line.find_first_not_of(" \t", end + 1);
    if (next != std::string_view::npos && (line[next] == ':' || line[next] == ','))
      return {line.substr(1, end - 1), trim_size(line.substr(next + 1))};
  }
  const std::size_t colon = line.rfind(": "), comma = line.rfind(',');
  for (const std::size_t at : {colon, comma}) {
    if (at == std::string_view::npos) continue;
    if (parse_size(trim_size(line.substr(at + 1))))
      return {trim_size(line.substr(0, at)), trim_size(line.substr(at + 1))};
  }
  const std::size_t at = comma != std::string_view::npos ? comma : colon;
  if (at == std::string_view::npos) return {line, {}};
  return {trim_size(line.substr(0, at)), trim_size(line.substr(at + 1))};
}

}  // namespace

CallSizes::CallSizes(const std::string& path) {
  const std::string text = read_file(path);
  int number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = trimmed(std::string_view(text).substr(at, end - at));
    at = end + 1;
    ++number;
    if (line.empty() || line.front() == '#' || line == "---") continue;
    const auto [name, size] = parts_of(line);
    const bool is_head = number == 1 && (size == "bytes" || size == "size");
    if (is_head) continue;
    const std::optional<Bytes> bytes = parse_size(size);
    if (name.empty() || !bytes || bytes->count < 1)
      throw Failure(
          fmt::format("'{}' is no name with a size", line), {.file = path, .line = number},
          "a line is a name or number and bytes: 'nccl:all_reduce: 64 MiB' or '3,1048576'");
    const std::optional<std::int64_t> call = parse_count(name);
    const bool is_new =
        call ? by_number_.emplace(*call, bytes->count).second
             : by_name_.emplace(std::string(without_arguments(name)), bytes->count).second;
    if (!is_new)
      throw Failure(fmt::format("'{}' has two sizes", name), {.file = path, .line = number});
  }
  if (by_name_.empty() && by_number_.empty()) throw Failure("has no size in it", {.file = path});
}

std::optional<std::int64_t> CallSizes::find(std::int64_t number, std::string_view name) const {
  const auto numbered = by_number_.find(number);
  if (numbered != by_number_.end()) return numbered->second;
  const auto named = by_name_.find(without_arguments(name));
  if (named != by_name_.end()) return named->second;
  return std::nullopt;
}

}  // namespace hemiola::workload
