// Cores: what ways consist of: servers, order tags of completions.

#include <algorithm>

#include "sim/device/cores.h"
#include "sim/model/arbitration.h"

namespace hemiola::sim {
std::int64_t Cores::serve(std::int32_t id, Request& request, std::int64_t arrival) {
  Server& server = fabric_.servers[index(id)];
  const ServerKind& kind = fabric_.kinds[index(server.kind)];
  // On chip a request without payload has the size of a control packet; on links its header.
  std::int64_t payload = request.carried;
  if (!kind.counts_wire && payload == 0)
    payload = machine_.model(request.source).noc_control_size.count;
  const std::int64_t packet = kind.counts_wire && request.intent == Intent::burst
                                  ? engines_[index(detail(request).engine)].packet
                                  : 0;
  const std::int64_t start = std::max(arrival, server.free);
  const std::int64_t departure = start + fabric_.service(server, payload, packet);
  server.free = departure;
  server.max_wait = std::max(server.max_wait, start - arrival);
  ++tally().counters.hops;
  request.spent.charge(kind.reason, departure - arrival);
  if (options_.trace != nullptr) {
    if (kind.counts_wire) {
      const std::int64_t wire =
          machine_.link_classes[index(kind.link_class)].wire_bytes(payload, packet);
      // Requests ahead of it when it came, in units of its own service.
      const std::int64_t ahead = (start - arrival + departure - start - 1) / (departure - start);
      options_.trace->link(id - fabric_.link_base, wire, static_cast<int>(ahead), {start},
                           {departure});
    }
    if (options_.trace->wants_requests({arrival})) {
      options_.trace->request(request.source, name_of(kind.reason), "request", {arrival},
                              {departure});
    }
  }
  return departure;
}

// Which of what waits at a server is served next; it waits no longer.
std::int32_t Cores::take_next(Arbiter& arbiter) const {
  bool take_data = arbiter.control.empty();
  if (!arbiter.control.empty() && !arbiter.data.empty()) {
    const auto waiting = [&](const std::deque<std::int32_t>& queue) {
      return WaitingQueue{.requests = std::ssize(queue),
                          .since = requests_[index(queue.front())].queued_at};
    };
    take_data = pick_function(arbiter.policy)(waiting(arbiter.control), waiting(arbiter.data),
                                              arbiter.memory) == Traffic::data;
  }
  std::deque<std::int32_t>& queue = take_data ? arbiter.data : arbiter.control;
  const std::int32_t id = queue.front();
  queue.pop_front();
  return id;
}

std::int32_t Cores::source_port(const Request& request) {
  if (!request.is_multicast()) return fabric_.path(request.route).source_port;
  return fabric_.port_of(planes(detail(request).group, request.source)[index(request.route)].up);
}

// Numbers are equal on all GPUs alike, and below those of wavefronts (kFirstWaveTag).
std::uint32_t Cores::complete_tag(int rank, Return way, std::int32_t cu_or_port) const {
  return 1 + static_cast<std::uint32_t>(
                 static_cast<std::int32_t>(way) * fabric_.layout[index(rank)]->cus + cu_or_port);
}

}  // namespace hemiola::sim
