// What copy engines are told: copies to two places, swaps, queues by peer, batches.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include "core/index.h"
#include "machine/machine.h"
#include "program/lower/flow.h"
#include "program/lower/parts.h"

namespace hemiola::program::general {
namespace {

/// A place in chunks, where buffers that share memory are one.
struct AliasedPlace {
  int rank = 0;
  std::int32_t buffer = 0;
  std::vector<Strip> rows;
  auto operator<=>(const AliasedPlace&) const = default;
};

class Arranger {
 public:
  Arranger(plan::Plan& plan, const Program& program, const LowerOptions& options,
           Movements& movements)
      : plan_(plan), program_(program), options_(options), movements_(movements) {}

  void arrange() {
    if (options_.in_place && !plan_.of_elements()) leave_out_what_is_in_place();
    if (options_.copies.command == CopyCommand::swap) swap();
    if (options_.copies.command == CopyCommand::broadcast) broadcast();
    if (options_.copies.queues == CopyQueues::peer) split_by_peer();
  }

 private:
  AliasedPlace memory(const Place& place) const {
    AliasedPlace memory{place.rank, place.area.tensor, place.rows};
    std::int64_t first = 0;
    const Buffer* buffer = &program_.buffers[index(memory.buffer)];
    if (buffer->alias >= 0) {
      first = buffer->alias_chunk({.rank = place.rank});
      memory.buffer = buffer->alias;
    }
    for (Strip& strip : memory.rows) strip.offset[0] += first;
    return memory;
  }

  static bool is_plain_copy(const Movement& movement) {
    return movement.sources.size() == 1 && movement.destinations.size() == 1 &&
           movement.sources.front().group < 0 && movement.destinations.front().group < 0;
  }

  /// The rank at the other end; its own: it stays there.
  static int peer_of(const Movement& movement) {
    for (const auto* places : {&movement.destinations, &movement.sources}) {
      for (const Place& place : *places)
        if (place.group < 0 && place.rank != movement.rank) return place.rank;
    }
    return movement.rank;
  }

  bool crosses_network(const Movement& movement) const {
    const machine::Machine* machine = options_.machine;
    const int peer = peer_of(movement);
    return machine != nullptr && plan_.ranks <= machine->ranks() && peer != movement.rank &&
           machine->reach(movement.rank, peer) == machine::Reach::network;
  }

  // Movements that are taken away, and what stands for them.

  using Moved = std::map<MovementId, MovementId>;

  static MovementId id_of(int rank, std::size_t stream, std::size_t number) {
    return {rank, static_cast<std::int32_t>(stream), static_cast<std::int64_t>(number)};
  }

  template <class Visit>
  void each(Visit&& visit) {
    for (std::size_t rank = 0; rank < movements_.size(); ++rank) {
      for (std::size_t s = 0; s < movements_[rank].size(); ++s)
        for (std::size_t i = 0; i < movements_[rank][s].size(); ++i)
          visit(id_of(static_cast<int>(rank), s, i), movements_[rank][s][i]);
    }
  }

  /// Puts every movement where `place` says (rank, stream; none: it is gone, and `stands_for` says
  /// what others wait for instead), in the order there is.
  void rearrange(const std::function<std::optional<std::int32_t>(const MovementId&)>& place,
                 const Moved& stands_for, const std::vector<std::size_t>& streams) {
    Movements arranged(movements_.size());
    for (std::size_t rank = 0; rank < arranged.size(); ++rank) arranged[rank].resize(streams[rank]);
    Moved now;
    each([&](const MovementId& id, Movement& movement) {
      const std::optional<std::int32_t> stream = place(id);
      if (!stream) return;
      auto& list = arranged[index(id.rank)][index(*stream)];
      now[id] = id_of(id.rank, index(*stream), list.size());
      list.push_back(std::move(movement));
      list.back().stream = *stream;
    });
    movements_ = std::move(arranged);
    each([&](const MovementId& id, Movement& movement) {
      for (Movement::After& after : movement.after) {
        MovementId other{after.rank, after.stream, after.index};
        for (auto at = stands_for.find(other); at != stands_for.end(); at = stands_for.find(other))
          other = at->second;
        const MovementId there = now.at(other);
        after.rank = there.rank;
        after.stream = there.stream;
        after.index = there.index;
      }
      std::erase_if(movement.after, [&](const Movement::After& after) {
        return after.rank == id.rank && after.stream == id.stream && after.index == id.index;
      });
    });
  }

  std::vector<std::size_t> present_streams() const {
    std::vector<std::size_t> streams;
    for (const auto& rank : movements_) streams.push_back(rank.size());
    return streams;
  }

  void remove(const std::set<MovementId>& gone, const Moved& stands_for) {
    rearrange(
        [&](const MovementId& id) -> std::optional<std::int32_t> {
          if (gone.contains(id)) return std::nullopt;
          return id.stream;
        },
        stands_for, present_streams());
  }

  /// A copy from memory to itself is none, if nobody waits for it.
  void leave_out_what_is_in_place() {
    std::set<MovementId> awaited, gone;
    each([&](const MovementId&, const Movement& movement) {
      for (const Movement::After& after : movement.after)
        awaited.insert({after.rank, after.stream, after.index});
    });
    each([&](const MovementId& id, const Movement& movement) {
      if (is_plain_copy(movement) && !awaited.contains(id) && movement.after.empty() &&
          memory(movement.sources.front()) == memory(movement.destinations.front()))
        gone.insert(id);
    });
    remove(gone, {});
  }

  // Swaps.

  /// A copy that goes the other way is left to one of the two ranks: the one that is fewer ranks
  /// before the other, of those half way round the lower one.
  bool keeps(const Movement& movement) const {
    const int away = (peer_of(movement) - movement.rank + plan_.ranks) % plan_.ranks;
    return away * 2 == plan_.ranks ? movement.rank < peer_of(movement) : away * 2 < plan_.ranks;
  }

  void swap() {
    std::map<std::pair<AliasedPlace, AliasedPlace>, MovementId> copies;  // from, to
    each([&](const MovementId& id, const Movement& movement) {
      if (is_plain_copy(movement) && peer_of(movement) != movement.rank)
        copies[{memory(movement.sources.front()), memory(movement.destinations.front())}] = id;
    });
    std::set<MovementId> gone;
    Moved stands_for;
    each([&](const MovementId& id, Movement& movement) {
      if (movement.sources.empty() || peer_of(movement) == movement.rank) return;
      const auto back = is_plain_copy(movement)
                            ? copies.find({memory(movement.destinations.front()),
                                           memory(movement.sources.front())})
                            : copies.end();
      if (back == copies.end() || back->second.rank == id.rank || crosses_network(movement))
        throw Failure(
            fmt::format("'{}' has a copy, {} of rank {}, without one the other way between the "
                        "GPUs of a node",
                        plan_.name, movement.where, movement.rank),
            kOption, "command=swap needs both: choose command=copy");
      if (keeps(movement)) return;
      gone.insert(id);
      stands_for[id] = back->second;
    });
    for (const MovementId& id : gone) {
      const Movement& other = at(movements_, id);
      Movement& kept = at(movements_, stands_for.at(id));
      kept.swaps = true;
      // Both by the name of what the copies write: what they read is the same memory.
      kept.destinations.push_back(other.destinations.front());
      kept.sources = {kept.destinations[1], kept.destinations[0]};
      kept.after.insert(kept.after.end(), other.after.begin(), other.after.end());
    }
    remove(gone, stands_for);
  }

  // Broadcasts.

  static bool wait_alike(const Movement& a, const Movement& b) {
    const auto list = [](const Movement& movement) {
      std::vector<std::tuple<int, std::int32_t, std::int64_t, bool>> all;
      for (const Movement::After& after : movement.after)
        all.emplace_back(after.rank, after.stream, after.index, after.loads_only);
      std::ranges::sort(all);
      return all;
    };
    return list(a) == list(b) && a.launches == b.launches && a.computed == b.computed;
  }

  bool can_share(const Movement& a, const Movement& b) const {
    return is_plain_copy(a) && is_plain_copy(b) && same(a.sources.front(), b.sources.front()) &&
           a.sources.front().rank == a.rank && peer_of(a) != a.rank && peer_of(b) != b.rank &&
           peer_of(a) != peer_of(b) && !crosses_network(a) && !crosses_network(b) &&
           wait_alike(a, b);
  }

  void broadcast() {
    std::set<MovementId> gone;
    Moved stands_for;
    for (auto& rank : movements_) {
      for (auto& stream : rank) {
        for (std::size_t i = 0; i + 1 < stream.size(); ++i) {
          if (!can_share(stream[i], stream[i + 1])) continue;
          stream[i].destinations.push_back(stream[i + 1].destinations.front());
          const auto first = id_of(stream[i].rank, index(stream[i].stream), i);
          const auto second = id_of(stream[i].rank, index(stream[i].stream), i + 1);
          gone.insert(second);
          stands_for[second] = first;
          ++i;
        }
      }
    }
    if (gone.empty())
      throw Failure(
          fmt::format("no stream of '{}' copies one place to two other GPUs of a node in a row",
                      plan_.name),
          kOption, "command=broadcast has two destinations: choose command=copy");
    remove(gone, stands_for);
  }

  // Queues.

  /// The peers of a stream by distance, in the order in which it gets to them.
  std::vector<int> distances(const std::vector<Movement>& stream) const {
    std::vector<int> all;
    for (const Movement& movement : stream) {
      const int away = (peer_of(movement) - movement.rank + plan_.ranks) % plan_.ranks;
      if (std::ranges::find(all, away) == all.end()) all.push_back(away);
    }
    return all;
  }

  /// Every stream becomes as many as it has peers, at most on any rank of its code. What followed
  /// something in it that it has to follow still waits for it.
  void split_by_peer() {
    std::vector<std::vector<std::vector<int>>> peers(movements_.size());  // by rank, stream
    std::vector<std::vector<std::size_t>> width(plan_.codes.size());      // by code, stream
    for (std::size_t rank = 0; rank < movements_.size(); ++rank) {
      const auto code = index(plan_.code_of[rank]);
      const std::size_t own = plan_.codes[code].streams.size();
      width[code].resize(own, 1);
      for (std::size_t s = 0; s < own; ++s) {
        const bool sums = adds_up_locally(movements_[rank][s]);
        peers[rank].push_back(sums ? std::vector<int>{} : distances(movements_[rank][s]));
        width[code][s] = std::max(width[code][s], peers[rank].back().size());
      }
    }
    keep_order(peers);
    const auto first = [&](std::size_t rank, std::size_t stream) {
      std::size_t before = 0;
      for (std::size_t s = 0; s < stream; ++s)
        before += s < peers[rank].size() ? width[index(plan_.code_of[rank])][s] : 1;
      return before;
    };
    std::vector<std::size_t> streams;
    for (std::size_t rank = 0; rank < movements_.size(); ++rank)
      streams.push_back(first(rank, movements_[rank].size()));
    rearrange(
        [&](const MovementId& id) -> std::optional<std::int32_t> {
          const std::size_t begin = first(index(id.rank), index(id.stream));
          return static_cast<std::int32_t>(begin + queue_of(id, peers));
        },
        {}, streams);
    for (std::size_t c = 0; c < plan_.codes.size(); ++c) split_code(plan_.codes[c], width[c]);
  }

  std::size_t queue_of(const MovementId& id,
                       const std::vector<std::vector<std::vector<int>>>& peers) const {
    if (index(id.stream) >= peers[index(id.rank)].size()) return 0;
    const std::vector<int>& order = peers[index(id.rank)][index(id.stream)];
    if (order.empty()) return 0;
    const Movement& movement = at(movements_, id);
    const int away = (peer_of(movement) - movement.rank + plan_.ranks) % plan_.ranks;
    return index(std::ranges::find(order, away) - order.begin());
  }

  void keep_order(const std::vector<std::vector<std::vector<int>>>& peers) {
    for (std::size_t rank = 0; rank < movements_.size(); ++rank) {
      for (std::size_t s = 0; s < peers[rank].size(); ++s) {
        auto& stream = movements_[rank][s];
        std::vector<std::size_t> queues;
        for (std::size_t i = 0; i < stream.size(); ++i)
          queues.push_back(queue_of(id_of(static_cast<int>(rank), s, i), peers));
        for (std::size_t later = 1; later < stream.size(); ++later) {
          for (std::size_t earlier = 0; earlier < later; ++earlier) {
            if (queues[later] == queues[earlier]) continue;
            // Without places it is a meeting, which all that stands around it goes by.
            if (!stream[earlier].destinations.empty() && !stream[later].destinations.empty() &&
                !conflict(stream[earlier], stream[later]))
              continue;
            const MovementId before = id_of(static_cast<int>(rank), s, earlier);
            stream[later].after.push_back({before.rank, before.stream, before.index});
          }
        }
      }
    }
  }

  static void split_code(plan::Code& code, const std::vector<std::size_t>& width) {
    std::vector<plan::Stream> streams;
    for (std::size_t s = 0; s < width.size(); ++s) {
      const std::string name = code.streams[s].name;
      streams.push_back(std::move(code.streams[s]));
      for (std::size_t more = 1; more < width[s]; ++more)
        streams.push_back({fmt::format("{} {}", name, more + 1), {}});
    }
    code.streams = std::move(streams);
  }

  plan::Plan& plan_;
  const Program& program_;
  const LowerOptions& options_;
  Movements& movements_;
};

bool is_copy(const Op& op) {
  return op.kind == OpKind::put || op.kind == OpKind::get || op.kind == OpKind::copy ||
         op.kind == OpKind::swap;
}

/// A submission waits for all that any of its copies waits for: nothing of that can depend on the
/// copies before it, of which nobody is told.
template <class Fits>
std::vector<Op> with_waits_first(std::vector<Op> before, Fits&& fits) {
  std::vector<Op> ops;
  std::size_t first = 0;  // copy of the present submission
  std::int64_t together = 0;
  for (std::size_t i = 0; i < before.size();) {
    if (is_copy(before[i])) {
      if (together == 0 || !fits(together)) {
        first = ops.size();
        together = 0;
      }
      ++together;
      ops.push_back(std::move(before[i++]));
    } else if (before[i].kind == OpKind::dep_wait && together > 0 && fits(together)) {
      for (bool over = false; i < before.size() && !over; ++i) {  // up to its sync
        over = before[i].kind == OpKind::sync;
        ops.insert(ops.begin() + static_cast<std::ptrdiff_t>(first++), std::move(before[i]));
      }
    } else {
      together = 0;
      ops.push_back(std::move(before[i++]));
    }
  }
  return ops;
}

}  // namespace

void batch_copies(Body& body, int batch) {
  if (batch == 1) return;
  const auto fits = [&](std::int64_t together) { return batch == 0 || together < batch; };
  body.ops = with_waits_first(std::move(body.ops), fits);
  std::int64_t together = 1;
  for (std::size_t i = 0; i + 1 < body.ops.size(); ++i) {
    const bool follow = is_copy(body.ops[i]) && is_copy(body.ops[i + 1]);
    body.ops[i].batched = follow && fits(together);
    together = body.ops[i].batched ? together + 1 : 1;
  }
}

void arrange_copies(plan::Plan& plan, const Program& program, const LowerOptions& options,
                    Movements& movements) {
  if (options.realization != Realization::copy_engine) return;
  Arranger(plan, program, options, movements).arrange();
}

}  // namespace hemiola::program::general
