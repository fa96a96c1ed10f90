#include "sim/fluid/packets.h"

#include <utility>

namespace hemiola::sim::fluid {
namespace {

using program::Primitive;
using program::Span;

}  // namespace

// FIFOs of like connections are one; other memory is found by its address.
std::uint64_t Packets::space_of(const Span& span) const {
  const std::int32_t tail = run_.program.tail_of(span.buffer);
  if (tail >= 0) return static_cast<std::uint64_t>(run_.fold.semaphore_class({span.rank, tail}));
  return std::uint64_t{1} << 60 | static_cast<std::uint64_t>(span.rank) << 32 |
         static_cast<std::uint32_t>(span.buffer);
}

bool Packets::arrived(std::int32_t number, bool whole, const Moment*& last) {
  const Primitive& primitive = run_.walkers[index(number)].place.present;
  for (const Span& span : primitive.src) {
    if (!program::is_packet(span.access) || span.rank < 0) continue;
    Space& space = spaces_[space_of(span)];
    const auto& ranges = space.by_flag[span.flag];
    std::int64_t reached = span.offset;
    const std::int64_t end = span.offset + program::memory_size(primitive.bytes, span.access);
    auto at = ranges.upper_bound(reached);
    if (at != ranges.begin()) --at;
    for (; at != ranges.end() && at->first <= reached && reached < end; ++at) {
      const Range& packets = at->second;
      if (packets.end <= reached) continue;
      if (whole && packets.last.time < 0) break;
      const Moment& there = whole ? packets.last : packets.first;
      if (last == nullptr || there.time > last->time) last = &there;
      reached = packets.end;
    }
    if (reached >= end) continue;
    space.waiting.push_back(number);
    return false;
  }
  return true;
}

void Packets::announce(int rank, const Primitive& primitive, bool whole, const Moment& issued) {
  for (const Span& span : primitive.dst) {
    if (!program::is_packet(span.access) || span.flag == 0) continue;
    const std::vector<int> one{span.rank};
    const std::vector<int>& targets =
        span.rank < 0 ? run_.program.groups()[index(span.group)] : one;
    for (const int target : targets) {
      Span there = span;
      there.rank = target;
      Space& space = spaces_[space_of(there)];
      Range& packets = space.by_flag[span.flag][span.offset];
      packets.end = span.offset + program::memory_size(primitive.bytes, span.access);
      Moment& arrival = whole ? packets.last : packets.first;
      arrival = issued;
      arrival.add(span.rank < 0 ? run_.ways.group(rank, span.group, false)
                                : run_.ways.store(rank, target));
      if (!whole) packets.last.time = -1;
      // Wavefronts that wait try again, after this agent is through.
      std::vector<std::int32_t> waiting;
      std::swap(waiting, space.waiting);
      for (const std::int32_t agent : waiting)
        run_.events.push(run_.now, EventKind::wake, agent, 1);
      while (space.by_flag.size() > 64) space.by_flag.erase(space.by_flag.begin());
    }
  }
}

}  // namespace hemiola::sim::fluid
