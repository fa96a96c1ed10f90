// Movements that cross a NIC, as NICs do them. A NIC writes into the memory of others when its host
// posts that, and neither loads for a workgroup nor adds. So what would be pulled is sent by
// whoever holds it, and what would be added to memory beyond a NIC is sent there and added by its
// owner. Each rank does this in streams of its own: one that posts whole messages, and one that
// adds what came.
#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "machine/machine.h"
#include "program/lower/general.h"

namespace hemiola::program::general {
namespace {

/// Streams that come after those of the plan.
enum Extra : std::uint8_t { posts, sums };

class Rewriter {
 public:
  Rewriter(plan::Plan& plan, Movements& movements, const machine::Machine& machine)
      : plan_(plan), movements_(movements), machine_(machine), used_(index(plan.ranks), 0) {}

  void rewrite() {
    find_crossing();
    if (crossing_.empty()) return;
    plan::Tensor transit;
    transit.name = "transit over NICs";
    transit.role = plan::Role::scratch;
    if (plan_.of_elements()) transit.type = DataType::uint8;
    transit_ = static_cast<std::int32_t>(plan_.tensors.size());
    original_ = movements_;
    later_.resize(index(plan_.ranks));
    for (std::size_t rank = 0; rank < later_.size(); ++rank)
      later_[rank].resize(movements_[rank].size());
    for (const MovementId& id : crossing_) replace(id);
    keep_order_in_streams();
    put_in_streams();
    transit.shape = {std::max<std::int64_t>(1, *std::ranges::max_element(used_))};
    plan_.tensors.push_back(std::move(transit));
  }

 private:
  /// A movement of an extra stream. Those of one level that wait for nothing of that level come
  /// first: in this order nobody waits for what stands behind it.
  struct Added {
    MovementId of;
    Movement movement;
    Extra stream;
    bool last;                       ///< waits for a movement of its own level
    std::vector<std::size_t> after;  ///< others of these
    std::int64_t place = -1;         ///< in its stream
  };
  struct Later {
    std::int64_t index;  ///< of the movement
    std::size_t added;   ///< which is not done before this is
  };

  bool crosses(int from, int to) const {
    return from != to && machine_.reach(from, to) == machine::Reach::network;
  }

  void find_crossing() {
    each_movement(movements_, [&](const MovementId& id, const Movement& movement) {
      const auto far = [&](const Place* place) { return crosses(id.rank, place->rank); };
      if (!movement.by_switch() && std::ranges::any_of(movement.places(), far))
        crossing_.push_back(id);
    });
  }

  /// Memory of its own for what `place` holds, on `rank`.
  Place transit(const Place& place, int rank) {
    const std::int64_t units = place.units();
    std::int64_t& next = used_[index(rank)];
    Place made{rank, -1, {transit_, {{{next}, {next + units}}}}, {{{next}, {units}, units}}};
    next += units;
    return made;
  }

  std::size_t add(const MovementId& id, Extra stream, bool last, int rank,
                  std::vector<Place> sources, Place destination) {
    const Movement& of = at(original_, id);
    Added added{id, {}, stream, last, {}};
    added.movement.rank = rank;
    added.movement.stream =
        static_cast<std::int32_t>(original_[index(rank)].size()) + (stream == posts ? 0 : 1);
    added.movement.where = of.where;
    added.movement.level = of.level;
    added.movement.sources = std::move(sources);
    added.movement.destinations = {std::move(destination)};
    added_.push_back(std::move(added));
    return added_.size() - 1;
  }

  /// Whether a movement that writes memory of its own alone (transit) needs what tiles of a rank
  /// make: it reads it.
  static bool reads(const Movement& moved, int rank, const plan::Area& area) {
    return std::ranges::any_of(moved.sources, [&](const Place& source) {
      return source.rank == rank && overlap(source.area, area);
    });
  }

  /// What the movement may rely on where it stands, if it touches these places only: all that its
  /// stream has waited for, and movements of the stream that conflict with it. One to transit does
  /// not wait for tiles that its sum is to be added to: each would tell it through a NIC.
  void rely_as(Movement& moved, const MovementId& id, bool to_transit = false) const {
    std::map<std::pair<int, std::int32_t>, std::int64_t> last;
    const auto note = [&](const MovementId& other) {
      std::int64_t& latest =
          last.try_emplace({other.rank, other.stream}, other.index).first->second;
      latest = std::max(latest, other.index);
    };
    for (MovementId one{id.rank, id.stream, 0}; one.index <= id.index; ++one.index) {
      const Movement& earlier = at(original_, one);
      for (const MovementId& after : earlier.after) note(after);
      for (const auto& computed : earlier.computed) {
        if (to_transit && !reads(moved, computed.first, computed.second)) continue;
        if (std::ranges::find(moved.computed, computed) == moved.computed.end())
          moved.computed.push_back(computed);
      }
      moved.launches.insert(moved.launches.end(), earlier.launches.begin(), earlier.launches.end());
      if (one < id && conflict(earlier, moved)) note(one);
    }
    for (const auto& [of, i] : last) moved.after.push_back({{of.first, of.second, i}});
  }

  /// A sum comes after the messages that it adds, and so after what they have waited for: nobody
  /// tells its rank of that through a NIC as well.
  static void leave_out(Movement& sum, const Movement& message) {
    std::erase_if(sum.computed, [&](const auto& one) {
      return std::ranges::find(message.computed, one) != message.computed.end();
    });
    std::erase_if(sum.after, [&](const Movement::After& one) {
      return std::ranges::any_of(message.after, [&](const Movement::After& other) {
        return std::pair(one.rank, one.stream) == std::pair(other.rank, other.stream) &&
               one.index <= other.index;
      });
    });
  }

  void replace(const MovementId& id) {
    Movement& m = at(movements_, id);
    auto& later = later_[index(id.rank)][index(id.stream)];
    if (m.reduces() && adds_beyond(m)) {
      const int owner = m.destinations.front().rank;
      std::vector<std::size_t> sent;
      std::vector<Place> sources;
      for (const Place& source : m.sources) {
        if (source.rank == owner) {
          sources.push_back(source);
          continue;
        }
        const Place arrived = transit(source, owner);
        sent.push_back(add(id, posts, false, m.rank, {source}, arrived));
        rely_as(added_.back().movement, id, true);
        sources.push_back(arrived);
      }
      const std::size_t sum =
          add(id, sums, false, owner, std::move(sources), m.destinations.front());
      rely_as(added_.back().movement, id);
      for (const std::size_t message : sent)
        leave_out(added_.back().movement, added_[message].movement);
      added_.back().after = std::move(sent);
      later.push_back({id.index, sum});
      m.sources.clear();
      m.destinations.clear();
      taken_out_.push_back(id);
      return;
    }
    std::vector<std::size_t> fetched;
    for (Place& source : m.sources) {
      if (!crosses(m.rank, source.rank)) continue;
      const Place arrived = transit(source, m.rank);
      const std::size_t sent = add(id, posts, false, source.rank, {source}, arrived);
      rely_as(added_.back().movement, id);
      awaited_.push_back({id, sent});
      fetched.push_back(sent);
      source = arrived;
    }
    std::vector<Place> near, far;
    for (Place& destination : m.destinations)
      (crosses(m.rank, destination.rank) ? far : near).push_back(std::move(destination));
    if (m.reduces() && near.empty() && !far.empty()) near.push_back(transit(far.front(), m.rank));
    const Place result = m.reduces() ? near.front() : m.sources.front();
    for (Place& destination : far) {
      const std::size_t sent =
          add(id, posts, m.reduces() || !fetched.empty(), m.rank, {result}, destination);
      if (m.reduces()) {
        added_.back().movement.after.push_back({id});
      } else {
        rely_as(added_.back().movement, id);
        added_.back().after = fetched;
      }
      later.push_back({id.index, sent});
    }
    if (near.empty()) m.sources.clear();
    m.destinations = std::move(near);
  }

  /// Whether everything but what the own rank has is beyond one NIC, where the sum goes too.
  bool adds_beyond(const Movement& m) const {
    const int owner = m.destinations.front().rank;
    const auto there = [&](const Place& place) { return place.rank == owner; };
    return crosses(m.rank, owner) && std::ranges::all_of(m.destinations, there) &&
           m.destinations.size() == 1 && std::ranges::any_of(m.sources, there) &&
           std::ranges::all_of(m.sources, [&](const Place& place) {
             return place.rank == owner || place.rank == m.rank;
           });
  }

  /// A stream no longer waits for what was taken out of it; those of its movements that touch the
  /// same memory do.
  void keep_order_in_streams() {
    for (std::size_t rank = 0; rank < later_.size(); ++rank) {
      for (std::size_t s = 0; s < later_[rank].size(); ++s) {
        for (const Later& later : later_[rank][s]) {
          for (std::size_t i = index(later.index) + 1; i < movements_[rank][s].size(); ++i) {
            if (conflict(added_[later.added].movement, movements_[rank][s][i]))
              awaited_.push_back({{static_cast<int>(rank), static_cast<std::int32_t>(s),
                                   static_cast<std::int64_t>(i)},
                                  later.added});
          }
        }
      }
    }
  }

  /// Whoever waits for a movement waits for what it and its stream's earlier ones left to others.
  void complete(Movement& movement, const MovementId& of = {-1, 0, 0}) const {
    std::map<std::pair<int, std::int32_t>, std::int64_t> last;
    for (const Movement::After& after : movement.after) {
      const auto& streams = later_[index(after.rank)];
      if (index(after.stream) >= streams.size()) continue;  // of an extra stream
      for (const Later& later : streams[index(after.stream)]) {
        const Added& added = added_[later.added];
        if (later.index > after.index || added.of == of) continue;
        std::int64_t& place =
            last.try_emplace({added.movement.rank, added.movement.stream}, -1).first->second;
        place = std::max(place, added.place);
      }
    }
    for (const auto& [of, place] : last) movement.after.push_back({{of.first, of.second, place}});
  }

  /// What is left of a movement that was taken out waits for nothing: the next one of its stream
  /// does. Else tiles beyond a NIC would tell it one by one that they are there to be added to.
  void pass_on_waits() {
    for (const MovementId& id : taken_out_) {  // in the order of their streams
      Movement& left = at(movements_, id);
      const Movement from = left;
      left.after.clear();
      left.computed.clear();
      left.launches.clear();
      if (id.index + 1 == std::ssize(movements_[index(id.rank)][index(id.stream)])) continue;
      Movement& next = at(movements_, {id.rank, id.stream, id.index + 1});
      next.after.insert(next.after.end(), from.after.begin(), from.after.end());
      next.computed.insert(next.computed.end(), from.computed.begin(), from.computed.end());
      next.launches.insert(next.launches.end(), from.launches.begin(), from.launches.end());
    }
  }

  void put_in_streams() {
    std::vector<std::size_t> order(added_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](std::size_t i) {
      const Added& added = added_[i];
      const Movement& m = added.movement;
      const int to = m.destinations.front().rank;
      return std::tuple(m.level, added.last, (to - m.rank + plan_.ranks) % plan_.ranks, i);
    };
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
    std::vector<std::array<std::int64_t, 2>> next(index(plan_.ranks));
    for (const std::size_t i : order)
      added_[i].place = next[index(added_[i].movement.rank)][added_[i].stream]++;
    const auto place_of = [&](std::size_t added) {
      const Movement& m = added_[added].movement;
      return Movement::After{{m.rank, m.stream, added_[added].place}};
    };
    each_movement(movements_, [&](const MovementId&, Movement& m) { complete(m); });
    for (Added& added : added_) {
      complete(added.movement, added.of);
      for (const std::size_t other : added.after) added.movement.after.push_back(place_of(other));
    }
    pass_on_waits();
    for (const auto& [id, added] : awaited_) at(movements_, id).after.push_back(place_of(added));
    for (auto& streams : movements_) streams.resize(streams.size() + 2);
    for (const std::size_t i : order) {
      Movement& m = added_[i].movement;
      movements_[index(m.rank)][index(m.stream)].push_back(std::move(m));
    }
  }

  plan::Plan& plan_;
  Movements& movements_;
  const machine::Machine& machine_;
  std::int32_t transit_ = 0;
  std::vector<std::int64_t> used_;  // units of transit memory, by rank
  Movements original_;
  std::vector<MovementId> crossing_, taken_out_;
  std::vector<Added> added_;
  std::vector<std::vector<std::vector<Later>>> later_;  // by rank, stream
  std::vector<std::pair<MovementId, std::size_t>> awaited_;
};

}  // namespace

bool through_network(plan::Plan& plan, Movements& movements, const machine::Machine& machine) {
  const std::size_t tensors = plan.tensors.size();
  Rewriter(plan, movements, machine).rewrite();
  return plan.tensors.size() > tensors;
}

}  // namespace hemiola::program::general
