// Cores: what a switch does for its multicast groups (NVLS): replicas, and answers that it reduces.

#include <algorithm>

#include "sim/device/cores.h"
#include "sim/result/trace.h"

namespace hemiola::sim {
// A request for a group is at its switch.
void Cores::count_multicast(std::int32_t id) {
  const Request& request = requests_[index(id)];
  const auto members =
      static_cast<std::int32_t>(program_.groups()[index(detail(request).group)].size());
  detail(request).children = members;
  ++tally().counters.multicasts;
  if (request.intent != Intent::multicast_load) return;
  ++tally().counters.multicast_loads;
  tally().counters.member_loads += members;
}

std::int32_t Cores::make_replica(std::int32_t id, int member, machine::LinkId down) {
  const std::int32_t child = allocate(false);
  Request& request = requests_[index(child)];
  const Request& parent = requests_[index(id)];
  request.spent = parent.spent;
  request.line = parent.line;
  request.bytes = parent.bytes;
  request.cu = 0;
  request.source = parent.source;
  request.target = static_cast<std::int16_t>(member);
  request.slice = static_cast<std::int16_t>(slice_of(member, parent.line));
  request.route = down;
  request.packet = parent.packet;
  Detail& replica = add_detail(request);
  replica.packet_flag = detail(parent).packet_flag;
  replica.packet_mask = detail(parent).packet_mask;
  replica.parent = id;
  if (tracing()) {
    const SpanId sender = sender_of(parent);
    spans_of(request).sender = sender;
  }
  request.intent =
      parent.intent == Intent::multicast_load ? Intent::member_load : Intent::member_store;
  if (request.intent == Intent::member_store && member != request.source)
    tally().counters.injected += request.bytes;
  return child;
}

// Order tag with which a member's answer comes to the switch.
std::uint32_t Cores::tag_of_answer(const Request& answer) const {
  return static_cast<std::uint32_t>((answer.target - answer.source + machine_.ranks()) %
                                    machine_.ranks());
}

// Loads are reduced one operand after the other; the last answer completes them, and stores.
Cores::Answered Cores::take_answer(std::int32_t id, std::int64_t now) {
  const Request& answer = requests_[index(id)];
  const std::int32_t parent_id = detail(answer).parent;
  Request& parent = requests_[index(parent_id)];
  const machine::NodeId node = machine_.links[index(answer.route)].from;
  const bool load = parent.intent == Intent::multicast_load;
  std::int64_t time = now;
  if (load) {
    Server& unit = fabric_.servers[index(fabric_.reduce_base + fabric_.node_index[index(node)])];
    time = std::max(now, unit.free) + fabric_.service(unit, answer.bytes, 0);
    unit.free = time;
    ++tally().counters.hops;
  }
  const bool last = --detail(parent).children == 0;
  if (last) parent.spent = answer.spent;
  release(id);
  if (!last) return {};
  if (load) time += machine_.nodes[index(node)].switch_model.reduce_latency.fs;
  parent.spent.charge(Reason::switch_, time - now);
  return {.parent = parent_id, .time = time};
}

}  // namespace hemiola::sim
