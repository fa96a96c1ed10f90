#include "study/results/result_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/json.h"

namespace hemiola::study {
namespace {

constexpr const char* kSchema = "hemiola/1";
constexpr const char* kHint = "give what `hemiola run ... --json FILE` wrote";
/// More than an hour of simulated time; sums and differences of two fit 64 bits.
constexpr std::int64_t kMost = 4'000'000'000'000'000'000;

std::int64_t number(const JsonValue& value) {
  return value.integer(-kMost, kMost);
}

std::string text_or_nothing(const JsonValue& object, std::string_view key) {
  return object.has(key) ? object.at(key).text() : std::string();
}

Figures figures(const JsonValue& object) {
  Figures read;
  for (const std::string& name : object.keys()) read[name] = number(object.at(name));
  return read;
}

std::vector<StoredLink> links(const JsonValue& result) {
  std::vector<StoredLink> read;
  std::map<std::pair<std::string, std::string>, int> lanes;
  for (const JsonValue& item : result.items("links")) {
    StoredLink link{.from = item.at("from").text(), .to = item.at("to").text()};
    link.lane = lanes[{link.from, link.to}]++;
    link.payload_bytes = item.integer("payload_bytes", 0, kMost);
    link.wire_bytes = item.integer("wire_bytes", 0, kMost);
    link.busy = {item.integer("busy_fs", 0, kMost)};
    link.max_queue = item.integer("max_queue", 0, kMost);
    read.push_back(std::move(link));
  }
  return read;
}

std::vector<StoredRank> attribution(const JsonValue& result, Time time) {
  std::vector<StoredRank> read;
  std::set<int> seen;
  for (const JsonValue& item : result.items("attribution")) {
    StoredRank rank{static_cast<int>(item.integer("rank", 0, INT32_MAX)), figures(item.at("fs"))};
    if (!seen.insert(rank.rank).second)
      item.fail(fmt::format("rank {} stands twice in this attribution", rank.rank));
    __int128 sum = 0;
    for (const auto& [reason, fs] : rank.fs) sum += fs;
    if (sum != time.fs)
      item.fail(fmt::format("the attribution of rank {} does not sum to the time of {} fs",
                            rank.rank, time.fs),
                "the file was changed, or cut and joined, after it was written");
    read.push_back(std::move(rank));
  }
  std::ranges::sort(read, {}, &StoredRank::rank);
  return read;
}

StoredResult result_of(const JsonValue& item) {
  StoredResult result{.size = {item.integer("size_bytes", 0, kMost)},
                      .time = {item.integer("time_fs", 0, kMost)},
                      .checked = text_or_nothing(item, "checked")};
  if (item.has("settings")) {
    const JsonValue settings = item.at("settings");
    for (const std::string& name : settings.keys())
      result.settings[name] = settings.at(name).text();
  }
  if (item.has("counters")) result.counters = figures(item.at("counters"));
  result.links = links(item);
  result.ranks = attribution(item, result.time);
  return result;
}

/// "validate" of "hemiola validate table.csv".
std::string verb_of(const std::string& command) {
  const std::size_t begin = command.find(' ');
  if (begin == std::string::npos) return {};
  const std::size_t end = command.find(' ', begin + 1);
  return command.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
}

}  // namespace

ResultFile read_results(std::string_view text, const std::string& file) {
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos || text[begin] != '{')
    throw Failure("this is not the JSON of a result", {.file = file}, kHint);
  const JsonText source(text, file);
  const JsonValue root = source.root();
  if (!root.has("schema")) throw Failure("this is not the JSON of a result", {.file = file}, kHint);
  if (const std::string schema = root.at("schema").text(); schema != kSchema)
    root.at("schema").fail(fmt::format("the schema is '{}'", schema),
                           fmt::format("this version reads '{}'", kSchema));
  ResultFile read{.file = file,
                  .models = root.integer_or("models", 0, 0, INT64_MAX),
                  .command = text_or_nothing(root, "command"),
                  .machine = text_or_nothing(root, "machine"),
                  .program = text_or_nothing(root, "program"),
                  .engine = text_or_nothing(root, "engine")};
  const std::string verb = verb_of(read.command);
  if (!root.has("results") || (!verb.empty() && verb != "run" && verb != "replay"))
    throw Failure(verb.empty() ? "this JSON has no results"
                               : fmt::format("this is what `hemiola {}` wrote, not a result", verb),
                  {.file = file}, kHint);
  for (const JsonValue& item : root.items("results")) read.results.push_back(result_of(item));
  if (read.results.empty()) root.at("results").fail("there are no results in it", kHint);
  return read;
}

}  // namespace hemiola::study
