#include "verify/plans/order.h"

#include <algorithm>

namespace hemiola::verify {

bool Order::knows(std::int32_t who, Event event, std::int32_t at) const {
  const Actor& actor = actors_[index(who)];
  if (event.actor >= streams_)  // a stream may have learned it later
    return (at == INT32_MAX || who >= streams_) && actor.tiles.contains(event.actor);
  if (actor.known.empty()) {  // a tile, or nothing was learned yet
    return std::ranges::any_of(actor.facts, [&](const Fact& fact) {
      return fact.event.actor == event.actor && fact.event.number >= event.number;
    });
  }
  const Known& known = actor.known[index(event.actor)];
  return known.below > event.number && known.at <= at;
}

bool Order::note(Event now, Event before) {
  Actor& actor = actors_[index(now.actor)];
  if (now.actor == before.actor || knows(now.actor, before)) return false;
  if (before.actor >= streams_) {
    actor.tiles.insert(before.actor);
  } else if (now.actor < streams_) {
    if (actor.known.empty()) actor.known.resize(index(streams_));
    actor.known[index(before.actor)] = {before.number + 1, now.number};
  }
  return true;
}

void Order::learn(Event now, Event before) {
  if (note(now, before)) actors_[index(now.actor)].facts.push_back({now.number, before});
}

bool Order::happens_before(Event before, Event now) {
  if (before.actor == now.actor) return before.number <= now.number;
  if (knows(now.actor, before)) return true;
  if (!search(before, now)) return false;
  note(now, before);  // no fact: it follows from those that the search went through
  return true;
}

bool Order::search(Event before, Event now) {
  ++searches_;
  frontier_.assign(1, now);
  const auto is_after = [&](Event reached) {
    return (reached.actor == before.actor && reached.number >= before.number) ||
           knows(reached.actor, before, reached.number);
  };
  if (is_after(now)) return true;
  while (!frontier_.empty()) {
    const Event reached = frontier_.back();
    frontier_.pop_back();
    Actor& actor = actors_[index(reached.actor)];
    if (actor.search != searches_) {
      actor.search = searches_;
      actor.explored = 0;
    }
    for (; actor.explored < actor.facts.size(); ++actor.explored) {
      const Fact& fact = actor.facts[actor.explored];
      if (fact.at > reached.number) break;
      // Looked at before anything behind it is: a launch may have thousands of tiles in its past.
      if (is_after(fact.event)) return true;
      frontier_.push_back(fact.event);
    }
  }
  return false;
}

}  // namespace hemiola::verify
