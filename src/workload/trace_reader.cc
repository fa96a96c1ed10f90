#include "workload/trace_reader.h"

#include <fmt/format.h>

#include <filesystem>
#include <numeric>
#include <utility>
#include <vector>

#include "workload/chakra_reader.h"
#include "workload/groups.h"
#include "workload/trace_assembly.h"
#include "workload/trace_files.h"

namespace hemiola::workload {
namespace {

std::vector<int> all_ranks(int count) {
  std::vector<int> ranks(static_cast<std::size_t>(count));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

void define_groups(const TraceRequest& request, const TraceFiles& files, ProcessGroups& groups,
                   std::vector<Diagnostic>& notices) {
  if (!request.groups.empty()) {
    groups.define_for_all(read_group_file(request.groups), request.groups);
  } else if (files.groups) {
    groups.define_for_all(*parse_group_file(files.groups->content()), files.groups->name);
    notices.push_back({Severity::note, "process groups were taken from the file beside the traces",
                       {.file = files.groups->name}, {}});
  }
}

Trace read_one(const TraceFile& file, TraceAssembly& assembly, ProcessGroups& groups, int rank,
               std::string& class_name) {
  const std::string content = file.content();
  groups.begin_file(rank, 0);
  switch (trace_format(content)) {
    case TraceFormat::pytorch:
    case TraceFormat::kineto:
      throw Failure("is a trace that cannot be read yet", {.file = file.name});
    case TraceFormat::chakra:
      break;
    case TraceFormat::unknown: {
      const Format format = recognise(content);
      if (format != Format::binary)
        throw Failure(fmt::format("is {}, not a trace", describe(format)), {.file = file.name},
                      "Chakra, PyTorch and Kineto traces can be read: docs/traces.md");
    }
  }
  return read_chakra(file.name, content, assembly, groups, class_name);
}

}  // namespace

Workload read_workload(const TraceRequest& request) {
  const TraceFiles files = find_traces(request.path);
  if (request.replicate && files.ranks.size() != 1)
    throw Failure(fmt::format("--replicate makes all ranks from one trace, and there are {}",
                              files.ranks.size()),
                  {.file = request.path});
  if (request.replicate && *request.replicate < 1)
    throw Failure(fmt::format("--replicate {}: there is at least one rank", *request.replicate), kOption);
  const int ranks = request.replicate.value_or(static_cast<int>(files.ranks.size()));
  WorkloadBuilder builder(request.name.empty() ? files.name : request.name, ranks);
  Workload& workload = builder.workload();
  workload.source = request.path;
  TraceAssembly assembly(builder, request.lenient);
  ProcessGroups groups(builder, ranks, request.replicate.has_value());
  define_groups(request, files, groups, workload.notices);
  for (std::size_t i = 0; i < files.ranks.size(); ++i) {
    const int rank =
        request.replicate ? files.rank_of_single.value_or(0) : static_cast<int>(i);
    std::string class_name;
    Trace trace = read_one(files.ranks[i], assembly, groups, rank, class_name);
    assembly.add_ranks(std::move(trace),
                       request.replicate ? all_ranks(ranks) : std::vector{rank}, class_name);
  }
  if (!request.name.empty()) workload.name = request.name;
  if (request.replicate)
    workload.notices.push_back(
        {Severity::note,
         fmt::format("all {} ranks do what this trace of rank {} does, with process groups of the same "
                     "size and stride",
                     ranks, files.rank_of_single.value_or(0)),
         {.file = files.ranks.front().name},
         {}});
  return builder.take();
}

bool is_trace(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  constexpr std::size_t kLooked = std::size_t{1} << 16;
  if (fs::is_regular_file(path, error))
    return trace_format(TraceFile{path}.start(kLooked)) != TraceFormat::unknown;
  if (fs::exists(path, error) && !fs::is_directory(path, error)) return false;
  try {
    return !find_traces(path).ranks.empty();
  } catch (const Failure&) {
    return false;
  }
}

}  // namespace hemiola::workload
