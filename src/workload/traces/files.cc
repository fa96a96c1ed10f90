#include "workload/traces/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "core/expansion.h"
#include "workload/traces/archive.h"
#include "workload/traces/groups.h"
#include "workload/traces/kineto/events.h"

namespace hemiola::workload {
namespace {

namespace fs = std::filesystem;

/// Not those that file managers and archivers leave.
bool is_hidden(const std::string& path) {
  return fs::path(path).filename().string().starts_with('.');
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
    if (entry.is_regular_file(error) && !is_hidden(entry.path().string()))
      files.push_back(entry.path().string());
  if (error) throw Failure("cannot be read: " + error.message(), {.file = folder.string()});
  std::ranges::sort(files);
  return files;
}

bool is_group_file(const TraceFile& file) {
  constexpr std::size_t kMost = std::size_t{1} << 24;
  const std::string start = file.start(kMost);
  const std::size_t first = start.find_first_not_of(" \t\r\n");
  return first != std::string::npos && start[first] == '{' && parse_group_file(start).has_value();
}

/// Without folder, ".gz" and the ending before it.
std::string short_name(const std::string& path) {
  fs::path name = fs::path(path).filename();
  if (name.empty()) name = fs::path(path).parent_path().filename();
  for (const char* ending : {".gz", ".tgz", ".zip", ".tar", ".json", ".trace", ".pt", ".et"})
    if (name.extension() == ending && !name.stem().empty()) name = name.stem();
  return name.string();
}

/// "x" of "x.3"; the number goes to `rank`.
std::string without_rank(const std::string& name, std::optional<int>& rank) {
  const std::size_t dot = name.rfind('.');
  if (dot == std::string::npos || dot == 0) return name;
  // Not the end of a version.
  if (name[dot - 1] >= '0' && name[dot - 1] <= '9') return name;
  int number = 0;
  const char* end = name.data() + name.size();
  const auto [at, error] = std::from_chars(name.data() + dot + 1, end, number);
  if (error != std::errc{} || at != end || number < 0) return name;
  rank = number;
  return name.substr(0, dot);
}

TraceFiles single_trace(TraceFile file, const std::vector<TraceFile>& others) {
  TraceFiles found;
  found.name = without_rank(short_name(file.name), found.rank_of_single);
  for (const TraceFile& other : others)
    if (short_name(other.name) == found.name && other.name != file.name && is_group_file(other))
      found.groups = other;
  found.ranks.push_back(std::move(file));
  return found;
}

/// The ranks that Kineto traces say themselves, if all do, and these are all ranks up to the last.
/// Failure: two files of one rank, as of several steps of a profile.
std::optional<std::vector<int>> ranks_by_content(const std::vector<TraceFile>& files) {
  std::vector<std::int64_t> said;
  for (const TraceFile& file : files) {
    const std::optional<std::int64_t> rank = kineto_rank(file.start(kTraceStart));
    if (!rank || *rank < 0) return std::nullopt;
    const auto other = std::ranges::find(said, *rank);
    if (other != said.end())
      throw Failure(fmt::format("two files say that they are of rank {}: this one and {}", *rank,
                                files[index(other - said.begin())].name),
                    {.file = file.name},
                    "a rank has one trace: name one file, or leave one step of each rank");
    said.push_back(*rank);
  }
  for (const std::int64_t rank : said)
    if (rank >= static_cast<std::int64_t>(files.size())) return std::nullopt;
  return std::vector<int>(said.begin(), said.end());
}

/// An HLO module is what all ranks do, and a folder of dumps has many.
bool is_of_one_rank(const TraceFile& file, const parts::Registry* parts) {
  const TraceReader* const reader = reader_of(file.start(kTraceStart), parts);
  return reader != nullptr && reader->per_rank;
}

/// Those of `files` that are traces, in the order of their ranks.
TraceFiles pick_traces(const std::vector<TraceFile>& files, const std::string& whole,
                       const parts::Registry* parts) {
  TraceFiles found;
  std::vector<TraceFile> traces;
  std::vector<std::string> names;
  for (const TraceFile& file : files) {
    if (is_of_one_rank(file, parts)) {
      traces.push_back(file);
      names.push_back(file.name);
    } else if (is_group_file(file)) {
      if (found.groups)
        throw Failure(
            "two files say which process groups there are: this one and " + found.groups->name,
            {.file = file.name}, "name the one that holds with --groups");
      found.groups = file;
    }
  }
  if (traces.empty())
    throw Failure("has no trace in it", {.file = whole},
                  "Chakra, PyTorch and Kineto traces can be read: docs/traces.md");
  if (traces.size() == 1) {
    found.name = without_rank(short_name(traces[0].name), found.rank_of_single);
    found.ranks = std::move(traces);
    return found;
  }
  found.name = short_name(whole);
  const std::optional<std::vector<int>> said = ranks_by_content(traces);
  const std::optional<std::vector<int>> ranks = said ? said : ranks_by_name(names);
  if (!ranks)
    throw Failure(
        fmt::format("nothing tells which rank each of the {} traces is of", traces.size()),
        {.file = whole}, "names of files tell it by a number: trace.0.et, trace.1.et, ...");
  found.ranks_from = said ? "what the traces say (distributedInfo)" : "the number in their names";
  found.ranks.resize(traces.size());
  for (std::size_t i = 0; i < traces.size(); ++i)
    found.ranks[index((*ranks)[i])] = std::move(traces[i]);
  return found;
}

/// "trace.%d.et", or "trace" for trace.0.et, trace.1.et and so on: what stands around the numbers.
struct RankedName {
  fs::path folder;
  std::string before;
  std::vector<std::string> endings;
};

RankedName ranked_name(const std::string& path) {
  const std::size_t mark = path.rfind("%d");
  const bool is_pattern = mark != std::string::npos;
  const fs::path before(is_pattern ? path.substr(0, mark) : path + ".");
  RankedName name{
      before.parent_path(), before.filename().string(), {".et", ".et.gz", ".json", ".json.gz"}};
  if (is_pattern) name.endings = {path.substr(mark + 2)};
  return name;
}

/// The files of that name, by number.
std::vector<std::pair<int, std::string>> ranked_files(const RankedName& wanted) {
  std::vector<std::pair<int, std::string>> ranked;
  for (const std::string& file : files_in(wanted.folder.empty() ? "." : wanted.folder)) {
    const std::string name = fs::path(file).filename().string();
    if (!name.starts_with(wanted.before)) continue;
    int rank = 0;
    const char* end = name.data() + name.size();
    const auto [at, error] = std::from_chars(name.data() + wanted.before.size(), end, rank);
    if (error != std::errc{} || rank < 0) continue;
    if (std::ranges::find(wanted.endings, std::string(at, end)) == wanted.endings.end()) continue;
    ranked.emplace_back(rank, (wanted.folder / name).string());
  }
  std::ranges::sort(ranked);
  return ranked;
}

/// The same, all from 0 on, with the groups beside them.
TraceFiles numbered_traces(const std::string& path) {
  const RankedName wanted = ranked_name(path);
  const auto ranked = ranked_files(wanted);
  if (ranked.empty())
    throw Failure("no such file, and no files of ranks that begin with it", {.file = path});
  TraceFiles found;
  for (const auto& [rank, file] : ranked) {
    const auto expected = static_cast<int>(found.ranks.size());
    if (rank < expected)
      throw Failure(
          fmt::format("rank {} has two files: this one and {}", rank, found.ranks.back().name),
          {.file = file});
    if (rank > expected)
      throw Failure(
          fmt::format("the file of rank {} is missing: there are {} files, up to that of rank {}",
                      expected, ranked.size(), ranked.back().first),
          {.file = ranked.back().second},
          "give the traces of all ranks, or one file and --replicate");
    found.ranks.push_back({file});
  }
  found.name = wanted.before;
  while (!found.name.empty() &&
         std::string_view("._-").find(found.name.back()) != std::string_view::npos)
    found.name.pop_back();
  const TraceFile groups{(wanted.folder / (found.name + ".json")).string()};
  if (fs::exists(groups.name) && is_group_file(groups)) found.groups = groups;
  return found;
}

}  // namespace

std::string TraceFile::content() const {
  return member ? *member : read_file(name);
}

std::string TraceFile::start(std::size_t most) const {
  return member ? member->substr(0, most) : read_start(name, most);
}

TraceFormat trace_format(std::string_view content) {
  // Whoever has read the whole file: it may be long.
  const std::string_view start = content.substr(0, kTraceStart);
  switch (recognise(start)) {
    case Format::kineto_trace:
      return TraceFormat::kineto;
    case Format::hlo:
      return TraceFormat::hlo;
    case Format::astra_text:
      return TraceFormat::astra_text;
    case Format::aicb_csv:
      return TraceFormat::aicb;
    case Format::chakra_et:
      return start[start.find_first_not_of(" \t\r\n")] == '{' ? TraceFormat::pytorch
                                                              : TraceFormat::chakra;
    case Format::chakra_json:
      return TraceFormat::chakra_json;
    default:
      return TraceFormat::unknown;
  }
}

TraceFiles find_traces(const std::string& path, const parts::Registry* parts) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    std::vector<TraceFile> files;
    for (const std::string& file : files_in(path)) files.push_back({file});
    return pick_traces(files, path, parts);
  }
  if (!fs::exists(path, error)) return numbered_traces(path);
  const TraceFile file{path};
  if (is_archive(file.start(kTraceStart))) {
    TraceFiles found = pick_traces(files_of_archive(path), path, parts);
    found.name = short_name(path);
    return found;
  }
  std::vector<TraceFile> others;
  const fs::path folder = fs::path(path).parent_path();
  std::optional<int> rank;
  const std::string beside = without_rank(short_name(path), rank) + ".json";
  if (fs::exists(folder / beside, error)) others.push_back({(folder / beside).string()});
  return single_trace(file, others);
}

bool has_traces(const std::string& path, const parts::Registry* parts) {
  std::error_code error;
  try {
    if (fs::is_directory(path, error)) {
      const std::vector<std::string> files = files_in(path);
      return std::ranges::any_of(
          files, [&](const std::string& file) { return is_of_one_rank({file}, parts); });
    }
    if (fs::exists(path, error)) {
      if (!fs::is_regular_file(path, error)) return false;
      const TraceFile file{path};
      const std::string start = file.start(kTraceStart);
      if (!is_archive(start)) return reader_of(start, parts) != nullptr;
      const std::vector<TraceFile> members = files_of_archive(path);
      return std::ranges::any_of(
          members, [&](const TraceFile& member) { return is_of_one_rank(member, parts); });
    }
    return !ranked_files(ranked_name(path)).empty();
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace hemiola::workload
