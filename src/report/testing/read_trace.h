// Reads a trace back and checks what a viewer relies on (tests only).
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "perfetto.pb.h"
#include "report/report.h"

namespace hemiola::report {

using perfetto::TrackDescriptor;
using perfetto::TrackEvent;

struct ReadSlice {
  std::string track, name;
  std::uint64_t begin_ns = 0, end_ns = 0;
  std::int64_t begin_fs = 0, duration_fs = 0;
  std::uint64_t uuid = 0;
  int inside = -1;  ///< the slice around it
  std::int64_t end_fs() const { return begin_fs + duration_fs; }
};
/// An arrow, from one slice to another.
struct ReadFlow {
  int from = -1, to = -1;
};
struct ReadTrace {
  std::map<std::uint64_t, TrackDescriptor> tracks;
  std::vector<ReadSlice> slices;  ///< in the order of their begins
  std::map<std::uint64_t, ReadFlow> flows;
  int instants = 0;
  std::map<std::string, std::vector<std::pair<std::uint64_t, double>>> counters;

  const TrackDescriptor& parent(std::uint64_t uuid) const {
    return tracks.at(tracks.at(uuid).parent_uuid());
  }
  /// The process that a track belongs to.
  const TrackDescriptor& process(std::uint64_t uuid) const {
    const TrackDescriptor* track = &tracks.at(uuid);
    while (!track->has_process()) track = &tracks.at(track->parent_uuid());
    return *track;
  }
};

/// Parses the bytes back and checks what a viewer relies on: every track is declared with a
/// declared parent and a name of its own, names of slices are interned before use, time never goes
/// back, begins and ends pair up, slices and moments are inside those around them, and every flow
/// begins once, and later ends once.
class Reader {
 public:
  explicit Reader(ReadTrace& read) : read_(read) {}

  void all(const std::string& bytes) {
    perfetto::Trace trace;
    ASSERT_TRUE(trace.ParseFromString(bytes));
    for (const perfetto::TracePacket& packet : trace.packet()) {
      ASSERT_NE(packet.trusted_packet_sequence_id(), 0u);
      for (const auto& name : packet.interned_data().event_names())
        names_[name.iid()] = name.name();
      if (packet.has_track_descriptor()) {
        ASSERT_NO_FATAL_FAILURE(track(packet.track_descriptor()));
      }
      if (!packet.has_track_event()) continue;
      ASSERT_GE(packet.timestamp(), last_);
      last_ = packet.timestamp();
      ASSERT_NO_FATAL_FAILURE(event(packet.track_event()));
    }
    for (const auto& [uuid, slices] : open_)
      ASSERT_TRUE(slices.empty()) << "a begin without an end";
    for (const auto& [id, flow] : read_.flows) ASSERT_GE(flow.to, 0) << "a flow without an end";
  }

 private:
  void track(const TrackDescriptor& track) {
    ASSERT_NE(track.uuid(), 0u);
    ASSERT_TRUE(read_.tracks.emplace(track.uuid(), track).second) << "declared twice";
    if (track.has_process()) {
      ASSERT_TRUE(pids_.insert(track.process().pid()).second);
      return;
    }
    ASSERT_TRUE(read_.tracks.count(track.parent_uuid()));
    const std::uint64_t process = read_.process(track.uuid()).uuid();
    ASSERT_TRUE(track_names_.emplace(process, track.name()).second)
        << "two rows are called " << track.name();
  }

  void event(const TrackEvent& event) {
    ASSERT_TRUE(read_.tracks.count(event.track_uuid())) << "not declared: " << event.track_uuid();
    const TrackDescriptor& track = read_.tracks.at(event.track_uuid());
    ASSERT_EQ(track.has_counter(), event.type() == TrackEvent::TYPE_COUNTER);
    std::vector<int>& open = open_[event.track_uuid()];
    switch (event.type()) {
      case TrackEvent::TYPE_COUNTER:
        read_.counters[track.name()].push_back({last_, event.double_counter_value()});
        return;
      case TrackEvent::TYPE_SLICE_BEGIN:
        ASSERT_NO_FATAL_FAILURE(begin(event, track, open));
        break;
      case TrackEvent::TYPE_INSTANT:
        ASSERT_FALSE(open.empty()) << "a moment outside of all slices";
        ASSERT_EQ(event.debug_annotations_size(), 1);
        ASSERT_GE(event.debug_annotations(0).int_value(), slice(open).begin_fs);
        ASSERT_LE(event.debug_annotations(0).int_value(), slice(open).end_fs());
        ++read_.instants;
        break;
      default:
        ASSERT_EQ(event.type(), TrackEvent::TYPE_SLICE_END);
        ASSERT_FALSE(open.empty()) << "an end without a begin";
        slice(open).end_ns = last_;
        open.pop_back();
        return;
    }
    flows(event, open.back());
  }

  void begin(const TrackEvent& event, const TrackDescriptor& track, std::vector<int>& open) {
    ASSERT_TRUE(names_.count(event.name_iid()))
        << "name " << event.name_iid() << " is not interned";
    ASSERT_EQ(event.debug_annotations_size(), 2);
    ReadSlice slice{.track = track.name(),
                    .name = names_.at(event.name_iid()),
                    .begin_ns = last_,
                    .begin_fs = event.debug_annotations(0).int_value(),
                    .duration_fs = event.debug_annotations(1).int_value(),
                    .uuid = event.track_uuid(),
                    .inside = open.empty() ? -1 : open.back()};
    ASSERT_EQ(slice.begin_fs / 1'000'000, static_cast<std::int64_t>(last_));
    if (slice.inside >= 0) {
      const ReadSlice& around = read_.slices[static_cast<std::size_t>(slice.inside)];
      ASSERT_GE(slice.begin_fs, around.begin_fs) << slice.name << " in " << around.name;
      ASSERT_LE(slice.end_fs(), around.end_fs()) << slice.name << " in " << around.name;
    }
    open.push_back(static_cast<int>(read_.slices.size()));
    read_.slices.push_back(std::move(slice));
  }

  void flows(const TrackEvent& event, int at) {
    for (const std::uint64_t id : event.flow_ids())
      ASSERT_TRUE(read_.flows.emplace(id, ReadFlow{.from = at}).second) << "begins twice";
    for (const std::uint64_t id : event.terminating_flow_ids()) {
      const auto found = read_.flows.find(id);
      ASSERT_NE(found, read_.flows.end()) << "a flow ends before it begins";
      ASSERT_EQ(std::exchange(found->second.to, at), -1) << "ends twice";
    }
  }

  ReadSlice& slice(const std::vector<int>& open) {
    return read_.slices[static_cast<std::size_t>(open.back())];
  }

  ReadTrace& read_;
  std::map<std::uint64_t, std::string> names_;
  std::map<std::uint64_t, std::vector<int>> open_;  ///< slices, by track
  std::set<int> pids_;
  std::set<std::pair<std::uint64_t, std::string>> track_names_;  ///< by process
  std::uint64_t last_ = 0;
};

inline ReadTrace checked(const PerfettoTrace& trace) {
  ReadTrace read;
  Reader(read).all(trace.serialize());
  return read;
}

}  // namespace hemiola::report
