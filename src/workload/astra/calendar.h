// Events of the ASTRA-sim model in the order in which ASTRA-sim handles them.
//
// Times are whole nanoseconds. What is entered first for a time is handled first. A rank enters its
// own events as one: all that it has for a time are handled together, in their order, where the
// first of them stands. Who is first on a link depends on this.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workload/astra/pool.h"

namespace hemiola::workload::astra {

enum class EventKind : std::uint8_t {
  of_rank,      ///< the calendar's own: all that a rank has for this time
  message,      ///< of a collective, is there; subject: its instance
  parcel,       ///< of a send, is there; subject: the send
  hop,          ///< a message has crossed a link; subject: its way
  link_free,    ///< subject: the link
  received,     ///< what was there before anybody waited for it; subject: the stream
  taken,        ///< the same, of a send; subject: the rank, detail: its node
  at_endpoint,  ///< endpoint delay over; subject: the stream, detail: 1 + time to reduce, or 0
  reduced,      ///< subject: the stream
  over,         ///< a node; subject: the rank, detail: the node
  memory_free   ///< subject: the remote memory
};

struct Event {
  EventKind kind = EventKind::of_rank;
  std::uint32_t subject = 0;
  std::uint64_t detail = 0;
};

class Calendar {
 public:
  explicit Calendar(std::size_t ranks) : open_(ranks) {}

  std::int64_t now() const { return now_; }
  std::int64_t handled() const { return handled_; }

  /// `time` is not before now().
  void enter(std::int64_t time, Event event) { events_[bucket_of(time)].items.push_back(event); }
  void enter_of_rank(std::uint32_t rank, std::int64_t time, Event event);

  /// The next event; false: there is none.
  bool next(Event& event);

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct List {
    std::vector<Event> items;
    std::size_t next = 0;
  };
  struct Recent {
    std::int64_t time = -1;
    std::uint32_t bucket = kNone;
  };

  std::uint32_t bucket_of(std::int64_t time);
  bool next_bucket();
  static void give_back(Pool<List>& lists, std::uint32_t list);

  std::int64_t now_ = 0;
  std::int64_t handled_ = 0;
  Pool<List> events_;                                          ///< a bucket for each time
  std::unordered_map<std::int64_t, std::uint32_t> buckets_;    ///< by time
  std::vector<Recent> recent_ = std::vector<Recent>(64);       ///< of them, by time modulo 64
  std::vector<std::pair<std::int64_t, std::uint32_t>> times_;  ///< heap, earliest first
  std::uint32_t current_ = kNone;
  Pool<List> of_ranks_;
  std::vector<std::vector<std::pair<std::int64_t, std::uint32_t>>> open_;  ///< by rank: time, list
  std::uint32_t rank_ = 0, list_ = kNone;  ///< whose list is being handled
};

}  // namespace hemiola::workload::astra
