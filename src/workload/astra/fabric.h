// The network of the ASTRA-sim model: what a message takes from one NPU to another.
//
// Unaware: latency x links + bytes / bandwidth. Aware, of one dimension: a message crosses link by
// link, whole; a link takes the next one when the last byte of the one before has left, in the
// order in which they came.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "workload/astra/calendar.h"
#include "workload/astra/configuration.h"

namespace hemiola::workload::astra {

/// Time of `bytes` over `links` links without anybody else, rounded down to whole nanoseconds.
std::int64_t unloaded_ns(const AstraNetwork::Dimension& dimension, std::int64_t links,
                         std::int64_t bytes);

class Fabric {
 public:
  /// Folded: NPU 0 stands for all of them. What it sends is what another one sends to it, and links
  /// are those that it shares with nobody but its images.
  Fabric(const AstraConfiguration& configuration, bool folded, Calendar& calendar);

  /// `arrival` is entered when all of it is there, or given by hop().
  void send(std::int32_t from, std::int32_t to, std::int64_t bytes, Event arrival);
  /// Of an EventKind::hop: the message goes on, or it is there.
  std::optional<Event> hop(std::uint32_t way);
  void link_free(std::uint32_t link);

  /// A message has waited for a link.
  bool has_waited() const { return has_waited_; }
  std::int64_t messages() const { return messages_; }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Way {
    std::int32_t at = 0, to = 0;
    std::int32_t links_left = 0;
    std::int32_t step = 0;  ///< on a ring: 1 or -1
    std::int64_t bytes = 0;
    Event arrival;
    std::uint32_t next = kNone;  ///< that waits for the same link
  };
  struct Link {
    bool busy = false;
    std::int64_t free_at = 0;
    std::uint32_t first = kNone, last = kNone;  ///< that wait
  };

  std::int64_t unaware_ns(std::int32_t from, std::int32_t to, std::int64_t bytes) const;
  std::uint32_t link_of(const Way& way) const;
  void ask(std::uint32_t way);
  void cross(std::uint32_t link, std::uint32_t way);

  const AstraNetwork& network_;
  bool aware_, folded_;
  Calendar& calendar_;
  std::vector<Link> links_;
  Pool<Way> ways_;
  bool has_waited_ = false;
  std::int64_t messages_ = 0;
};

}  // namespace hemiola::workload::astra
