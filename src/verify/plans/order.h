// What happens before what in a plan, asked pair by pair. Vector clocks of all transfers would take
// memory quadratic in the number of streams; plans need few answers, and most of them are direct.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <vector>

#include "core/index.h"

namespace hemiola::verify {

/// Event `number` of an actor. Actors are streams, whose events follow each other, and tiles and
/// the starts and ends of launches, which have one event, 0.
struct Event {
  std::int32_t actor = -1;  ///< -1: none
  std::int32_t number = 0;
  bool operator==(const Event&) const = default;
};

/// Events are made known in an order in which they can happen: an actor's next event learns what it
/// waits for before it is asked about, and its events come in order.
class Order {
 public:
  /// `tiles`: actors that are no streams.
  Order(std::int32_t streams, std::int32_t tiles)
      : streams_(streams), actors_(index(streams + tiles)) {}

  /// `before` happens before `now`, and with it all that happened before it.
  void learn(Event now, Event before);
  /// Whether `before` happens before `now`. Direct knowledge is looked up; else what is known is
  /// searched backwards, at most once through all of the past, and a found answer is kept.
  bool happens_before(Event before, Event now);

 private:
  struct Fact {
    std::int32_t at = 0;  ///< event of the actor that learned it
    Event event;
  };
  /// The latest that an actor learned of a stream.
  struct Known {
    std::int32_t below = 0;  ///< events below this happened before ...
    std::int32_t at = 0;     ///< ... this event of the actor
  };
  struct Actor {
    std::vector<Fact> facts;                 ///< in order of `at`
    std::vector<Known> known;                ///< by stream; tiles have none
    std::unordered_set<std::int32_t> tiles;  ///< known ones
    std::size_t explored = 0;                ///< facts seen by search `search`
    std::uint32_t search = 0;
  };
  /// Whether the actor knew of `event` at its own event `at`, as far as its latest knowledge tells.
  bool knows(std::int32_t actor, Event event, std::int32_t at = INT32_MAX) const;
  /// Remembers it; true if it is news.
  bool note(Event now, Event before);
  bool search(Event before, Event now);

  std::int32_t streams_;
  std::vector<Actor> actors_;
  std::vector<Event> frontier_;
  std::uint32_t searches_ = 0;
};

}  // namespace hemiola::verify
