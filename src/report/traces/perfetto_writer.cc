#include "report/traces/perfetto_writer.h"

#include <algorithm>
#include <utility>

namespace hemiola::report {
namespace {

constexpr std::uint64_t kBeginAnnotation = 1;
constexpr std::uint64_t kDurationAnnotation = 2;
constexpr std::uint32_t kSequence = 1;

std::int64_t floor_ns(Time time) {
  return time.fs / 1'000'000;
}

void annotate(perfetto::TrackEvent* event, std::uint64_t name, std::int64_t value) {
  perfetto::DebugAnnotation* annotation = event->add_debug_annotations();
  annotation->set_name_iid(name);
  annotation->set_int_value(value);
}

}  // namespace

perfetto::TracePacket* PerfettoWriter::start(std::uint32_t flags) {
  one_packet_.Clear();
  perfetto::TracePacket* packet = one_packet_.add_packet();
  packet->set_trusted_packet_sequence_id(kSequence);
  packet->set_sequence_flags(flags);
  return packet;
}

// Traces of one packet in a row are a trace of all of them, and only one is in memory.
std::uint64_t PerfettoWriter::flush() {
  one_packet_.AppendToString(&bytes_);
  return last_uuid_;
}

perfetto::TrackDescriptor* PerfettoWriter::descriptor() {
  perfetto::TrackDescriptor* track =
      start(perfetto::TracePacket::SEQ_UNSPECIFIED)->mutable_track_descriptor();
  track->set_uuid(++last_uuid_);
  track->set_child_ordering(perfetto::TrackDescriptor::EXPLICIT);
  return track;
}

std::uint64_t PerfettoWriter::process(int number, const std::string& name) {
  perfetto::TrackDescriptor* track = descriptor();
  track->mutable_process()->set_pid(number + 1);  // 0 is the idle task
  track->mutable_process()->set_process_name(name);
  return flush();
}

std::uint64_t PerfettoWriter::track(std::uint64_t parent, const std::string& name,
                                    const char* unit) {
  perfetto::TrackDescriptor* track = descriptor();
  track->set_parent_uuid(parent);
  track->set_name(name);
  track->set_sibling_order_rank(static_cast<std::int32_t>(last_uuid_));
  if (unit != nullptr) track->mutable_counter()->set_unit_name(unit);
  return flush();
}

std::uint64_t PerfettoWriter::intern(const std::string& name) {
  return names_.emplace(name, names_.size() + 1).first->second;
}

std::size_t PerfettoWriter::keep(Flows flows) {
  if (flows.leaving.empty() && flows.arriving.empty()) return 0;
  flows_.push_back(std::move(flows));
  return flows_.size() - 1;
}

void PerfettoWriter::begin(std::uint64_t track, const std::string& name, Time begin, Time end,
                           Flows flows) {
  events_.push_back({.at = begin,
                     .type = Type::begin,
                     .ns = floor_ns(begin),
                     .track = track,
                     .name = intern(name),
                     .length = end - begin,
                     .flows = keep(std::move(flows))});
}

void PerfettoWriter::end(std::uint64_t track, Time begin, Time end) {
  events_.push_back({.at = std::max(begin, end),
                     .type = Type::end,
                     .ns = std::max(floor_ns(begin), floor_ns(end)),
                     .track = track});
}

void PerfettoWriter::instant(std::uint64_t track, const std::string& name, Time at,
                             std::uint64_t flow) {
  events_.push_back({.at = at,
                     .type = Type::instant,
                     .ns = floor_ns(at),
                     .track = track,
                     .name = intern(name),
                     .flows = keep({.arriving = {flow}})});
}

void PerfettoWriter::value(std::uint64_t track, Time at, double value) {
  events_.push_back(
      {.at = at, .type = Type::counter, .ns = floor_ns(at), .track = track, .value = value});
}

void PerfettoWriter::write_names() {
  perfetto::InternedData* data =
      start(perfetto::TracePacket::SEQ_INCREMENTAL_STATE_CLEARED)->mutable_interned_data();
  for (const auto& [name, id] : names_) {
    perfetto::EventName* entry = data->add_event_names();
    entry->set_iid(id);
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

void PerfettoWriter::write(const Event& event) {
  perfetto::TracePacket* packet = start(perfetto::TracePacket::SEQ_NEEDS_INCREMENTAL_STATE);
  packet->set_timestamp(static_cast<std::uint64_t>(event.ns));
  perfetto::TrackEvent* out = packet->mutable_track_event();
  out->set_track_uuid(event.track);
  if (event.name != 0) out->set_name_iid(event.name);
  for (const std::uint64_t id : flows_[event.flows].leaving) out->add_flow_ids(id);
  for (const std::uint64_t id : flows_[event.flows].arriving) out->add_terminating_flow_ids(id);
  switch (event.type) {
    case Type::begin:
      out->set_type(perfetto::TrackEvent::TYPE_SLICE_BEGIN);
      annotate(out, kBeginAnnotation, event.at.fs);
      annotate(out, kDurationAnnotation, event.length.fs);
      break;
    case Type::end:
      out->set_type(perfetto::TrackEvent::TYPE_SLICE_END);
      break;
    case Type::instant:
      out->set_type(perfetto::TrackEvent::TYPE_INSTANT);
      annotate(out, kBeginAnnotation, event.at.fs);
      break;
    case Type::counter:
      out->set_type(perfetto::TrackEvent::TYPE_COUNTER);
      out->set_double_counter_value(event.value);
      break;
  }
  flush();
}

std::string PerfettoWriter::finish() {
  std::ranges::stable_sort(events_, {}, &Event::at);
  write_names();
  for (const Event& event : events_) write(event);
  return std::move(bytes_);
}

}  // namespace hemiola::report
