// The line engine: what a trace writer is told, as Servers::serve() tells it.

#include "sim/line/line.h"

namespace hemiola::sim {
// A request was at a server, queue and service.
void Line::show(const Request& request, Reason reason, std::int64_t arrival,
                std::int64_t departure) const {
  if (!device_.options.trace->wants_requests({arrival})) return;
  device_.options.trace->request(request.source, name_of(reason), "request", {arrival},
                                 {departure});
}

void Line::show_link(const Request& request, std::int32_t link, std::int64_t service,
                     std::int64_t arrival, std::int64_t departure) const {
  const bool back = request.stage == Stage::back_out;
  const std::int64_t payload = back == is_load(request.intent) ? request.bytes : 0;
  // Requests ahead of it when it came, in units of its own service.
  const std::int64_t ahead = (departure - arrival - 1) / service;
  device_.options.trace->link(
      link, device_.machine.class_of(link).wire_bytes(payload, packet_of(request)),
      static_cast<int>(ahead), {departure - service}, {departure});
  show(request, Reason::link, arrival, departure);
}

}  // namespace hemiola::sim
