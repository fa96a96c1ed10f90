// The output of nccl-tests and rccl-tests. Its heading names the columns and differs between
// versions and collectives:
//   #       size         count      type   redop    root     time   algbw   busbw #wrong     time
//   ...
// The first `time` is out of place, the second in place.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "core/diagnostics.h"
#include "core/lists.h"
#include "core/units.h"
#include "study/tables/table_text.h"

namespace hemiola::study {
namespace {

using Words = std::vector<std::string_view>;

bool is_heading(const Words& words) {
  const auto has = [&](std::string_view word) {
    return std::ranges::find(words, word) != words.end();
  };
  return words.size() > 4 && words[0] == "#" && words[1] == "size" && words[2] == "count" &&
         has("time") && has("busbw");
}

/// Names of columns: "time_us_outofplace", "algbw_GBps_inplace".
std::vector<std::string> columns_of(const Words& heading) {
  std::vector<std::string> columns;
  int times = 0;
  for (std::size_t i = 1; i < heading.size(); ++i) {
    std::string name(heading[i]);
    if (name == "size") name = "size_bytes";
    if (name == "time") {
      ++times;
      name = "time_us";
    }
    if (name == "algbw" || name == "busbw") name += "_GBps";
    if (name.front() == '#') name.erase(0, 1);  // "#wrong"
    if (times > 0) name += times == 1 ? "_outofplace" : "_inplace";
    columns.push_back(std::move(name));
  }
  return columns;
}

/// The number after `label` in a line such as "# nThread 1 nGpus 8 minBytes 8".
std::optional<std::int64_t> number_after(const Words& words, std::string_view label) {
  const auto found = std::ranges::find(words, label);
  if (found == words.end() || found + 1 == words.end()) return std::nullopt;
  return parse_count(*(found + 1));
}

/// "all_reduce" of a word such as "./build/all_reduce_perf"; "" of others.
std::string collective_of(std::string_view word) {
  constexpr std::string_view kEnding = "_perf";
  // Some versions are built with the way of starting ranks in the name: all_reduce_perf_mpi.
  const std::size_t end = word.rfind(kEnding);
  if (end == std::string_view::npos) return {};
  word = word.substr(0, end);
  word.remove_prefix(std::min(word.size(), word.find_last_of("/\\") + 1));
  constexpr std::array<std::string_view, 8> kNames{"all_reduce", "all_gather", "reduce_scatter",
                                                   "alltoall",   "broadcast",  "reduce",
                                                   "sendrecv",   "hypercube"};
  return std::ranges::find(kNames, word) != kNames.end() ? std::string(word) : "";
}

/// What stands around the rows.
struct Surroundings {
  std::int64_t per_process = 0;  ///< nThread x nGpus
  std::int64_t rank_lines = 0;
  std::string collective;

  void read(const Words& words) {
    if (const auto gpus = number_after(words, "nGpus"))
      per_process = *gpus * number_after(words, "nThread").value_or(1);
    if (words.size() > 3 && words[0] == "#" && words[1] == "Rank" && parse_count(words[2]))
      ++rank_lines;
    for (const std::string_view word : words)
      if (collective.empty()) collective = collective_of(word);
  }
  std::int64_t ranks() const { return rank_lines > 0 ? rank_lines : per_process; }
};

}  // namespace

bool is_collective_log(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (line.find('#') != std::string_view::npos && is_heading(words_of(line))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

TableText read_collective_log(std::string_view text, const std::string& file) {
  TableText table;
  Surroundings surroundings;
  std::vector<std::string> columns;
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const Words words = words_of(content);
    if (words.empty()) continue;
    if (is_heading(words)) {
      if (!columns.empty() && columns != columns_of(words))
        throw Failure("here begins a table of another collective", {.file = file, .line = line},
                      "one file holds the output of one run");
      columns = columns_of(words);
      table.heading_line = line;
      continue;
    }
    surroundings.read(words);
    if (content.front() == '#') table.notes.emplace_back(trimmed(content.substr(1)));
    // Everything else is what the launcher and the library print.
    if (columns.empty() || !parse_count(words[0])) continue;
    if (words.size() != columns.size()) {
      throw Failure(fmt::format("this row has {} numbers and words, but there are {} columns",
                                words.size(), columns.size()),
                    {.file = file, .line = line}, "it may have been cut off");
    }
    table.rows.push_back({line, {words.begin(), words.end()}});
  }
  const auto add = [&](const std::string& name, const std::string& value) {
    columns.push_back(name);
    for (TableText::Row& row : table.rows) row.cells.push_back(value);
  };
  if (surroundings.ranks() > 0) add("num_gpus", std::to_string(surroundings.ranks()));
  if (!surroundings.collective.empty()) add("op", surroundings.collective);
  table.columns = std::move(columns);
  return table;
}

}  // namespace hemiola::study
