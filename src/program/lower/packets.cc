// Data as packets: flags travel with the data, so their readers need no signal.
#include <numeric>
#include <set>

#include "core/index.h"
#include "program/lower/flow.h"

namespace hemiola::program::general {
namespace {

/// A destination of a movement.
using WriteOfPiece = std::pair<MovementId, std::size_t>;

class Packer {
 public:
  Packer(const plan::Plan& plan, const LowerOptions& options, Movements& movements)
      : plan_(plan),
        movements_(movements),
        readings_(flow_of(plan, movements).readings),
        // A place begins where a packet, or an LL128 line, does.
        round_((options.protocol == Protocol::ll128 ? 120 : 16) /
               std::gcd<std::int64_t>(options.alignment > 0 ? options.alignment : 16,
                                      options.protocol == Protocol::ll128 ? 120 : 16)) {}

  Packed pack() {
    find_candidates();
    while (drop_mixed()) {
    }
    place_packets();
    rewrite_sources();
    return std::move(packed_);
  }

 private:
  void find_candidates() {
    const std::vector<bool> observed = observed_tensors(plan_);
    for (const MovementId& id : in_order(movements_)) {
      const Movement& movement = at(movements_, id);
      for (std::size_t d = 0; d < movement.destinations.size(); ++d) {
        const Place& place = movement.destinations[d];
        const bool staged = d == 0 && movement.staged;
        if (place.group < 0 && !staged && !observed[index(place.area.tensor)])
          candidates_.insert({id, d});
      }
    }
    for (const Reading& reading : readings_) {
      const Place& place = at(movements_, reading.reader).sources[reading.source];
      const WriteOfPiece write{reading.writer, reading.destination};
      const bool polls = place.group < 0 && place.rank == reading.reader.rank;
      const bool waits = reading.reader.rank != reading.writer.rank ||
                         reading.reader.stream != reading.writer.stream;
      if (!polls || !waits) candidates_.erase(write);
    }
    std::set<WriteOfPiece> read;  // what nobody reads needs no flags
    for (const Reading& reading : readings_) {
      const WriteOfPiece write{reading.writer, reading.destination};
      if (candidates_.contains(write)) read.insert(write);
    }
    candidates_ = std::move(read);
  }

  /// A source is packets altogether or not at all.
  bool drop_mixed() {
    std::set<std::pair<MovementId, std::size_t>> plain;
    for (const Reading& reading : readings_)
      if (!candidates_.contains({reading.writer, reading.destination}))
        plain.insert({reading.reader, reading.source});
    const std::size_t before = candidates_.size();
    for (const Reading& reading : readings_)
      if (plain.contains({reading.reader, reading.source}))
        candidates_.erase({reading.writer, reading.destination});
    return candidates_.size() < before;
  }

  void place_packets() {
    packed_.units.assign(index(plan_.ranks), 0);
    for (const auto& [id, d] : candidates_) {
      Place& place = at(movements_, id).destinations[d];
      const std::int64_t units = place.units();
      std::int64_t& used = packed_.units[index(place.rank)];
      begin_[{id, d}] = used;
      put(place, {{used, units}});
      used += (units + round_ - 1) / round_ * round_;
    }
  }

  void rewrite_sources() {
    std::map<std::pair<MovementId, std::size_t>, std::map<std::int64_t, plan::Segment>> parts;
    for (const Reading& reading : readings_) {
      const auto begin = begin_.find({reading.writer, reading.destination});
      if (begin == begin_.end()) continue;
      packed_.readings.push_back(reading);
      parts[{reading.reader, reading.source}][reading.at] = {begin->second + reading.offset,
                                                             reading.count};
    }
    for (const auto& [source, by_place] : parts) {
      std::vector<plan::Segment> segments;
      for (const auto& [first, segment] : by_place)
        if (!segments.empty() && segments.back().offset + segments.back().count == segment.offset)
          segments.back().count += segment.count;
        else
          segments.push_back(segment);
      put(at(movements_, source.first).sources[source.second], segments);
    }
  }

  void put(Place& place, const std::vector<plan::Segment>& segments) const {
    place.packets = true;
    place.area = {static_cast<std::int32_t>(plan_.tensors.size()), {}};
    place.rows.clear();
    for (const plan::Segment& segment : segments) {
      place.area.rects.push_back({{segment.offset}, {segment.offset + segment.count}});
      append(place.rows, {{segment.offset}, {segment.count}, segment.count});
    }
  }

  const plan::Plan& plan_;
  Movements& movements_;
  std::vector<Reading> readings_;
  std::int64_t round_;  // units
  std::set<WriteOfPiece> candidates_;
  std::map<WriteOfPiece, std::int64_t> begin_;
  Packed packed_;
};

}  // namespace

Packed pack(const plan::Plan& plan, const LowerOptions& options, Movements& movements) {
  return Packer(plan, options, movements).pack();
}

}  // namespace hemiola::program::general
