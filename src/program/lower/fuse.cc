// Fusion: what libraries do in one pass over memory (reduce n sources, reduce and pass on, receive
// and pass on) is several transfers in a plan.
#include <algorithm>
#include <set>

#include "core/index.h"
#include "program/lower/flow.h"

namespace hemiola::program::general {
namespace {

bool is_own(const Movement& movement, const Place& place) {
  return place.group < 0 && place.rank == movement.rank;
}

class Fuser {
 public:
  Fuser(const plan::Plan& plan, const LowerOptions& options, Movements& movements)
      : packets_(options.protocol != Protocol::simple),
        movements_(movements),
        observed_(observed_tensors(plan)) {
    for (const Reading& reading : flow_of(plan, movements).readings)
      if (reading.writer.index >= 0)
        readers_[{reading.writer, reading.destination}].insert(reading.reader);
  }

  void fuse() {
    MovementId last;  // that others may be joined to
    each_movement(movements_, [&](const MovementId& id, Movement& movement) {
      movement.level = -1;
      std::vector<Readers> readers;
      for (std::size_t d = 0; d < movement.destinations.size(); ++d)
        readers.push_back(readers_[{id, d}]);
      if (id.index > 0 && join(at(movements_, last), movement, id, readers)) {
        gone_[id] = last;
        return;
      }
      last = id;
      readers_of_last_ = std::move(readers);
    });
    rearrange(movements_, gone_);
  }

 private:
  /// Readers of what a destination of the movement that is being made will hold.
  using Readers = std::set<MovementId>;

  static bool overlaps(const Place& a, const Place& b) {
    const bool same_memory = a.group >= 0 || b.group >= 0 || a.rank == b.rank;
    return same_memory && plan::overlap(a.area, b.area);
  }
  static bool overlaps_any(const Place& place, const std::vector<Place>& others) {
    return std::ranges::any_of(others, [&](const Place& other) { return overlaps(place, other); });
  }

  /// Makes `first` do what `second` does as well, where that is the same and worth it.
  bool join(Movement& first, const Movement& second, const MovementId& id,
            const std::vector<Readers>& readers) {
    if (!second.after.empty() || first.sources.empty() || second.sources.empty()) return false;
    Movement both = first;
    std::vector<Readers> both_readers = readers_of_last_;
    if (!join_value(both, both_readers, second, id, readers)) {
      both = first;
      both_readers = readers_of_last_;
      if (!join_copies(both, both_readers, second, readers)) return false;
    }
    if (!is_possible(both)) return false;
    // What is own comes first: a NIC sends it on.
    for (std::size_t d = 0; d < both.destinations.size(); ++d) {
      if (!is_own(both, both.destinations[d])) continue;
      std::swap(both.destinations[0], both.destinations[d]);
      std::swap(both_readers[0], both_readers[d]);
      break;
    }
    first = std::move(both);
    readers_of_last_ = std::move(both_readers);
    return true;
  }

  /// `second` reads what `both` has just written: it takes the value as it is made.
  bool join_value(Movement& both, std::vector<Readers>& held, const Movement& second,
                  const MovementId& id, const std::vector<Readers>& readers) const {
    std::size_t taken = both.destinations.size();
    std::vector<Place> others;
    for (const Place& source : second.sources) {
      const auto from = std::ranges::find_if(both.destinations, [&](const Place& place) {
        return is_own(both, place) && same(place, source);
      });
      if (from != both.destinations.end() && taken == both.destinations.size())
        taken = index(from - both.destinations.begin());
      else if (overlaps_any(source, both.destinations))
        return false;
      else
        others.push_back(source);
    }
    if (taken == both.destinations.size()) return false;
    const bool reduces = !others.empty();
    if (reduces && both.destinations.size() > 1) return false;  // they do not hold the same
    held[taken].erase(id);
    const Place value = both.destinations[taken];
    const bool overwritten = std::ranges::any_of(
        second.destinations, [&](const Place& place) { return same(place, value); });
    const bool dead = held[taken].empty() && (overwritten || !observed_[index(value.area.tensor)]);
    if (dead) {
      both.destinations.erase(both.destinations.begin() + static_cast<std::ptrdiff_t>(taken));
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(taken));
      both.staged = both.staged && taken != 0;
    } else if (reduces || overwritten) {
      return false;
    }
    both.sources.insert(both.sources.end(), others.begin(), others.end());
    for (const Place& destination : second.destinations)
      if (overlaps_any(destination, both.destinations)) return false;
    append(both, held, second, readers);
    if (dead) stage(both, held, value);
    return true;
  }

  /// Where something may have to go through a NIC, whose proxy takes it from own memory.
  void stage(Movement& both, std::vector<Readers>& held, const Place& value) const {
    const bool sends = std::ranges::any_of(
        both.destinations, [&](const Place& p) { return p.group < 0 && !is_own(both, p); });
    const bool keeps =
        std::ranges::any_of(both.destinations, [&](const Place& p) { return is_own(both, p); });
    const bool as_it_is = both.sources.size() == 1 && is_own(both, both.sources.front()) &&
                          !may_be_packets(both.sources.front());
    if (!sends || keeps || as_it_is) return;
    both.destinations.insert(both.destinations.begin(), value);
    held.insert(held.begin(), Readers{});
    both.staged = true;
  }

  /// `second` stores what `both` stores elsewhere: what came from others is kept and passed on at
  /// once, and packets are polled once. What a rank has itself it may push as it is, also to a NIC.
  bool join_copies(Movement& both, std::vector<Readers>& held, const Movement& second,
                   const std::vector<Readers>& readers) const {
    if (both.sources.size() != second.sources.size()) return false;
    for (std::size_t s = 0; s < both.sources.size(); ++s)
      if (!same(both.sources[s], second.sources[s])) return false;
    const auto remote = [](const Movement& movement) {
      return std::ranges::count_if(movement.destinations,
                                   [&](const Place& place) { return !is_own(movement, place); });
    };
    if (observed_[index(both.sources.front().area.tensor)]) return false;
    if (!packets_ && remote(both) + remote(second) != 1) return false;
    for (const Place& destination : second.destinations)
      if (overlaps_any(destination, both.destinations)) return false;
    for (const Place& source : second.sources)
      if (overlaps_any(source, both.destinations)) return false;
    append(both, held, second, readers);
    return true;
  }

  bool may_be_packets(const Place& place) const {
    return packets_ && !observed_[index(place.area.tensor)];
  }

  static void append(Movement& both, std::vector<Readers>& held, const Movement& second,
                     const std::vector<Readers>& readers) {
    both.destinations.insert(both.destinations.end(), second.destinations.begin(),
                             second.destinations.end());
    held.insert(held.end(), readers.begin(), readers.end());
  }

  /// A thread reads all sources of its bytes and then stores them: what overlaps has to be the same
  /// place. The switch takes one source and one destination.
  static bool is_possible(const Movement& movement) {
    if (movement.by_switch() && (movement.sources.size() > 1 || movement.destinations.size() > 1))
      return false;
    for (const Place& source : movement.sources) {
      for (const Place& destination : movement.destinations)
        if (overlaps(source, destination) && !same(source, destination)) return false;
    }
    return true;
  }

  bool packets_;
  Movements& movements_;
  std::vector<bool> observed_;
  std::map<std::pair<MovementId, std::size_t>, Readers> readers_;
  std::vector<Readers> readers_of_last_;  // by destination of the movement that is being made
  Gone gone_;
};

/// A movement between places of its own rank that is no work of a switch.
bool is_local(const Movement& movement) {
  return std::ranges::all_of(movement.places(),
                             [&](const Place* place) { return is_own(movement, *place); });
}

/// Takes what `second` adds to the destination of `first` as more sources of `first`.
bool join_sum(Movement& first, const Movement& second) {
  const bool waits = !second.after.empty() || !second.computed.empty() || !second.launches.empty();
  if (waits || !is_local(first) || !is_local(second)) return false;
  if (first.destinations.size() != 1 || second.destinations.size() != 1) return false;
  const Place& sum = first.destinations.front();
  if (!second.reduces() || !same(sum, second.destinations.front())) return false;
  std::vector<Place> added;
  bool goes_on = false;
  for (const Place& source : second.sources)
    if (!goes_on && same(source, sum))
      goes_on = true;
    else if (plan::overlap(source.area, sum.area))
      return false;
    else
      added.push_back(source);
  if (!goes_on) return false;
  first.sources.insert(first.sources.end(), added.begin(), added.end());
  return true;
}

}  // namespace

bool adds_up_locally(const std::vector<Movement>& stream) {
  return std::ranges::any_of(stream, [](const Movement& m) { return m.reduces(); }) &&
         std::ranges::all_of(stream, is_local);
}

void join_sums(Movements& movements) {
  const std::set<MovementId> awaited = awaited_by_others(movements);
  Gone gone;
  MovementId last;
  bool adds_up = false;
  each_movement(movements, [&](const MovementId& id, const Movement& movement) {
    if (id.index == 0) adds_up = adds_up_locally(movements[index(id.rank)][index(id.stream)]);
    if (!adds_up) return;
    const bool between = id.index == 0 || awaited.contains({id.rank, id.stream, id.index - 1});
    if (!between && join_sum(at(movements, last), movement))
      gone[id] = last;
    else
      last = id;
  });
  rearrange(movements, gone);
}

void fuse(const plan::Plan& plan, const LowerOptions& options, Movements& movements) {
  Fuser(plan, options, movements).fuse();
}

}  // namespace hemiola::program::general
