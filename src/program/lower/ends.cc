// When a rank's memory may be touched first, and when it is its own again.
#include <algorithm>
#include <cstdint>
#include <map>
#include <set>

#include "core/index.h"
#include "program/lower/flow.h"

namespace hemiola::program::general {
namespace {

/// Ranks besides `own` whose memory these are. Packets do not count with `plain`.
std::set<int> touched(const plan::Plan& plan, const std::vector<Place>& places, int own,
                      bool plain = true) {
  std::set<int> ranks;
  for (const Place& place : places) {
    if (place.packets && plain) continue;
    each_rank(plan, place, [&](int rank) { ranks.insert(rank); });
  }
  ranks.erase(own);
  return ranks;
}

std::set<int> touched(const plan::Plan& plan, const Movement& movement) {
  std::set<int> ranks = touched(plan, movement.sources, movement.rank, false);
  ranks.merge(touched(plan, movement.destinations, movement.rank, false));
  return ranks;
}

class Finder {
 public:
  Finder(const plan::Plan& plan, const Movements& movements)
      : plan_(plan), movements_(movements), ids_(in_order(movements)) {}

  Ends find() {
    learn();
    find_own_memory();
    find_starts();
    find_last();
    return std::move(ends_);
  }

 private:
  /// What a movement and those before it in its stream come after; of `loads`, only the loads.
  struct Learned {
    KnownMoves stores, loads;
  };

  void learn() {
    for (const MovementId& id : ids_) {
      Learned& learned = learned_[id];
      if (id.index > 0) learned = learned_.at({id.rank, id.stream, id.index - 1});
      for (const Movement::After& after : at(movements_, id).after) {
        if (!after.loads_only) learned.stores.learn(learned_.at(after).stores);
        learned.loads.learn({after.rank, after.stream}, after.index);
      }
      learned.stores.learn({id.rank, id.stream}, id.index);
    }
  }

  /// Movements to memory where no other stream ever stores. Rows of a matrix are thousands of
  /// segments, so these are only looked at where the areas do not say it.
  void find_own_memory() {
    struct Store {
      std::int64_t begin = 0, end = 0;  ///< units from the first row to the last one
      MovementId id;
      const Place* place = nullptr;
    };
    std::map<std::pair<int, std::int32_t>, std::vector<Store>> stores;  // by rank, tensor
    for (const MovementId& id : ids_) {
      own_.insert(id);
      for (const Place& place : at(movements_, id).destinations) {
        if (place.rows.empty()) continue;
        Store store{INT64_MAX, 0, id, &place};
        for (const Strip& strip : place.rows) {
          store.begin = std::min(store.begin, strip.offset[0]);
          store.end = std::max(store.end, strip.end());
        }
        each_rank(plan_, place, [&](int rank) {
          stores[{rank, place.area.tensor}].push_back(store);
        });
      }
    }
    for (auto& [memory, list] : stores) {
      std::ranges::stable_sort(list, {}, &Store::begin);
      std::vector<const Store*> open;
      for (const Store& store : list) {
        std::erase_if(open, [&](const Store* other) { return other->end <= store.begin; });
        for (const Store* other : open) {
          const bool same_stream =
              other->id.rank == store.id.rank && other->id.stream == store.id.stream;
          if (same_stream || (!own_.contains(store.id) && !own_.contains(other->id))) continue;
          if (!share_bytes(*other->place, *store.place)) continue;
          own_.erase(store.id);
          own_.erase(other->id);
        }
        open.push_back(&store);
      }
    }
  }

  static bool share_bytes(const Place& a, const Place& b) {
    if (!plan::overlap(a.area, b.area)) return false;
    const auto sorted = [](const Place& place) {
      std::vector<plan::Segment> segments = segments_of(place);
      std::ranges::sort(segments, [](const auto& x, const auto& y) { return x.offset < y.offset; });
      return segments;
    };
    const std::vector<plan::Segment> first = sorted(a), second = sorted(b);
    for (auto x = first.begin(), y = second.begin(); x != first.end() && y != second.end();)
      if (x->offset + x->count <= y->offset)
        ++x;
      else if (y->offset + y->count <= x->offset)
        ++y;
      else
        return true;
    return false;
  }

  /// Nobody touches the memory of a rank whose kernel has not started. It has where something on it
  /// is known to be complete. What is to be overwritten is what that rank has read, and, where
  /// others store as well, what they stored in the call before.
  void find_starts() {
    for (const MovementId& id : ids_) {
      const Movement& movement = at(movements_, id);
      const KnownMoves& known = learned_.at(id).stores;
      for (const int rank : touched(plan_, movement)) {
        const auto first = known.from({rank, 0});
        const bool started = first != known.end() && first->first.first == rank;
        if (!started) ends_.starts[&movement].push_back({rank, own_.contains(id)});
      }
    }
  }

  void find_last() {
    struct Last {
      std::int64_t store = -1, load = -1;
    };
    std::map<std::pair<int, StreamOfRank>, Last> last;  // rank, stream elsewhere
    for (const MovementId& id : ids_) {
      const Movement& movement = at(movements_, id);
      for (const int rank : touched(plan_, movement.sources, id.rank))
        last[{rank, {id.rank, id.stream}}].load = id.index;
      for (const int rank : touched(plan_, movement.destinations, id.rank))
        last[{rank, {id.rank, id.stream}}].store = id.index;
    }
    ends_.last.resize(movements_.size());
    for (const auto& [key, touch] : last) {
      const auto& [rank, stream] = key;
      bool stored = touch.store < 0, loaded = touch.load < 0;
      const auto& own = movements_[index(rank)];
      for (std::size_t s = 0; s < own.size(); ++s) {
        if (own[s].empty()) continue;
        const Learned& learned =
            learned_.at({rank, static_cast<std::int32_t>(s), std::ssize(own[s]) - 1});
        stored = stored || learned.stores.knows(stream, touch.store);
        loaded = loaded || learned.stores.knows(stream, touch.load) ||
                 learned.loads.knows(stream, touch.load);
      }
      const auto wait = [&](std::int64_t at, bool loads_only) {
        ends_.last[index(rank)].push_back({{stream.first, stream.second, at}, loads_only});
      };
      if (!stored) wait(touch.store, false);
      if (!loaded && (stored || touch.load > touch.store)) wait(touch.load, true);
    }
  }

  const plan::Plan& plan_;
  const Movements& movements_;
  std::vector<MovementId> ids_;
  std::map<MovementId, Learned> learned_;
  std::set<MovementId> own_;  // no other stream stores where they do
  Ends ends_;
};

}  // namespace

Ends ends_of(const plan::Plan& plan, const Movements& movements) {
  return Finder(plan, movements).find();
}

}  // namespace hemiola::program::general
