#include "workload/astra/fabric.h"

#include <algorithm>

#include "core/index.h"

namespace hemiola::workload::astra {
namespace {

using Topology = AstraNetwork::Topology;

double bytes_per_ns(const AstraNetwork::Dimension& dimension) {
  return dimension.bandwidth * 1073741824.0 / 1e9;
}

/// Links of the shorter way around a ring of `places`.
std::int32_t around(std::int32_t distance, std::int32_t places) {
  return std::min(distance, places - distance);
}

std::int32_t links_between(const AstraNetwork::Dimension& dimension, std::int32_t from,
                           std::int32_t to) {
  switch (dimension.topology) {
    case Topology::ring:
      return around((to - from + dimension.npus) % dimension.npus, dimension.npus);
    case Topology::fully_connected:
      return 1;
    case Topology::switched:
      return 2;
  }
  return 0;
}

}  // namespace

std::int64_t unloaded_ns(const AstraNetwork::Dimension& dimension, std::int64_t links,
                         std::int64_t bytes) {
  // In this order of operations, so that the same nanoseconds are cut off.
  const double on_links = static_cast<double>(links) * dimension.latency_ns;
  return static_cast<std::int64_t>(on_links + static_cast<double>(bytes) / bytes_per_ns(dimension));
}

Fabric::Fabric(const AstraConfiguration& configuration, bool folded, Calendar& calendar)
    : network_(configuration.network),
      aware_(configuration.aware),
      folded_(folded),
      calendar_(calendar) {
  if (!aware_) return;
  const AstraNetwork::Dimension& only = network_.dimensions.front();
  const std::size_t npus = index(only.npus);
  const std::size_t each = only.topology == Topology::fully_connected ? npus : 2;
  links_.resize(folded_ ? each : npus * each);
}

std::int64_t Fabric::unaware_ns(std::int32_t from, std::int32_t to, std::int64_t bytes) const {
  // Only the first dimension in which they differ counts.
  for (const AstraNetwork::Dimension& dimension : network_.dimensions) {
    const std::int32_t here = from % dimension.npus, there = to % dimension.npus;
    if (here != there) return unloaded_ns(dimension, links_between(dimension, here, there), bytes);
    from /= dimension.npus;
    to /= dimension.npus;
  }
  return 0;
}

void Fabric::send(std::int32_t from, std::int32_t to, std::int64_t bytes, Event arrival) {
  ++messages_;
  if (!aware_) return calendar_.enter(calendar_.now() + unaware_ns(from, to, bytes), arrival);
  const AstraNetwork::Dimension& only = network_.dimensions.front();
  const std::uint32_t way = ways_.take();
  const std::int32_t distance = (to - from + only.npus) % only.npus;
  ways_[way] = {.at = from,
                .to = to,
                .links_left = links_between(only, from, to),
                .step = 2 * distance <= only.npus ? 1 : -1,
                .bytes = bytes,
                .arrival = arrival};
  ask(way);
}

std::uint32_t Fabric::link_of(const Way& way) const {
  const std::int32_t at = folded_ ? 0 : way.at;
  switch (network_.dimensions.front().topology) {
    case Topology::ring:
      return static_cast<std::uint32_t>(2 * at + (way.step < 0 ? 1 : 0));
    case Topology::fully_connected:
      return static_cast<std::uint32_t>(at * network_.dimensions.front().npus + way.to);
    case Topology::switched:  // each NPU has one to the switch and one from it
      return static_cast<std::uint32_t>(way.links_left == 2 ? 2 * at
                                                            : 2 * (folded_ ? 0 : way.to) + 1);
  }
  return 0;
}

void Fabric::ask(std::uint32_t way) {
  const std::uint32_t number = link_of(ways_[way]);
  Link& link = links_[number];
  if (!link.busy) return cross(number, way);
  has_waited_ = has_waited_ || link.free_at > calendar_.now() || link.first != kNone;
  ways_[way].next = kNone;
  if (link.first == kNone)
    link.first = way;
  else
    ways_[link.last].next = way;
  link.last = way;
}

void Fabric::cross(std::uint32_t number, std::uint32_t way) {
  const AstraNetwork::Dimension& only = network_.dimensions.front();
  Link& link = links_[number];
  link.busy = true;
  link.free_at = calendar_.now() + static_cast<std::int64_t>(static_cast<double>(ways_[way].bytes) /
                                                             bytes_per_ns(only));
  calendar_.enter(calendar_.now() + unloaded_ns(only, 1, ways_[way].bytes), {EventKind::hop, way});
  calendar_.enter(link.free_at, {EventKind::link_free, number});
}

std::optional<Event> Fabric::hop(std::uint32_t number) {
  Way& way = ways_[number];
  way.at = network_.dimensions.front().topology == Topology::ring
               ? (way.at + way.step + network_.dimensions.front().npus) %
                     network_.dimensions.front().npus
               : way.to;
  if (--way.links_left > 0) {
    ask(number);
    return std::nullopt;
  }
  ways_.give_back(number);
  return way.arrival;
}

void Fabric::link_free(std::uint32_t number) {
  Link& link = links_[number];
  link.busy = false;
  if (link.first == kNone) return;
  const std::uint32_t way = link.first;
  link.first = ways_[way].next;
  cross(number, way);
}

}  // namespace hemiola::workload::astra
