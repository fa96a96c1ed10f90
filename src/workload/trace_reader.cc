#include "workload/trace_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/part_call.h"
#include "hemiola/parts/registry.h"
#include "workload/hlo/reader.h"
#include "workload/simai/reader.h"
#include "workload/traces/assembly.h"
#include "workload/traces/chakra/json.h"
#include "workload/traces/chakra/reader.h"
#include "workload/traces/files.h"
#include "workload/traces/groups.h"
#include "workload/traces/kineto/calls.h"
#include "workload/traces/kineto/launches.h"
#include "workload/traces/kineto/reader.h"
#include "workload/traces/pytorch/reader.h"
#include "workload/traces/sizes.h"

namespace hemiola::workload {
namespace {

void define_groups(const TraceRequest& request, const TraceFiles& files, ProcessGroups& groups,
                   std::vector<Diagnostic>& notices) {
  if (!request.groups.empty()) {
    groups.define_for_all(read_group_file(request.groups), request.groups);
  } else if (files.groups) {
    groups.define_for_all(*parse_group_file(files.groups->content()), files.groups->name);
    notices.push_back({Severity::note,
                       "process groups were taken from the file beside the traces",
                       {.file = files.groups->name},
                       {}});
  }
}

class RankReader {
 public:
  RankReader(const TraceRequest& request, const TraceFiles& files, WorkloadBuilder& builder,
             int ranks)
      : assembly_(builder, request.lenient),
        groups_(builder, ranks, request.replicate.has_value()) {
    if (!request.sizes.empty()) sizes_ = CallSizes(request.sizes);
    group_file_ = request.groups;
    define_groups(request, files, groups_, builder.workload().notices);
  }

  void read(const TraceFile& file, int rank, const std::vector<int>& ranks) {
    std::string content = file.content();
    std::string class_name;
    Trace trace;
    tally_.begin_file(file.name);
    const TraceFormat format = trace_format(content);
    if (format == TraceFormat::chakra_json) content = chakra_from_json(file.name, content);
    switch (format) {
      case TraceFormat::pytorch: {
        const TorchNodes torch = parse_pytorch(file.name, std::move(content));
        if (!torch.has_known_schema())
          assembly_.builder().workload().notices.push_back(
              {Severity::warning,
               fmt::format("schema {} is not known, and read as 1.1.1-chakra.0.0.4: what it calls "
                           "otherwise is not seen",
                           shorten(torch.schema)),
               {.file = file.name},
               {}});
        groups_.begin_file(rank, 0);
        trace = read_pytorch(file.name, torch.nodes, assembly_, groups_, sizes_, tally_);
        break;
      }
      case TraceFormat::kineto: {
        const KinetoEvents events = only_ ? *std::exchange(only_, std::nullopt)
                                          : parse_kineto(file.name, std::move(content));
        groups_.begin_file(kineto_rank_of(events, rank), world_of(events), events.rank.has_value());
        set_device(events, file.name);
        const auto inferred = inferred_.find(file.name);
        trace = read_kineto(file.name, events,
                            inferred == inferred_.end() ? InferredGroups() : inferred->second,
                            assembly_, groups_, sizes_, tally_);
        break;
      }
      case TraceFormat::hlo:
      case TraceFormat::astra_text:
      case TraceFormat::aicb:
      case TraceFormat::unknown:
        if (recognise(content) != Format::binary)
          throw Failure(fmt::format("is {}, not a trace", describe(recognise(content))),
                        {.file = file.name},
                        "Chakra, PyTorch and Kineto traces can be read: docs/traces.md");
        [[fallthrough]];
      case TraceFormat::chakra_json:
      case TraceFormat::chakra:
        groups_.begin_file(rank, 0);
        trace = read_chakra(file.name, content, assembly_, groups_, tally_, class_name);
    }
    rank_ = groups_.rank();
    assembly_.add_ranks(std::move(trace), ranks, class_name);
  }

  /// The groups of calls in Kineto traces that do not name theirs: what one rank does not say, the
  /// calls of all may.
  void infer_groups(const std::vector<TraceFile>& files, const std::vector<int>& ranks) {
    std::vector<CommunicatorsOfRank> all;
    bool has_unnamed = false;
    for (std::size_t f = 0; f < files.size(); ++f) {
      if (trace_format(files[f].start(kTraceStart)) != TraceFormat::kineto) continue;
      KinetoEvents events = parse_kineto(files[f].name, files[f].content());
      const KinetoLaunches launches = find_launches(events);
      all.push_back(KinetoCalls(events, launches)
                        .communicators(kineto_rank_of(events, ranks[f]), world_of(events)));
      all.back().file = files[f].name;
      for (Communicator& one : all.back().unnamed)
        one.is_given = groups_.is_given(group_of_stream(one.stream));
      has_unnamed = has_unnamed || !all.back().unnamed.empty() || files.size() > 1;
      if (files.size() == 1) only_ = std::move(events);
    }
    if (!has_unnamed) return;
    std::vector<InferredGroups> found = workload::infer_groups(all);
    for (std::size_t i = 0; i < all.size(); ++i) inferred_[all[i].file] = std::move(found[i]);
  }

  void finish(std::vector<Diagnostic>& notices) {
    if (!groups_.replicated()) assembly_.join_splits();
    assembly_.sort_classes();
    tally_.report(notices);
    if (group_file_.empty()) return;
    if (const std::vector<std::string> names = groups_.unused(); !names.empty())
      notices.push_back({Severity::warning,
                         fmt::format("no call is in {} of these process groups: {}", names.size(),
                                     shorten(fmt::format("'{}'", fmt::join(names, "', '")))),
                         {.file = group_file_},
                         "a group is called as the trace calls it, or by a stream: \"stream 20\""});
  }
  int last_rank() const { return rank_; }

 private:
  /// Where the files do not come in the order of ranks, there is one that says its own.
  int kineto_rank_of(const KinetoEvents& events, int rank) const {
    const auto said = events.rank;
    return said && groups_.replicated() && *said >= 0 && *said < (1 << 24) ? static_cast<int>(*said)
                                                                           : rank;
  }
  static int world_of(const KinetoEvents& events) {
    const std::int64_t world = events.world.value_or(0);
    return world > 0 && world <= (1 << 24) ? static_cast<int>(world) : 0;
  }

  /// The GPU of the trace is a fact; traces of ranks on different ones are refused.
  void set_device(const KinetoEvents& events, const std::string& file) {
    if (events.gpu.empty()) return;
    const std::int64_t number = events.gpu.front().device;
    if (number < 0 || index(number) >= events.devices.size()) return;
    const RecordedDevice& device = events.devices[index(number)];
    if (device.name.empty()) return;
    std::optional<RecordedDevice>& known = assembly_.builder().workload().recorded_on;
    if (known && known->name != device.name)
      throw Failure(
          fmt::format("was recorded on {}, and traces before it on {}", device.name, known->name),
          {.file = file}, "ranks are timed on GPUs of one model");
    known = device;
  }

  TraceAssembly assembly_;
  ProcessGroups groups_;
  CallSizes sizes_;
  Tally tally_;
  int rank_ = 0;
  std::string group_file_;                          ///< of --groups; empty: none
  std::optional<KinetoEvents> only_;                ///< of the only file, once it was looked at
  std::map<std::string, InferredGroups> inferred_;  ///< by file
};

/// The traces of ranks, or the trace of one that all do the same as. Each is of a format of its
/// own.
Workload read_ranks(const TraceRequest& request, const TraceFiles& files) {
  if (request.replicate && files.ranks.size() != 1)
    throw Failure(fmt::format("--replicate makes all ranks from one trace, and there are {}",
                              files.ranks.size()),
                  {.file = request.path});
  const int ranks = request.replicate.value_or(static_cast<int>(files.ranks.size()));
  WorkloadBuilder builder(request.name.empty() ? files.name : request.name, ranks);
  Workload& workload = builder.workload();
  workload.source = request.path;
  RankReader reader(request, files, builder, ranks);
  std::vector<int> rank_of = ranks_from(0, static_cast<int>(files.ranks.size()));
  if (request.replicate) rank_of = {files.rank_of_single.value_or(0)};
  reader.infer_groups(files.ranks, rank_of);
  for (std::size_t i = 0; i < files.ranks.size(); ++i) {
    reader.read(files.ranks[i], rank_of[i],
                request.replicate ? ranks_from(0, ranks) : std::vector{rank_of[i]});
  }
  reader.finish(workload.notices);
  if (!files.ranks_from.empty())
    workload.notices.push_back(
        {Severity::note,
         fmt::format("ranks of the {} files are from {}: rank 0 is {}, rank {} is {}",
                     files.ranks.size(), files.ranks_from, files.ranks.front().name,
                     files.ranks.size() - 1, files.ranks.back().name),
         {.file = request.path},
         {}});
  if (!request.name.empty()) workload.name = request.name;
  if (request.replicate)
    workload.notices.push_back(
        {Severity::note,
         fmt::format(
             "all {} ranks do what this trace of rank {} does, with process groups of the same "
             "size and stride",
             ranks, reader.last_rank()),
         {.file = files.ranks.front().name},
         {}});
  return builder.take();
}

/// The row of a format that a file of its own is of.
template <class Read>
TraceReader whole(const char* name, const char* description, const char* source, TraceFormat format,
                  Read read) {
  return {name,
          description,
          [format](std::string_view start) { return trace_format(start) == format; },
          [format, read](const TraceRequest& request, const TraceFiles& files) {
            TraceRequest named = request;
            if (format != TraceFormat::hlo && named.name.empty()) named.name = files.name;
            const TraceFile& only = files.ranks.front();
            return read(named, only.name, only.content());
          },
          false,
          source,
          true};
}

TraceReader of_ranks(const char* name, const char* description, const char* source,
                     std::initializer_list<TraceFormat> formats) {
  return {name,
          description,
          [known = std::vector(formats)](std::string_view start) {
            return std::ranges::find(known, trace_format(start)) != known.end();
          },
          read_ranks,
          true,
          source,
          true};
}

/// What the role promises. Failure with the reader's name.
Workload read_by(const TraceReader& reader, const TraceRequest& request, const TraceFiles& files) {
  if (reader.is_checked) return reader.read(request, files);
  const std::string who = fmt::format("trace reader '{}'", reader.name);
  Workload workload =
      call_part(who, {.file = request.path}, [&] { return reader.read(request, files); });
  if (workload.nodes() == 0) throw Failure(who + " found nothing", {.file = request.path});
  check(workload);
  return workload;
}

}  // namespace

void register_parts(parts::Registry& registry) {
  using enum TraceFormat;
  registry.add(of_ranks("chakra", "Chakra execution traces (protobuf, JSON)", "mlcommons/chakra",
                        {chakra, chakra_json}));
  registry.add(
      of_ranks("kineto", "Kineto traces of PyTorch's profiler (JSON)", "pytorch/kineto", {kineto}));
  registry.add(of_ranks("pytorch", "PyTorch execution traces (JSON)",
                        "torch.profiler.ExecutionTraceObserver", {pytorch}));
  registry.add(whole("hlo", "HLO modules that XLA dumps", "openxla/xla", hlo, read_hlo));
  registry.add(whole("astra-text", "workload texts of ASTRA-sim 1 and SimAI", "astra-sim/astra-sim",
                     astra_text, read_astra_text));
  registry.add(whole("aicb", "tables of AICB", "aliyun/aicb", aicb, read_aicb));
}

const TraceReader* reader_of(std::string_view start, const parts::Registry* parts) {
  static const parts::Registry built_ins{register_parts};
  for (const TraceReader& reader : (parts != nullptr ? *parts : built_ins).trace_readers())
    if (reader.recognises(start)) return &reader;
  return nullptr;
}

Workload read_workload(const TraceRequest& request) {
  if (request.replicate && *request.replicate < 1)
    throw Failure(fmt::format("--replicate {}: there is at least one rank", *request.replicate),
                  kOption);
  constexpr int kMostRanks = 1 << 20;
  if (request.replicate && *request.replicate > kMostRanks)
    throw Failure(
        fmt::format("--replicate {}: there are {} ranks at most", *request.replicate, kMostRanks),
        kOption);
  const TraceFiles files = find_traces(request.path, request.parts);
  const TraceReader* const reader =
      reader_of(files.ranks.front().start(kTraceStart), request.parts);
  const bool is_for_all = reader != nullptr && (reader->per_rank || files.ranks.size() == 1);
  return is_for_all ? read_by(*reader, request, files) : read_ranks(request, files);
}

bool is_trace(const std::string& path, const parts::Registry* parts) {
  return has_traces(path, parts);
}

}  // namespace hemiola::workload
