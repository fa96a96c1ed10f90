// Receive buffers in front of a switch with finite queues (docs/model.md, "Credits and finite
// queues"): what does not find room in its queue waits in the buffer of the link it came over, and
// so does everything behind it. One definition for all engines that simulate requests.
#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <tuple>
#include <vector>

#include "sim/model/fabric.h"

namespace hemiola::sim {

/// The links that leave a switch with finite queues, as far as the line engine needs them together.
struct FiniteSwitch {
  struct Pick {
    std::int64_t time;    ///< fs
    std::int32_t server;  ///< of the link
    auto operator<=>(const Pick&) const = default;
  };
  std::vector<Pick> picks;   ///< heap; those at another time than Arbiter::pick_at hold no more
  std::int64_t marked = -1;  ///< fs: the pick that stands in its calendar
};

/// The queue that a request at the head of a receive buffer waits for: the server of the link it
/// goes on over, and the order tag with which it arrives.
struct WantedQueue {
  std::int32_t server = 0;
  std::uint32_t tag = 0;
};

inline Arbiter& arbiter_of(Fabric& fabric, std::int32_t server) {
  return fabric.arbiters[index(fabric.servers[index(server)].arbiter)];
}

inline bool has_room(const Arbiter& queue) {
  return queue.limit == 0 || queue.queued() < queue.limit;
}

/// Request `id` has come over the link with server `in_link` and goes on over `server`. True: it
/// waits in the receive buffer; else it enters its queue.
inline bool waits_for_room(Fabric& fabric, std::int32_t in_link, std::int32_t server,
                           std::int32_t id) {
  Arbiter& in = arbiter_of(fabric, in_link);
  if (in.input.empty()) {
    Arbiter& queue = arbiter_of(fabric, server);
    if (has_room(queue)) return false;
    queue.blocked.push_back(in_link);
  }
  in.input.push_back(id);
  return true;
}

/// After the picks of an instant: heads of receive buffers enter the queues `freed` (servers; any
/// order, twice at most harmless), oldest first. What was behind them comes to wait at that
/// instant: in turns, those of one turn that want the same queue by their order tags. So nothing
/// depends on which of several links picked first. `wanted(id)` is a WantedQueue; `enter(server,
/// id)` puts the request into its queue.
template <typename Wanted, typename Enter>
void admit(Fabric& fabric, std::vector<std::int32_t>& freed, Wanted wanted, Enter enter) {
  struct Head {
    WantedQueue queue;
    std::int32_t in_link;
  };
  std::vector<Head> heads;
  while (!freed.empty()) {
    heads.clear();
    for (const std::int32_t server : freed) {
      Arbiter& queue = arbiter_of(fabric, server);
      while (!queue.blocked.empty() && has_room(queue)) {
        const std::int32_t in_link = queue.blocked.front();
        queue.blocked.pop_front();
        Arbiter& in = arbiter_of(fabric, in_link);
        const std::int32_t id = in.input.front();
        in.input.pop_front();
        enter(server, id);
        if (!in.input.empty()) heads.push_back({wanted(in.input.front()), in_link});
      }
    }
    std::ranges::sort(heads, [](const Head& a, const Head& b) {
      return std::tie(a.queue.server, a.queue.tag) < std::tie(b.queue.server, b.queue.tag);
    });
    freed.clear();
    for (const Head& head : heads) {
      arbiter_of(fabric, head.queue.server).blocked.push_back(head.in_link);
      freed.push_back(head.queue.server);
    }
  }
}

}  // namespace hemiola::sim
