// Packets of a Perfetto trace: tracks, slices that may nest, instants, counters, flows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/time.h"
#include "perfetto.pb.h"

namespace hemiola::report {

/// Arrows from one event to another, by number: those that leave an event, and that arrive at it.
struct Flows {
  std::vector<std::uint64_t> leaving{};
  std::vector<std::uint64_t> arriving{};
};

/// Writes descriptors at once and keeps events until all are known, because they are sorted by
/// time. Events of a track at the same time stay in the order in which they were added.
class PerfettoWriter {
 public:
  /// A track by itself, for what is below it.
  std::uint64_t process(int number, const std::string& name);
  /// Tracks of one parent stand in the order of these calls. With a unit it is a counter.
  std::uint64_t track(std::uint64_t parent, const std::string& name, const char* unit = nullptr);

  /// Slices of a track nest: each begin() has its end().
  void begin(std::uint64_t track, const std::string& name, Time begin, Time end, Flows flows = {});
  void end(std::uint64_t track, Time begin, Time end);
  /// A moment inside a slice, at which a flow arrives.
  void instant(std::uint64_t track, const std::string& name, Time at, std::uint64_t flow);
  void value(std::uint64_t track, Time at, double value);

  /// The whole trace, once.
  std::string finish();

 private:
  enum class Type : std::uint8_t { begin, end, instant, counter };
  struct Event {
    Time at{};
    Type type = Type::begin;
    std::int64_t ns = 0;
    std::uint64_t track = 0;
    std::uint64_t name = 0;
    Time length{};  ///< begin
    double value = 0;
    std::size_t flows = 0;  ///< in flows_; 0: none
  };

  perfetto::TracePacket* start(std::uint32_t flags);
  perfetto::TrackDescriptor* descriptor();
  std::uint64_t flush();
  std::uint64_t intern(const std::string& name);
  std::size_t keep(Flows flows);
  void write_names();
  void write(const Event& event);

  perfetto::Trace one_packet_;
  std::string bytes_;
  std::vector<Event> events_;
  std::vector<Flows> flows_ = std::vector<Flows>(1);
  std::map<std::string, std::uint64_t> names_;  ///< interned, from 1
  std::uint64_t last_uuid_ = 0;
};

}  // namespace hemiola::report
