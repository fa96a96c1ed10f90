// Dependencies that memory needs: a plan, above all one that was lifted, names many that others
// imply.
#include <algorithm>
#include <set>

#include "program/lower/flow.h"

namespace hemiola::program::general {
namespace {

/// Whoever stores what it made of packets comes after the loads that the packets were made of:
/// element by element, from packet to packet, because movements keep the order of elements.
class Trails {
 public:
  Trails(const Movements& movements, const Packed& packed) : movements_(movements) {
    for (const Reading& reading : packed.readings) readings_[reading.reader].push_back(reading);
  }

  /// Whether all that `to` stores where `from` loads is made of packets made of what `from` loads
  /// there.
  bool lead(const MovementId& from, const MovementId& to) const {
    if (!readings_.contains(to)) return false;
    bool all = true;
    for (const Place& source : at(movements_, from).sources)
      for (const Place& destination : at(movements_, to).destinations)
        all = all && lead(from, source, to, destination);
    return all;
  }

 private:
  bool lead(const MovementId& from, const Place& source, const MovementId& to,
            const Place& destination) const {
    const bool apart = source.group < 0 && destination.group < 0 && source.rank != destination.rank;
    if (apart || source.area.tensor != destination.area.tensor) return true;
    const std::vector<plan::Segment> loads = segments_of(source), stores = segments_of(destination);
    std::int64_t loaded = 0;
    for (const plan::Segment& load : loads) {
      std::int64_t stored = 0;
      for (const plan::Segment& store : stores) {
        const std::int64_t begin = std::max(load.offset, store.offset);
        const std::int64_t end = std::min(load.offset + load.count, store.offset + store.count);
        Seen seen;
        if (begin < end && !lead(from, loaded + begin - load.offset, to,
                                 stored + begin - store.offset, end - begin, seen))
          return false;
        stored += store.count;
      }
      loaded += load.count;
    }
    return true;
  }

  using Seen = std::set<std::pair<MovementId, std::int64_t>>;

  /// Whether elements [at, at + count) of `to` are made of the elements [first, first + count) of
  /// `from`.
  bool lead(const MovementId& from, std::int64_t first, const MovementId& to, std::int64_t at,
            std::int64_t count, Seen& seen) const {
    if (from == to) return first == at;
    const auto readings = readings_.find(to);
    if (readings == readings_.end() || !seen.insert({to, at}).second) return false;
    std::vector<std::pair<std::int64_t, std::int64_t>> led;  // begin, end
    for (const Reading& reading : readings->second) {
      const std::int64_t begin = std::max(at, reading.at);
      const std::int64_t end = std::min(at + count, reading.at + reading.count);
      if (begin < end && lead(from, first + begin - at, reading.writer,
                              reading.offset + begin - reading.at, end - begin, seen))
        led.emplace_back(begin, end);
    }
    std::ranges::sort(led);
    std::int64_t up_to = at;
    for (const auto& [begin, end] : led)
      if (begin <= up_to) up_to = std::max(up_to, end);
    return up_to >= at + count;
  }

  const Movements& movements_;
  std::map<MovementId, std::vector<Reading>> readings_;
};

/// Backwards through the plan: whatever a movement has to know, it knows from the movement before
/// it in its stream, or by a dependency of its own, which is then kept.
class Pruner {
 public:
  Pruner(const plan::Plan& plan, const Packed& packed, Movements& movements)
      : movements_(movements), order_(in_order(movements)) {
    const Trails trails(movements, packed);
    for (const Conflict& conflict : flow_of(plan, movements).conflicts) {
      const StreamOfRank stream{conflict.earlier.rank, conflict.earlier.stream};
      if (stream == StreamOfRank{conflict.later.rank, conflict.later.stream}) continue;
      if (conflict.loads_first && trails.lead(conflict.earlier, conflict.later)) continue;
      Needs& needs = needs_[conflict.later];
      (conflict.loads_first ? needs.loads : needs.stores).learn(stream, conflict.earlier.index);
    }
  }

  void prune() {
    for (const MovementId& id : order_) learn(id);
    for (auto id = order_.rbegin(); id != order_.rend(); ++id) choose(*id);
  }

 private:
  /// What has to be complete before a movement: stores (and what is ordered before them), and loads
  /// alone.
  struct Needs {
    KnownMoves stores, loads;
  };

  MovementId before(const MovementId& id) const { return {id.rank, id.stream, id.index - 1}; }

  /// All that the plan orders before the movement, itself included.
  void learn(const MovementId& id) {
    KnownMoves& known = known_[id];
    if (id.index > 0) known = known_.at(before(id));
    for (const Movement::After& after : at(movements_, id).after) known.learn(known_.at(after));
    known.learn({id.rank, id.stream}, id.index);
  }

  void choose(const MovementId& id) {
    Movement& movement = at(movements_, id);
    const auto found = needs_.find(id);
    const Needs needs = found == needs_.end() ? Needs{} : std::move(found->second);
    std::map<std::size_t, bool> kept;  // dependency -> of loads only
    const auto need = [&](const StreamOfRank& stream, std::int64_t last, bool loads) {
      if (stream == StreamOfRank{id.rank, id.stream}) return;
      if (id.index > 0 && known_.at(before(id)).knows(stream, last)) {
        Needs& earlier = needs_[before(id)];
        (loads ? earlier.loads : earlier.stores).learn(stream, last);
        return;
      }
      std::size_t through = movement.after.size();
      for (std::size_t a = 0; a < movement.after.size(); ++a) {
        const Movement::After& after = movement.after[a];
        if (StreamOfRank{after.rank, after.stream} == stream && after.index >= last) {
          const auto [kind, fresh] = kept.try_emplace(a, loads);
          kind->second = kind->second && loads;
          return;
        }
        if (known_.at(after).knows(stream, last)) through = a;
      }
      if (through == movement.after.size()) return;  // the plan does not order them
      kept[through] = false;
      const Movement::After& after = movement.after[through];
      needs_[after].stores.learn(stream, last);
    };
    for (const auto& [stream, last] : needs.stores) need(stream, last, false);
    for (const auto& [stream, last] : needs.loads) need(stream, last, true);
    std::vector<Movement::After> after;
    for (const auto& [a, loads] : kept) {
      after.push_back(movement.after[a]);
      after.back().loads_only = loads;
    }
    movement.after = std::move(after);
  }

  Movements& movements_;
  std::vector<MovementId> order_;
  std::map<MovementId, KnownMoves> known_;
  std::map<MovementId, Needs> needs_;
};

}  // namespace

void prune(const plan::Plan& plan, const Packed& packed, Movements& movements) {
  Pruner(plan, packed, movements).prune();
}

}  // namespace hemiola::program::general
