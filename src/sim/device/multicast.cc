#include "sim/device/multicast.h"

#include <algorithm>

#include "sim/device/tracing.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
std::int32_t Multicast::source_port(const Request& request) {
  if (!request.is_multicast()) return device_.fabric.path(request.route).source_port;
  return device_.fabric.port_of(plane_of(request).up);
}

void Multicast::count_multicast(std::int32_t id) {
  const Request& request = device_.request(id);
  const auto members = static_cast<std::int32_t>(
      device_.program.groups()[index(device_.detail(request).group)].size());
  device_.detail(request).children = members;
  ++device_.counters().multicasts;
  if (request.intent != Intent::multicast_load) return;
  ++device_.counters().multicast_loads;
  device_.counters().member_loads += members;
}

std::int32_t Multicast::make_replica(std::int32_t id, int member, machine::LinkId down) {
  const std::int32_t child = device_.allocate(false);
  Request& request = device_.request(child);
  const Request& parent = device_.request(id);
  request.spent = parent.spent;
  request.line = parent.line;
  request.bytes = parent.bytes;
  request.cu = 0;
  request.source = parent.source;
  request.target = static_cast<std::int16_t>(member);
  request.slice = static_cast<std::int16_t>(device_.slice_of(member, parent.line));
  request.route = down;
  request.packet = parent.packet;
  Detail& replica = device_.add_detail(request);
  replica.packet_flag = device_.detail(parent).packet_flag;
  replica.packet_mask = device_.detail(parent).packet_mask;
  replica.parent = id;
  if (device_.tracing()) {
    const SpanId sender = tracing_.sender_of(parent);
    device_.spans_of(request).sender = sender;
  }
  request.intent =
      parent.intent == Intent::multicast_load ? Intent::member_load : Intent::member_store;
  if (request.intent == Intent::member_store && member != request.source)
    device_.counters().injected += request.bytes;
  return child;
}

std::uint32_t Multicast::tag_of_answer(const Request& answer) const {
  return static_cast<std::uint32_t>((answer.target - answer.source + device_.machine.ranks()) %
                                    device_.machine.ranks());
}

// Loads are reduced one operand after the other; the last answer completes them, and stores.
Multicast::Answered Multicast::take_answer(std::int32_t id, std::int64_t now) {
  const Request& answer = device_.request(id);
  const std::int32_t parent_id = device_.detail(answer).parent;
  Request& parent = device_.request(parent_id);
  const machine::NodeId node = device_.machine.links[index(answer.route)].from;
  const bool load = parent.intent == Intent::multicast_load;
  std::int64_t time = now;
  if (load) {
    Server& unit =
        device_.server(device_.fabric.reduce_base + device_.fabric.node_index[index(node)]);
    time = std::max(now, unit.free) + device_.fabric.service(unit, answer.bytes, 0);
    unit.free = time;
    ++device_.counters().hops;
  }
  const bool last = --device_.detail(parent).children == 0;
  if (last) parent.spent = answer.spent;
  device_.release(id);
  if (!last) return {};
  if (load) time += device_.machine.nodes[index(node)].switch_model.reduce_latency.fs;
  parent.spent.charge(Reason::switch_, time - now);
  return {.parent = parent_id, .time = time};
}

}  // namespace hemiola::sim
