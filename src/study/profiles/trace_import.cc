// Traces of real runs as profiles.
#include "study/profiles/trace_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/json.h"
#include "core/lists.h"
#include "core/text.h"
#include "core/units.h"
#include "study/tables/table_text.h"

namespace hemiola::study {
namespace {

using Measured = ImportedTraces::Measured;

struct Kernel {
  std::string kind;                 ///< kernels of one communication have the same
  std::int64_t begin = 0, end = 0;  ///< ns, on the clock of its trace
};
struct RankTrace {
  std::string file;
  int rank = 0;
  std::vector<Kernel> kernels;  ///< by time
};

bool contains_any(std::string_view text, std::string_view alternatives) {
  for (const std::string& word : split(alternatives, '|'))
    if (!word.empty() && text.find(word) != std::string_view::npos) return true;
  return false;
}

void sort_by_time(std::vector<Kernel>& kernels) {
  std::ranges::stable_sort(kernels, [](const Kernel& a, const Kernel& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
}

// --- Kineto.

struct KinetoTrace {
  RankTrace trace;
  int world = 0;  ///< 0: it does not say
};

// Of a base and of times behind it, which both may count from 1970: distances of their sums do not
// overflow.
constexpr std::int64_t kMostBase = 2'000'000'000'000'000'000;  ///< nanoseconds
constexpr double kMostBegin = 2e15, kMostLength = 1e13;        ///< microseconds

/// Empty: it has no such text.
std::string text_of(const nlohmann::json& event, const char* key) {
  const auto found = event.find(key);
  return found != event.end() && found->is_string() ? found->get<std::string>() : std::string();
}

KinetoTrace read_kineto(const NamedText& file, int otherwise) {
  const JsonText source(file.second, file.first);
  const JsonValue root = source.root();
  KinetoTrace read;
  read.trace.file = file.first;
  read.trace.rank = otherwise;
  if (root.has("distributedInfo")) {
    const JsonValue info = root.at("distributedInfo");
    constexpr std::int64_t kMost = 1 << 20;
    read.trace.rank = static_cast<int>(info.integer("rank", 0, kMost));
    if (info.has("world_size")) read.world = static_cast<int>(info.integer("world_size", 1, kMost));
  }
  // Microseconds since a base that traces with nanoseconds name.
  std::int64_t base = 0;
  if (root.has("baseTimeNanoseconds"))
    base = root.integer("baseTimeNanoseconds", -kMostBase, kMostBase);
  const JsonValue list = root.at("traceEvents");
  const nlohmann::json& events = list.json();
  if (!events.is_array()) list.fail("a list of events is needed here");
  for (std::size_t e = 0; e < events.size(); ++e) {
    const nlohmann::json& event = events[e];
    if (!event.is_object() || text_of(event, "cat") != "kernel") continue;
    const std::string name = text_of(event, "name");
    if (!contains_any(name, "nccl|rccl")) continue;
    const auto number = [&](const char* key) {
      if (!event.contains(key) || !event[key].is_number())
        throw Failure(fmt::format("the kernel '{}' has no number '{}'", name, key),
                      {.file = file.first, .pointer = fmt::format("/traceEvents/{}", e)},
                      "was the trace cut off?");
      return event[key].get<double>();
    };
    const double begin = number("ts"), length = number("dur");
    std::string kind = name.substr(0, name.find('('));
    if (event.contains("args") && event["args"].is_object() && event["args"].contains("stream"))
      kind += " on stream " + event["args"]["stream"].dump();
    if (!(std::abs(begin) <= kMostBegin) || !(std::abs(length) <= kMostLength))
      throw Failure(fmt::format("the kernel '{}' is at no time", name),
                    {.file = file.first, .pointer = fmt::format("/traceEvents/{}", e)},
                    "times are microseconds");
    Kernel kernel{.kind = std::move(kind)};
    kernel.begin = base + std::llround(begin * 1000);
    kernel.end = kernel.begin + std::llround(length * 1000);
    read.trace.kernels.push_back(std::move(kernel));
  }
  if (read.trace.kernels.empty())
    throw Failure("this trace has no communication kernels", {.file = file.first},
                  "kernels with nccl or rccl in their names, of a run on several GPUs");
  sort_by_time(read.trace.kernels);
  return read;
}

// --- What belongs together.

/// Pairs of kernels of two traces, by number.
using Pairs = std::vector<std::pair<std::size_t, std::size_t>>;

/// Those of one kind that overlap, each the nearest to the other by its end: clocks of one cluster
/// differ by less than communications are apart.
Pairs overlapping(const RankTrace& a, const RankTrace& b) {
  const auto nearest = [](const RankTrace& from, std::size_t i, const RankTrace& in) {
    std::optional<std::size_t> best;
    const Kernel& k = from.kernels[i];
    for (std::size_t j = 0; j < in.kernels.size(); ++j) {
      const Kernel& other = in.kernels[j];
      if (other.kind != k.kind || other.begin >= k.end || k.begin >= other.end) continue;
      if (!best || std::abs(other.end - k.end) < std::abs(in.kernels[*best].end - k.end)) best = j;
    }
    return best;
  };
  Pairs pairs;
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const auto j = nearest(a, i, b);
    if (j && nearest(b, *j, a) == i) pairs.emplace_back(i, *j);
  }
  return pairs;
}

/// The n-th of a kind with the n-th, where clocks have nothing to do with each other.
Pairs by_number(const RankTrace& a, const RankTrace& b) {
  std::map<std::string, std::vector<std::size_t>> of_kind;
  for (std::size_t j = 0; j < b.kernels.size(); ++j) of_kind[b.kernels[j].kind].push_back(j);
  std::map<std::string, std::size_t> seen;
  Pairs pairs;
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    const std::vector<std::size_t>& others = of_kind[a.kernels[i].kind];
    const std::size_t n = seen[a.kernels[i].kind]++;
    if (n < others.size()) pairs.emplace_back(i, others[n]);
  }
  return pairs;
}

std::int64_t median(std::vector<std::int64_t> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Nanoseconds between two communications, or clocks: femtoseconds have room for two hours and a
// half.
constexpr std::int64_t kLongest = 2LL * 3600 * 1'000'000'000;

ImportedTraces imported(const std::vector<RankTrace>& traces) {
  ImportedTraces result;
  const RankTrace& first = traces.front();
  std::vector<std::map<std::size_t, std::size_t>> partner(traces.size());  // of first's kernels
  std::vector<std::int64_t> offset(traces.size());
  for (std::size_t i = 0; i < first.kernels.size(); ++i) partner[0][i] = i;
  for (std::size_t t = 1; t < traces.size(); ++t) {
    const std::size_t fewer = std::min(first.kernels.size(), traces[t].kernels.size());
    Pairs pairs = overlapping(first, traces[t]);
    const Pairs numbered = by_number(first, traces[t]);
    const bool apart = first.kernels.size() == traces[t].kernels.size() &&
                       numbered.size() == fewer && 2 * pairs.size() < fewer;
    if (apart) pairs = numbered;
    if (pairs.empty())
      throw Failure(fmt::format("rank {} has no communication in common with rank {} of '{}'",
                                traces[t].rank, first.rank, first.file),
                    {.file = traces[t].file}, "are these traces of one run?");
    std::vector<std::int64_t> differences;
    for (const auto& [i, j] : pairs)
      differences.push_back(traces[t].kernels[j].end - first.kernels[i].end);
    offset[t] = median(std::move(differences));
    if (std::abs(offset[t]) > kLongest)
      throw Failure(fmt::format("the clocks of rank {} and rank {} are hours apart", traces[t].rank,
                                first.rank),
                    {.file = traces[t].file}, "are these traces of one run?");
    for (const auto& [i, j] : pairs) partner[t][i] = j;
  }
  std::vector<std::size_t> common;
  for (std::size_t i = 0; i < first.kernels.size(); ++i)
    if (std::ranges::all_of(partner, [&](const auto& p) { return p.contains(i); }))
      common.push_back(i);
  if (common.empty())
    throw Failure("no communication is in all traces", {.file = first.file},
                  "are these traces of one run?");
  std::int64_t origin = INT64_MAX;
  const auto kernel = [&](std::size_t t, std::size_t i) -> const Kernel& {
    return traces[t].kernels[partner[t].at(i)];
  };
  for (std::size_t t = 0; t < traces.size(); ++t)
    for (const std::size_t i : common) origin = std::min(origin, kernel(t, i).begin - offset[t]);
  const auto ranks = static_cast<int>(traces.size());
  result.profile = {.file = first.file, .ranks = ranks};
  result.kernels.resize(traces.size());
  std::int64_t error = 0;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    result.ranks.push_back(traces[t].rank);
    result.clock_offset.push_back(Time::from_ns(offset[t]));
    for (std::size_t c = 0; c < common.size(); ++c) {
      const Kernel& k = kernel(t, common[c]);
      if (k.end - offset[t] - origin > kLongest)
        throw Failure("communications are hours apart", {.file = traces[t].file},
                      "traces of some iterations are enough");
      const Time begin = Time::from_ns(k.begin - offset[t] - origin);
      const Time end = Time::from_ns(k.end - offset[t] - origin);
      result.kernels[t].push_back({begin, end});
      error = std::max(error, std::abs(end.fs - result.kernels[0][c].end.fs));
      for (int to = 0; to < ranks; ++to) {
        if (to == static_cast<int>(t)) continue;
        const auto semaphore = static_cast<std::int64_t>(c) * ranks + static_cast<int>(t);
        sim::register_write(result.profile, static_cast<int>(t), to, end, sim::kSemaphores,
                            8 * semaphore, 1);
        result.profile.rows.back().tag = k.kind;
      }
    }
    if (traces[t].kernels.size() > common.size())
      result.notes.push_back(fmt::format("{}: {} of {} communication kernels are in all traces",
                                         traces[t].file, common.size(), traces[t].kernels.size()));
  }
  result.alignment_error = {error};
  result.profile = sim::in_order(std::move(result.profile));
  return result;
}

// Each rank once; all of them, if not `partial`.
void check_ranks(const std::vector<KinetoTrace>& traces, bool partial) {
  int world = 0;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    world = std::max(world, traces[t].world);
    if (t > 0 && traces[t].trace.rank == traces[t - 1].trace.rank)
      throw Failure(fmt::format("this is rank {}, as is '{}'", traces[t].trace.rank,
                                traces[t - 1].trace.file),
                    {.file = traces[t].trace.file});
  }
  if (traces.size() < 2 && (world < 2 || partial))
    throw Failure("a trace of one rank alone says nothing of others",
                  {.file = traces.front().trace.file}, "give the traces of several ranks");
  if (partial || world <= static_cast<int>(traces.size())) return;
  int missing = 0;
  while (missing < static_cast<int>(traces.size()) && traces[index(missing)].trace.rank == missing)
    ++missing;
  throw Failure(fmt::format("the run had {} ranks, but there are {} traces: that of rank {} is "
                            "missing",
                            world, traces.size(), missing),
                {.file = traces.front().trace.file}, "--partial takes those that are there");
}

}  // namespace

bool is_kineto(std::string_view text) {
  return recognise(text) == Format::kineto_trace;
}

bool is_rocprof(std::string_view text) {
  const std::string_view heading = text.substr(0, text.find('\n'));
  return heading.find("Kernel_Name") != std::string_view::npos &&
         heading.find("GPU_ID") != std::string_view::npos;
}

ImportedTraces import_kineto(const std::vector<NamedText>& files, bool partial) {
  std::vector<KinetoTrace> traces;
  for (const NamedText& file : files)
    traces.push_back(read_kineto(file, static_cast<int>(traces.size())));
  std::ranges::stable_sort(traces, [](const KinetoTrace& a, const KinetoTrace& b) {
    return a.trace.rank < b.trace.rank;
  });
  check_ranks(traces, partial);
  std::vector<RankTrace> of_ranks;
  for (KinetoTrace& trace : traces) of_ranks.push_back(std::move(trace.trace));
  return imported(of_ranks);
}

ImportedTraces import_rocprof(const NamedText& file, std::string_view kernels) {
  const TableText table = read_csv(file.second, file.first);
  const auto column = [&](std::initializer_list<std::string_view> names) {
    for (std::size_t c = 0; c < table.columns.size(); ++c)
      if (std::ranges::find(names, table.columns[c]) != names.end()) return c;
    throw Failure(fmt::format("there is no column '{}'", *names.begin()),
                  {.file = file.first, .line = table.heading_line}, "rocprof --timestamp on");
  };
  const std::size_t name = column({"Kernel_Name", "KernelName"}),
                    gpu = column({"GPU_ID", "gpu-id"});
  const std::size_t begin = column({"Start_Timestamp", "BeginNs"});
  const std::size_t end = column({"End_Timestamp", "EndNs"});
  std::map<std::int64_t, RankTrace> gpus;
  for (const TableText::Row& row : table.rows) {
    const auto number = [&](std::size_t c) {
      const auto value = parse_count(row.cells[c]);
      if (!value)
        throw Failure(
            fmt::format("'{}' is no whole number in column '{}'", row.cells[c], table.columns[c]),
            {.file = file.first, .line = row.line},
            "spreadsheets round timestamps: take the file as rocprof wrote it");
      if (*value < -kMostBase || *value > kMostBase)
        throw Failure(fmt::format("{} is no time, or number of a GPU", *value),
                      {.file = file.first, .line = row.line});
      return *value;
    };
    if (!contains_any(row.cells[name], kernels)) continue;
    RankTrace& trace = gpus[number(gpu)];
    trace.file = file.first;
    Kernel kernel{.kind = row.cells[name].substr(0, row.cells[name].find('(')),
                  .begin = number(begin),
                  .end = number(end)};
    if (kernel.end <= kernel.begin)
      throw Failure("a kernel ends before it begins", {.file = file.first, .line = row.line});
    trace.kernels.push_back(std::move(kernel));
  }
  if (gpus.empty())
    throw Failure(fmt::format("no kernel has '{}' in its name", kernels), {.file = file.first},
                  "--kernels NAME|NAME says which ends of kernels are flags");
  std::vector<RankTrace> traces;
  for (auto& [number, trace] : gpus) {
    trace.rank = static_cast<int>(traces.size());
    sort_by_time(trace.kernels);
    traces.push_back(std::move(trace));
  }
  if (traces.size() > 1) return imported(traces);
  // What one GPU did to another one, of which nothing is known.
  ImportedTraces result = imported(traces);
  sim::Profile profile{.file = file.first, .ranks = 2};
  for (std::size_t c = 0; c < result.kernels[0].size(); ++c) {
    sim::register_write(profile, 1, 0, result.kernels[0][c].end, sim::kSemaphores,
                        8 * (2 * static_cast<std::int64_t>(c) + 1), 1);
    profile.rows.back().tag = traces[0].kernels[c].kind;
  }
  result.profile = sim::in_order(std::move(profile));
  result.kernels.insert(result.kernels.begin(), std::vector<Measured>(result.kernels[0].size()));
  result.ranks = {0, 1};
  result.clock_offset.resize(2);
  result.notes.push_back("one GPU: it is rank 1, which writes to rank 0");
  return result;
}

program::Bound measured_program(const ImportedTraces& traces, int rank,
                                machine::SharedMachine machine, std::size_t communications) {
  program::Program program;
  program.name = "measured waits of rank " + std::to_string(rank);
  program.source = traces.profile.file;
  program.format = "trace";
  program.ranks = traces.profile.ranks;
  program.collective = Collective::custom;
  program.buffers = {{.name = "input", .kind = program::BufferKind::input, .chunks = {1}}};
  const auto& kernels = traces.kernels[index(rank)];
  for (std::size_t s = 0; s < kernels.size() * traces.kernels.size(); ++s)
    program.semaphores.push_back({.name = "communication " +
                                          std::to_string(s / traces.kernels.size()) + " of rank " +
                                          std::to_string(s % traces.kernels.size())});
  std::vector<program::Op> ops;
  Time until{};
  for (std::size_t c = 0; c < std::min(communications, kernels.size()); ++c) {
    program::Op compute{.kind = program::OpKind::compute};
    compute.duration = {std::max<std::int64_t>(0, kernels[c].begin.fs - until.fs)};
    ops.push_back(std::move(compute));
    program::Op wait{.kind = program::OpKind::wait};
    wait.channel = program::Channel::memory;
    for (int other = 0; other < program.ranks; ++other)
      if (other != rank)
        wait.semaphores.push_back(
            {constant(rank), static_cast<std::int32_t>(c) * program.ranks + other});
    ops.push_back(std::move(wait));
    until = kernels[c].end;
  }
  program.bodies.resize(2);
  program.bodies[0].ops = std::move(ops);
  for (int r = 0; r < program.ranks; ++r) {
    const bool own = r == rank;
    program::Kernel kernel{.name = own ? "measured" : "nothing"};
    kernel.threads = 32;
    kernel.bodies = {own ? 0 : 1};
    program.code_of.push_back(r);
    program.codes.push_back({{{program::StreamItem{.index = r}}}});
    program.kernels.push_back(std::move(kernel));
  }
  program.chunks_per_size = 1;
  program.finish();
  return program::bind(program, std::move(machine), {.size = {128}});
}

}  // namespace hemiola::study
