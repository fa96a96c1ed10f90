#include "sim/device/servers.h"

#include <algorithm>

#include "sim/model/arbitration.h"

namespace hemiola::sim {
std::int64_t Servers::serve(std::int32_t id, Request& request, std::int64_t arrival) {
  Server& server = device_.server(id);
  const ServerKind& kind = device_.fabric.kinds[index(server.kind)];
  // On chip a request without payload has the size of a control packet; on links its header.
  std::int64_t payload = request.carried;
  if (!kind.counts_wire && payload == 0)
    payload = device_.model(request.source).noc_control_size.count;
  const std::int64_t packet = kind.counts_wire && request.intent == Intent::burst
                                  ? device_.engines[index(device_.detail(request).engine)].packet
                                  : 0;
  const std::int64_t start = std::max(arrival, server.free);
  const std::int64_t departure = start + device_.fabric.service(server, payload, packet);
  server.free = departure;
  server.max_wait = std::max(server.max_wait, start - arrival);
  ++device_.counters().hops;
  request.spent.charge(kind.reason, departure - arrival);
  if (device_.options.trace != nullptr) {
    if (kind.counts_wire) {
      const std::int64_t wire =
          device_.machine.link_classes[index(kind.link_class)].wire_bytes(payload, packet);
      // Requests ahead of it when it came, in units of its own service.
      const std::int64_t ahead = (start - arrival + departure - start - 1) / (departure - start);
      device_.options.trace->link(id - device_.fabric.link_base, wire, static_cast<int>(ahead),
                                  {start}, {departure});
    }
    if (device_.options.trace->wants_requests({arrival})) {
      device_.options.trace->request(request.source, name_of(kind.reason), "request", {arrival},
                                     {departure});
    }
  }
  return departure;
}

std::int32_t Servers::take_next(Arbiter& arbiter) const {
  bool take_data = arbiter.control.empty();
  if (!arbiter.control.empty() && !arbiter.data.empty()) {
    const auto waiting = [&](const std::deque<std::int32_t>& queue) {
      return WaitingQueue{.requests = std::ssize(queue),
                          .since = device_.request(queue.front()).queued_at};
    };
    take_data = pick_function(arbiter.policy)(waiting(arbiter.control), waiting(arbiter.data),
                                              arbiter.memory) == Traffic::data;
  }
  std::deque<std::int32_t>& queue = take_data ? arbiter.data : arbiter.control;
  const std::int32_t id = queue.front();
  queue.pop_front();
  return id;
}

// Numbers are equal on all GPUs alike, and below those of wavefronts (kFirstWaveTag).
std::uint32_t Servers::complete_tag(int rank, Return way, std::int32_t cu_or_port) const {
  return 1 + static_cast<std::uint32_t>(static_cast<std::int32_t>(way) * device_.layout(rank).cus +
                                        cu_or_port);
}

}  // namespace hemiola::sim
