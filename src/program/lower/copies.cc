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

  /// A copy from memory to itself is none, if nobody waits for it.
  void leave_out_what_is_in_place() {
    const std::set<MovementId> awaited = awaited_by_others(movements_);
    Gone gone;
    each_movement(movements_, [&](const MovementId& id, const Movement& movement) {
      if (is_plain_copy(movement) && !awaited.contains(id) && movement.after.empty() &&
          memory(movement.sources.front()) == memory(movement.destinations.front()))
        gone[id] = {};
    });
    rearrange(movements_, gone);
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
    each_movement(movements_, [&](const MovementId& id, const Movement& movement) {
      if (is_plain_copy(movement) && peer_of(movement) != movement.rank)
        copies[{memory(movement.sources.front()), memory(movement.destinations.front())}] = id;
    });
    Gone gone;
    each_movement(movements_, [&](const MovementId& id, const Movement& movement) {
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
      if (!keeps(movement)) gone[id] = back->second;
    });
    for (const auto& [id, in_its_place] : gone) {
      const Movement& other = at(movements_, id);
      Movement& kept = at(movements_, in_its_place);
      kept.swaps = true;
      // Both by the name of what the copies write: what they read is the same memory.
      kept.destinations.push_back(other.destinations.front());
      kept.sources = {kept.destinations[1], kept.destinations[0]};
      kept.after.insert(kept.after.end(), other.after.begin(), other.after.end());
    }
    rearrange(movements_, gone);
  }

  // Broadcasts.

  static bool wait_alike(const Movement& a, const Movement& b) {
    const auto list = [](const Movement& movement) {
      std::vector<std::pair<MovementId, bool>> all;
      for (const Movement::After& after : movement.after) all.emplace_back(after, after.loads_only);
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
    Gone gone;
    each_movement(movements_, [&](const MovementId& id, const Movement& movement) {
      const MovementId before{id.rank, id.stream, id.index - 1};
      if (id.index == 0 || gone.contains(before)) return;
      Movement& first = at(movements_, before);
      if (!can_share(first, movement)) return;
      first.destinations.push_back(movement.destinations.front());
      gone[id] = before;
    });
    if (gone.empty())
      throw Failure(
          fmt::format("no stream of '{}' copies one place to two other GPUs of a node in a row",
                      plan_.name),
          kOption, "command=broadcast has two destinations: choose command=copy");
    rearrange(movements_, gone);
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
    const auto queue = [&](const MovementId& id) {
      const std::size_t rank = index(id.rank), stream = index(id.stream);
      const std::size_t own =
          stream < peers[rank].size() ? queue_of(at(movements_, id), peers[rank][stream]) : 0;
      return static_cast<std::int32_t>(first(rank, stream) + own);
    };
    rearrange(movements_, {}, queue, streams);
    for (std::size_t c = 0; c < plan_.codes.size(); ++c) split_code(plan_.codes[c], width[c]);
  }

  /// Among those of its stream, whose peers are `order`; empty: it has one.
  std::size_t queue_of(const Movement& movement, const std::vector<int>& order) const {
    if (order.empty()) return 0;
    const int away = (peer_of(movement) - movement.rank + plan_.ranks) % plan_.ranks;
    return index(std::ranges::find(order, away) - order.begin());
  }

  void keep_order(const std::vector<std::vector<std::vector<int>>>& peers) {
    for (std::size_t rank = 0; rank < movements_.size(); ++rank) {
      for (std::size_t s = 0; s < peers[rank].size(); ++s) {
        auto& stream = movements_[rank][s];
        std::vector<std::size_t> queues;
        for (const Movement& movement : stream)
          queues.push_back(queue_of(movement, peers[rank][s]));
        for (std::size_t later = 1; later < stream.size(); ++later) {
          for (std::size_t earlier = 0; earlier < later; ++earlier) {
            if (queues[later] == queues[earlier]) continue;
            // Without places it is a meeting, which all that stands around it goes by.
            if (!stream[earlier].destinations.empty() && !stream[later].destinations.empty() &&
                !conflict(stream[earlier], stream[later]))
              continue;
            stream[later].after.push_back({{static_cast<int>(rank), static_cast<std::int32_t>(s),
                                            static_cast<std::int64_t>(earlier)}});
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
