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
#include <utility>

#include "perfetto.pb.h"
#include "report/link_history.h"
#include "report/report.h"

namespace hemiola::report {
namespace {

/// Inside a process, tracks stand in this order, then by number, then by name.
enum class TrackKind : std::uint8_t { workgroup, engine, resource, link };

/// Process number `ranks` is the fabric.
struct TrackKey {
  int process = 0;
  TrackKind kind = TrackKind::workgroup;
  int number = 0;
  std::string name;
  auto operator<=>(const TrackKey&) const = default;
};

struct Slice {
  Time begin{};
  Time end{};
  std::uint64_t name = 0;  ///< of PerfettoTrace::State::names, or as interned in the trace
};

constexpr std::uint64_t kBeginAnnotation = 1;
constexpr std::uint64_t kDurationAnnotation = 2;
constexpr std::uint32_t kSequence = 1;

std::int64_t floor_ns(Time time) {
  return time.fs / 1'000'000;
}

/// Deals overlapping slices to lanes: each goes to the first lane that is free when it begins.
/// Returns the lane of each slice; `slices` must be sorted by begin.
std::vector<std::size_t> deal_to_lanes(const std::vector<Slice>& slices) {
  using Busy = std::pair<Time, std::size_t>;
  std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> idle;
  std::size_t lanes = 0;
  std::vector<std::size_t> lane_of;
  lane_of.reserve(slices.size());
  for (const Slice& slice : slices) {
    for (; !busy.empty() && busy.top().first <= slice.begin; busy.pop()) {
      idle.push(busy.top().second);
    }
    std::size_t lane = lanes;
    if (idle.empty()) {
      ++lanes;
    } else {
      lane = idle.top();
      idle.pop();
    }
    lane_of.push_back(lane);
    busy.emplace(slice.end, lane);
  }
  return lane_of;
}

/// Writes descriptors at once and keeps events until all are known, because they are sorted by
/// time.
class Writer {
 public:
  /// `names[i]` is interned as i + 1.
  explicit Writer(const std::vector<std::string>& names) {
    perfetto::TracePacket* packet = start(perfetto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED);
    perfetto::InternedData* data = packet->mutable_interned_data();
    for (const std::string& name : names) {
      perfetto::EventName* entry = data->add_event_names();
      entry->set_iid(static_cast<std::uint64_t>(data->event_names_size()));
      entry->set_name(name);
    }
    for (const auto& [id, name] :
         {std::pair(kBeginAnnotation, "begin_fs"), std::pair(kDurationAnnotation, "duration_fs")}) {
      perfetto::DebugAnnotationName* entry = data->add_debug_annotation_names();
      entry->set_iid(id);
      entry->set_name(name);
    }
    flush();
  }

  std::uint64_t process(int number, const std::string& name) {
    perfetto::TrackDescriptor* track = descriptor();
    track->mutable_process()->set_pid(number + 1);  // 0 is the idle task
    track->mutable_process()->set_process_name(name);
    track->set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
    return flush();
  }
  /// Tracks of one parent stand in the order of these calls. With a unit it is a counter.
  std::uint64_t track(std::uint64_t parent, const std::string& name, const char* unit = nullptr) {
    perfetto::TrackDescriptor* track = descriptor();
    track->set_parent_uuid(parent);
    track->set_name(name);
    track->set_sibling_order_rank(static_cast<std::int32_t>(last_uuid_));
    if (unit != nullptr) track->mutable_counter()->set_unit_name(unit);
    return flush();
  }

  void slice(std::uint64_t track, const Slice& slice) {
    const std::int64_t begin = floor_ns(slice.begin);
    events_.push_back({begin, Event::Type::begin, track, slice, 0});
    events_.push_back({std::max(begin, floor_ns(slice.end)), Event::Type::end, track, slice, 0});
  }
  void value(std::uint64_t track, Time at, double value) {
    events_.push_back({floor_ns(at), Event::Type::counter, track, {}, value});
  }

  std::string finish() {
    // Stable: the events of a track were added in its order, so an empty slice stays begin, end.
    std::stable_sort(events_.begin(), events_.end(),
                     [](const Event& a, const Event& b) { return a.ns < b.ns; });
    for (const Event& event : events_) add(event);
    return std::move(bytes_);
  }

 private:
  struct Event {
    enum class Type : std::uint8_t { begin, end, counter };
    std::int64_t ns;
    Type type;
    std::uint64_t track;
    Slice slice;
    double value;
  };

  perfetto::TracePacket* start(std::uint32_t flags) {
    one_packet_.Clear();
    perfetto::TracePacket* packet = one_packet_.add_packet();
    packet->set_trusted_packet_sequence_id(kSequence);
    packet->set_sequence_flags(flags);
    return packet;
  }
  /// Traces of one packet in a row are a trace of all of them, and only one is in memory.
  std::uint64_t flush() {
    one_packet_.AppendToString(&bytes_);
    return last_uuid_;
  }

  perfetto::TrackDescriptor* descriptor() {
    perfetto::TrackDescriptor* track =
        start(perfetto::TracePacket::SEQ_UNSPECIFIED)->mutable_track_descriptor();
    track->set_uuid(++last_uuid_);
    return track;
  }

  static void annotate(perfetto::TrackEvent* event, std::uint64_t name, std::int64_t value) {
    perfetto::DebugAnnotation* annotation = event->add_debug_annotations();
    annotation->set_name_iid(name);
    annotation->set_int_value(value);
  }

  void add(const Event& event) {
    perfetto::TracePacket* packet = start(perfetto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
    packet->set_timestamp(static_cast<std::uint64_t>(event.ns));
    perfetto::TrackEvent* out = packet->mutable_track_event();
    out->set_track_uuid(event.track);
    switch (event.type) {
      case Event::Type::begin:
        out->set_type(perfetto::TrackEvent::TYPE_SLICE_BEGIN);
        out->set_name_iid(event.slice.name);
        annotate(out, kBeginAnnotation, event.slice.begin.fs);
        annotate(out, kDurationAnnotation, (event.slice.end - event.slice.begin).fs);
        break;
      case Event::Type::end:
        out->set_type(perfetto::TrackEvent::TYPE_SLICE_END);
        break;
      case Event::Type::counter:
        out->set_type(perfetto::TrackEvent::TYPE_COUNTER);
        out->set_double_counter_value(event.value);
        break;
    }
    flush();
  }

  perfetto::Trace one_packet_;
  std::string bytes_;
  std::vector<Event> events_;
  std::uint64_t last_uuid_ = 0;
};

void write_slices(Writer& writer, std::uint64_t parent, const std::string& name,
                  std::vector<Slice> slices) {
  std::sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  const std::vector<std::size_t> lane_of = deal_to_lanes(slices);
  // Lanes carry the same name: the viewer shows siblings of one name as rows of one track.
  std::vector<std::uint64_t> lanes;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    while (lanes.size() <= lane_of[i]) lanes.push_back(writer.track(parent, name));
    writer.slice(lanes[lane_of[i]], slices[i]);
  }
}

/// Two counters of one link: a value where it changes, and zero at the end.
void write_history(Writer& writer, std::uint64_t parent, const std::string& name,
                   const LinkHistory& history) {
  const std::uint64_t use = writer.track(parent, name, "GB/s");
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
    if (bins[i].queue != last_queue) {
      writer.value(queue, begin, static_cast<double>(bins[i].queue));
    }
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
  std::vector<std::string> processes;  ///< ranks, then the fabric
  std::vector<std::string> links;
  std::map<std::string, std::uint64_t, std::less<>> names;  ///< interned, from 1
  std::map<TrackKey, std::vector<Slice>> tracks;
  std::map<int, LinkHistory> histories;  ///< by link

  std::uint64_t intern(std::string_view name) {
    const auto found = names.find(name);
    if (found != names.end()) return found->second;
    return names.emplace(std::string(name), names.size() + 1).first->second;
  }
  int fabric() const { return static_cast<int>(processes.size()) - 1; }
  /// What belongs to no rank (a switch) belongs to the fabric.
  int process_of(int rank) const { return rank >= 0 && rank < fabric() ? rank : fabric(); }
  void add(TrackKey key, std::string_view name, Time begin, Time end) {
    assert(0 <= begin.fs && begin <= end);
    tracks[std::move(key)].push_back({begin, end, intern(name)});
  }
};

PerfettoTrace::PerfettoTrace(const machine::Machine& machine, Time lines_begin, Time lines_end)
    : state_(std::make_unique<State>()) {
  state_->lines_begin = lines_begin;
  state_->lines_end = lines_end;
  for (int rank = 0; rank < machine.ranks(); ++rank) {
    state_->processes.push_back(fmt::format("rank {} ({})", rank, machine.model(rank).name));
  }
  state_->processes.push_back("fabric");
  for (const machine::Link& link : machine.links) {
    const auto name = [&](machine::NodeId node) -> const std::string& {
      return machine.nodes[static_cast<std::size_t>(node)].name;
    };
    state_->links.push_back(
        fmt::format("{} to {} lane {}", name(link.from), name(link.to), link.lane));
  }
}

PerfettoTrace::~PerfettoTrace() = default;

void PerfettoTrace::operation(int rank, int workgroup, std::string_view name, Time begin,
                              Time end) {
  state_->add({state_->process_of(rank), TrackKind::workgroup, workgroup,
               fmt::format("workgroup {}", workgroup)},
              name, begin, end);
}

void PerfettoTrace::link(int link, std::int64_t wire_bytes, int queue, Time begin, Time end) {
  state_->histories[link].add(begin, end, wire_bytes, queue);
  if (!wants_requests(begin)) return;
  state_->add(
      {state_->fabric(), TrackKind::link, link, state_->links.at(static_cast<std::size_t>(link))},
      fmt::format("{} B", wire_bytes), begin, end);
}

void PerfettoTrace::engine(int rank, std::string_view engine, std::string_view name, Time begin,
                           Time end) {
  state_->add({state_->process_of(rank), TrackKind::engine, 0, std::string(engine)}, name, begin,
              end);
}

void PerfettoTrace::request(int rank, std::string_view resource, std::string_view name, Time begin,
                            Time end) {
  state_->add({state_->process_of(rank), TrackKind::resource, 0, std::string(resource)}, name,
              begin, end);
}

bool PerfettoTrace::wants_requests(Time at) const {
  return state_->lines_begin <= at && at < state_->lines_end;
}

std::string PerfettoTrace::serialize() const {
  // Numbers in the order of the names, so that the trace does not depend on the order of the calls.
  std::vector<std::string> names;
  std::vector<std::uint64_t> number_of(state_->names.size() + 1);
  for (const auto& [name, id] : state_->names) {
    names.push_back(name);
    number_of[id] = names.size();
  }
  Writer writer(names);
  std::vector<std::uint64_t> processes;
  for (std::size_t i = 0; i < state_->processes.size(); ++i) {
    processes.push_back(writer.process(static_cast<int>(i), state_->processes[i]));
  }
  for (const auto& [key, recorded] : state_->tracks) {
    std::vector<Slice> slices = recorded;
    for (Slice& slice : slices) slice.name = number_of[slice.name];
    write_slices(writer, processes[static_cast<std::size_t>(key.process)], key.name,
                 std::move(slices));
  }
  Time width{};
  for (const auto& [link, history] : state_->histories) width = std::max(width, history.width());
  for (const auto& [link, history] : state_->histories) {
    LinkHistory widened = history;
    widened.widen(width);
    write_history(writer, processes.back(), state_->links.at(static_cast<std::size_t>(link)),
                  widened);
  }
  return writer.finish();
}

}  // namespace hemiola::report
