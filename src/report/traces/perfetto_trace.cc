// A simulation as Perfetto's protobuf trace.
#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <functional>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "report/report.h"
#include "report/traces/perfetto_writer.h"
#include "report/values/link_history.h"
#include "sim/result/trace.h"

namespace hemiola::report {
namespace {

/// Behind the streams of a process, tracks stand in this order, then by number, then by name.
enum class TrackKind : std::uint8_t { engine, resource, link };

struct TrackKey {
  TrackKind kind = TrackKind::engine;
  int number = 0;
  std::string name;
  auto operator<=>(const TrackKey&) const = default;
};

struct Slice {
  Time begin{};
  Time end{};
  std::uint64_t name = 0;  ///< of PerfettoTrace::State::names
  sim::FlowEnds flow{};
  std::uint64_t arriving = 0;  ///< the flow that ends here, once they are numbered
};
using Slices = std::vector<Slice>;

struct Workgroup {
  int stream = -1;  ///< not known
  Slices spans;     ///< one for each launch of its kernel
  Slices operations;
};

/// A rank, or the fabric.
struct Process {
  std::string name;
  std::map<int, Slices> streams;
  std::map<int, Workgroup> workgroups;
  std::map<TrackKey, Slices> tracks;
};

/// The first row has the name of its track.
std::string row_name(const std::string& track, std::size_t row) {
  return row == 0 ? track : fmt::format("{}, row {}", track, row + 1);
}

/// Deals overlapping slices to rows: each goes to the first row that is free when it begins.
/// `slices` must be sorted by begin.
std::vector<Slices> deal_to_rows(const Slices& slices) {
  using Busy = std::pair<Time, std::size_t>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> idle;
  std::vector<Slices> rows;
  for (const Slice& slice : slices) {
    for (; !busy.empty() && busy.top().first <= slice.begin; busy.pop())
      idle.push(busy.top().second);
    std::size_t row = rows.size();
    if (idle.empty()) {
      rows.emplace_back();
    } else {
      row = idle.top();
      idle.pop();
    }
    rows[row].push_back(slice);
    busy.emplace(slice.end, row);
  }
  return rows;
}

/// Two counters of one link: a value where it changes, and zero at the end.
void write_history(PerfettoWriter& writer, std::uint64_t parent, const std::string& name,
                   const LinkHistory& history) {
  const std::uint64_t use = writer.track(parent, name + " use", "GB/s");
  const std::uint64_t queue = writer.track(parent, name + " queue", "requests");
  double last_use = 0;
  std::int64_t last_queue = 0;
  const std::vector<LinkHistory::Bin>& bins = history.bins();
  for (std::size_t i = 0; i < bins.size(); ++i) {
    const Time begin = history.width() * static_cast<std::int64_t>(i);
    const Time length = std::min(history.width(), history.end() - begin);
    const double rate =
        length.fs > 0 ? static_cast<double>(bins[i].bytes) * 1e6 / static_cast<double>(length.fs)
                      : 0;
    if (rate != last_use) writer.value(use, begin, rate);
    if (bins[i].queue != last_queue) writer.value(queue, begin, static_cast<double>(bins[i].queue));
    last_use = rate;
    last_queue = bins[i].queue;
  }
  if (last_use != 0) writer.value(use, history.end(), 0);
  if (last_queue != 0) writer.value(queue, history.end(), 0);
}

}  // namespace

struct PerfettoTrace::State {
  Time lines_begin{};
  Time lines_end{};
  std::vector<Process> processes;  ///< ranks, then the fabric
  std::vector<std::string> links;
  std::map<std::string, std::uint64_t, std::less<>> numbers;  ///< of names
  std::vector<const std::string*> names;
  std::map<int, LinkHistory> histories;  ///< by link
  // Of flows, while the trace is written.
  std::unordered_map<sim::SpanId, std::vector<std::uint64_t>> leaving;

  std::uint64_t number_of(std::string_view name) {
    const auto found = numbers.find(name);
    if (found != numbers.end()) return found->second;
    const auto added = numbers.emplace(std::string(name), names.size()).first;
    names.push_back(&added->first);
    return added->second;
  }
  int fabric() const { return static_cast<int>(processes.size()) - 1; }
  /// What belongs to no rank (a switch) belongs to the fabric.
  Process& process_of(int rank) {
    return processes[index(rank >= 0 && rank < fabric() ? rank : fabric())];
  }
  void add(Slices& slices, std::string_view name, Time begin, Time end,
           const sim::FlowEnds& flow = {}) {
    assert(0 <= begin.fs && begin <= end);
    slices.push_back({.begin = begin, .end = end, .name = number_of(name), .flow = flow});
  }

  /// All slices in the order in which they are written.
  template <typename Visit>
  void each(Visit visit) {
    for (Process& process : processes) {
      for (auto& [number, slices] : process.streams) visit(slices);
      for (auto& [number, workgroup] : process.workgroups) {
        visit(workgroup.spans);
        visit(workgroup.operations);
      }
      for (auto& [key, slices] : process.tracks) visit(slices);
    }
  }
  void sort();
  void number_flows();
  void write(PerfettoWriter& writer, std::uint64_t track, const Slice& slice) const;
  void write_rows(PerfettoWriter& writer, std::uint64_t parent, const std::string& name,
                  const Slices& slices) const;
  void write_workgroup(PerfettoWriter& writer, std::uint64_t parent, const std::string& name,
                       const Workgroup& workgroup) const;
  void write_process(PerfettoWriter& writer, std::uint64_t parent, const Process& process) const;
};

/// Independent of the order of the calls: by time, then by name.
void PerfettoTrace::State::sort() {
  each([&](Slices& slices) {
    std::ranges::sort(slices, [&](const Slice& a, const Slice& b) {
      return std::tie(a.begin, a.end, *names[a.name], a.flow.released_at, a.flow.span) <
             std::tie(b.begin, b.end, *names[b.name], b.flow.released_at, b.flow.span);
    });
  });
}

/// A flow for each slice that was released by one which the trace has, too.
void PerfettoTrace::State::number_flows() {
  std::unordered_set<sim::SpanId> known;
  each([&](const Slices& slices) {
    for (const Slice& slice : slices)
      if (slice.flow.span != 0) known.insert(slice.flow.span);
  });
  leaving.clear();
  std::uint64_t flows = 0;
  each([&](Slices& slices) {
    for (Slice& slice : slices) {
      slice.arriving = 0;
      if (slice.flow.released_by == 0 || !known.contains(slice.flow.released_by)) continue;
      slice.arriving = ++flows;
      leaving[slice.flow.released_by].push_back(flows);
    }
  });
}

/// What released a slice after its begin is shown as a moment in it: arrows do not go back in time.
void PerfettoTrace::State::write(PerfettoWriter& writer, std::uint64_t track,
                                 const Slice& slice) const {
  Flows flows;
  const auto found = leaving.find(slice.flow.span);
  if (found != leaving.end()) flows.leaving = found->second;
  const bool inside = slice.flow.released_at > slice.begin;
  if (slice.arriving != 0 && !inside) flows.arriving = {slice.arriving};
  writer.begin(track, *names[slice.name], slice.begin, slice.end, std::move(flows));
  if (slice.arriving != 0 && inside)
    writer.instant(track, "released", slice.flow.released_at, slice.arriving);
  writer.end(track, slice.begin, slice.end);
}

void PerfettoTrace::State::write_rows(PerfettoWriter& writer, std::uint64_t parent,
                                      const std::string& name, const Slices& slices) const {
  const std::vector<Slices> rows = deal_to_rows(slices);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::uint64_t track = writer.track(parent, row_name(name, r));
    for (const Slice& slice : rows[r]) write(writer, track, slice);
  }
}

/// Each row shows the workgroup, and inside it the operations that do not overlap.
void PerfettoTrace::State::write_workgroup(PerfettoWriter& writer, std::uint64_t parent,
                                           const std::string& name,
                                           const Workgroup& workgroup) const {
  std::vector<Slices> rows = deal_to_rows(workgroup.operations);
  rows.resize(std::max<std::size_t>(1, rows.size()));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const std::string label = row_name(name, r);
    const std::uint64_t track = writer.track(parent, label);
    auto next = rows[r].begin();
    const auto write_until = [&](const auto& is_over) {
      while (next != rows[r].end() && !is_over(*next)) write(writer, track, *next++);
    };
    for (const Slice& span : workgroup.spans) {
      write_until([&](const Slice& slice) { return slice.begin >= span.begin; });
      const bool empty = next == rows[r].end() || next->end > span.end;
      if (empty && r > 0) continue;
      writer.begin(track, label, span.begin, span.end);
      write_until([&](const Slice& slice) { return slice.end > span.end; });
      writer.end(track, span.begin, span.end);
    }
    write_until([](const Slice&) { return false; });
  }
}

void PerfettoTrace::State::write_process(PerfettoWriter& writer, std::uint64_t parent,
                                         const Process& process) const {
  const auto write_workgroups = [&](std::uint64_t above, int stream) {
    for (const auto& [number, workgroup] : process.workgroups)
      if (workgroup.stream == stream)
        write_workgroup(writer, above, fmt::format("workgroup {}", number), workgroup);
  };
  for (const auto& [number, slices] : process.streams) {
    const std::uint64_t track = writer.track(parent, fmt::format("stream {}", number));
    for (const Slice& slice : slices) write(writer, track, slice);
    write_workgroups(track, number);
  }
  write_workgroups(parent, -1);
  for (const auto& [key, slices] : process.tracks) write_rows(writer, parent, key.name, slices);
}

PerfettoTrace::PerfettoTrace(const machine::Machine& machine, Time lines_begin, Time lines_end)
    : state_(std::make_unique<State>()) {
  state_->lines_begin = lines_begin;
  state_->lines_end = lines_end;
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    state_->processes.push_back(
        {.name = fmt::format("rank {} ({})", rank, machine.model(rank).name),
         .streams = {},
         .workgroups = {},
         .tracks = {}});
  }
  state_->processes.emplace_back().name = "fabric";
  for (const machine::Link& link : machine.links) {
    const auto name = [&](machine::NodeId node) -> const std::string& {
      return machine.nodes[index(node)].name;
    };
    state_->links.push_back(
        fmt::format("{} to {} lane {}", name(link.from), name(link.to), link.lane));
  }
}

PerfettoTrace::~PerfettoTrace() = default;

void PerfettoTrace::stream(int rank, int stream, std::string_view name, Time begin, Time end) {
  state_->add(state_->process_of(rank).streams[stream], name, begin, end);
}

void PerfettoTrace::workgroup(int rank, int stream, int workgroup, Time begin, Time end) {
  Process& process = state_->process_of(rank);
  process.streams[stream];  // it stands above
  Workgroup& group = process.workgroups[workgroup];
  group.stream = stream;
  state_->add(group.spans, "workgroup", begin, end);
}

void PerfettoTrace::operation(int rank, int workgroup, std::string_view name, Time begin, Time end,
                              const sim::FlowEnds& flow) {
  state_->add(state_->process_of(rank).workgroups[workgroup].operations, name, begin, end, flow);
}

void PerfettoTrace::link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) {
  state_->histories[link].add(begin, end, wire_bytes, queue);
  if (!wants_requests(begin)) return;
  Process& fabric = state_->processes.back();
  const std::string& name = state_->links.at(index(link));
  state_->add(fabric.tracks[{.kind = TrackKind::link, .number = link, .name = name}],
              fmt::format("{} B", wire_bytes), begin, end);
}

void PerfettoTrace::engine(int rank, std::string_view engine, std::string_view name, Time begin,
                           Time end, const sim::FlowEnds& flow) {
  TrackKey key{.kind = TrackKind::engine, .number = 0, .name = std::string(engine)};
  state_->add(state_->process_of(rank).tracks[std::move(key)], name, begin, end, flow);
}

void PerfettoTrace::request(int rank, std::string_view resource, std::string_view name, Time begin,
                            Time end) {
  TrackKey key{.kind = TrackKind::resource, .number = 0, .name = std::string(resource)};
  state_->add(state_->process_of(rank).tracks[std::move(key)], name, begin, end);
}

bool PerfettoTrace::wants_requests(Time at) const {
  return state_->lines_begin <= at && at < state_->lines_end;
}

std::string PerfettoTrace::serialize() const {
  state_->sort();
  state_->number_flows();
  PerfettoWriter writer;
  std::vector<std::uint64_t> tracks;
  for (const Process& process : state_->processes)
    tracks.push_back(writer.process(static_cast<int>(tracks.size()), process.name));
  for (std::size_t i = 0; i < tracks.size(); ++i)
    state_->write_process(writer, tracks[i], state_->processes[i]);
  Time width{};
  for (const auto& [link, history] : state_->histories) width = std::max(width, history.width());
  for (const auto& [link, history] : state_->histories) {
    LinkHistory widened = history;
    widened.widen(width);
    write_history(writer, tracks.back(), state_->links.at(index(link)), widened);
  }
  return writer.finish();
}

}  // namespace hemiola::report
