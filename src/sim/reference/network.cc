// The reference engine: ways through servers, explicit queues, credits, switches.

#include <algorithm>

#include "sim/model/receive_buffers.h"
#include "sim/reference/reference.h"

namespace hemiola::sim {
namespace {

/// Phases of an instant, behind all that arrives.
constexpr std::uint32_t kPicks = 1U << 28, kAfterPicks = 2U << 28;

}  // namespace

void Reference::begin_leg(std::int32_t id, Stage stage, const Leg& leg, std::int32_t base,
                          std::int64_t now, std::int32_t payload) {
  Request& request = device_.request(id);
  request.stage = stage;
  request.follow(leg, base);
  request.carried = payload;
  travel(id, now, false);
}

// A request goes on until it has to be accepted in the order of several inputs (an event), queues
// explicitly, or reaches memory or its issuer.
void Reference::travel(std::int32_t id, std::int64_t now, bool accepted) {
  std::int64_t time = now;
  for (;;) {
    Request& request = device_.request(id);
    if (request.hop == request.hop_count) {
      const bool local = request.target == request.source;
      switch (request.stage) {
        case Stage::out:
          if (request.is_multicast()) {
            const MulticastPlane& plane = multicast_.plane_of(request);
            request.stage = Stage::forward;
            request.follow(device_.fabric.link_leg(plane.up, -1), 0);
            continue;
          }
          if (local) break;
          request.stage = Stage::forward;
          request.follow(device_.fabric.path(request.route).forward, 0);
          continue;
        case Stage::forward: {
          if (request.is_multicast()) {
            push(time, kSwitch, id);
            return;
          }
          const std::int32_t port =
              request.is_member()
                  ? device_.fabric.port_of(device_.fabric.reverse[index(request.route)])
                  : device_.fabric.path(request.route).destination_port;
          request.stage = Stage::in;
          request.follow(device_.layout(request.target).port_to_slice(port, request.slice),
                         device_.fabric.gpu_base[index(request.target)]);
          continue;
        }
        case Stage::back_out:
          if (local && !request.is_member()) break;
          request.stage = Stage::back;
          request.follow(request.is_member() ? device_.fabric.link_leg(
                                                   device_.fabric.reverse[index(request.route)], -1)
                                             : device_.fabric.path(request.route).reverse,
                         0);
          continue;
        case Stage::back: {
          if (request.is_member()) {
            // Before the links take anything at that time (their inputs from elsewhere have tags
            // from 1 on): what a switch has heard of last goes to them at once. Inputs of members'
            // links: of equal relative ranks the one with the lower number.
            events_.push_as(std::uint64_t{multicast_.tag_of_answer(request)} << 32 |
                                static_cast<std::uint32_t>(request.route),
                            time, 0, kAnswer, id);
            return;
          }
          const std::int32_t port = multicast_.source_port(request);
          request.stage = Stage::home;
          request.follow(
              device_.layout(request.source).port_to_cu(port, request.cu, request.carried > 0),
              device_.fabric.gpu_base[index(request.source)]);
          continue;
        }
        default:
          break;
      }
      if (request.stage == Stage::in || request.stage == Stage::out)
        push(time, kLegEnd, id, 0, request.end_tag);
      else
        push(time, kComplete, id, 0, way_home(request));
      return;
    }
    const Hop& hop = request.hops[request.hop];
    const std::int32_t server = request.base + hop.server;
    const Server& s = device_.server(server);
    if (device_.fabric.kinds[index(s.kind)].merges && !accepted) {
      // What the slices answer is one input, in the order in which they accepted it, whenever
      // their answers were ready.
      if (request.hop == 0 && (request.stage == Stage::back_out || request.intent == Intent::burst))
        push_answer(time, id, kHop, hop.tag);
      else
        push(time, kHop, id, 0, hop.tag);
      return;
    }
    accepted = false;
    if (request.in_link >= 0 && !arbiter_of(device_.fabric, request.in_link).input.empty()) {
      enqueue(server, id, time);  // in order behind what waits in the same receive buffer
      return;
    }
    if (s.arbiter >= 0) {
      enqueue(server, id, time);
      return;
    }
    const std::int64_t departure = servers_.serve(server, request, time);
    // A link without an explicit queue takes the request at once; a port holds it until it has
    // served it.
    if (request.in_link >= 0)
      leave_buffer(request, device_.fabric.kinds[index(s.kind)].counts_wire ? time : departure);
    request.spent.charge(hop.latency_reason, hop.latency);
    request.spent.charge(hop.node_reason, hop.node_latency);
    time = departure + hop.latency + hop.node_latency;
    ++request.hop;
  }
}

// The order tag with which a request comes back to its CU.
std::uint32_t Reference::way_home(const Request& request) {
  const bool through_cu_in = request.stage == Stage::back_out || request.carried > 0;
  if (through_cu_in)
    return servers_.complete_tag(request.source, Servers::Return::cu_in, request.cu);
  return servers_.complete_tag(request.source, Servers::Return::port,
                               multicast_.source_port(request));
}

// Arrives at a server with explicit queues, or behind others in its receive buffer.
void Reference::enqueue(std::int32_t server, std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  request.queued_at = now;
  if (request.in_link >= 0 && waits_for_room(device_.fabric, request.in_link, server, id)) return;
  enter_queue(server, id, now);
}

void Reference::enter_queue(std::int32_t server, std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  if (request.in_link >= 0) leave_buffer(request, now);
  Arbiter& arbiter = arbiter_of(device_.fabric, server);
  arbiter.add(id, request.carried == 0 || request.intent == Intent::flag);
  schedule_pick(server, std::max(now, device_.server(server).free));
}

// A pick is an event of the second phase: every request that arrives at its time is in the queues.
void Reference::schedule_pick(std::int32_t server, std::int64_t at) {
  Arbiter& arbiter = arbiter_of(device_.fabric, server);
  if (arbiter.pick_at >= 0 && arbiter.pick_at <= at) return;
  arbiter.pick_at = at;
  events_.push(at, kPicks, kPick, server);
}

void Reference::pick(std::int32_t server, std::int64_t now) {
  Server& s = device_.server(server);
  Arbiter& arbiter = arbiter_of(device_.fabric, server);
  if (arbiter.pick_at != now) return;  // an earlier pick took its place
  arbiter.pick_at = -1;
  if (arbiter.queued() == 0 || (arbiter.has_credits && arbiter.credits == 0)) return;
  if (s.free > now) {
    schedule_pick(server, s.free);
    return;
  }
  const std::int32_t id = servers_.take_next(arbiter);
  if (arbiter.has_credits) {
    --arbiter.credits;
    ++device_.counters().credits_taken;
  }
  Request& request = device_.request(id);
  const ServerKind& kind = device_.fabric.kinds[index(s.kind)];
  request.spent.charge(kind.reason, now - request.queued_at);
  const std::int64_t departure = servers_.serve(server, request, now);
  const Hop& hop = request.hops[request.hop];
  request.spent.charge(hop.latency_reason, hop.latency);
  request.spent.charge(hop.node_reason, hop.node_latency);
  ++request.hop;
  if (kind.counts_wire) request.in_link = server;
  if (!arbiter.blocked.empty()) {
    if (freed_.empty()) events_.push(now, kAfterPicks, kAdmit, 0);
    freed_.push_back(server);
  }
  if (arbiter.queued() > 0) schedule_pick(server, departure);
  travel(id, departure + hop.latency + hop.node_latency, false);
}

// The request gives its slot of the receive buffer back; the credit travels to the sender.
void Reference::leave_buffer(Request& request, std::int64_t now) {
  const Arbiter& in = arbiter_of(device_.fabric, request.in_link);
  if (in.has_credits) push(now + in.credit_latency, kCredit, request.in_link);
  request.in_link = -1;
}

// After all picks of the instant (tag: behind those).
void Reference::admit_freed(std::int64_t now) {
  const auto wanted = [&](std::int32_t id) {
    const Request& request = device_.request(id);
    const Hop& hop = request.hops[request.hop];
    return WantedQueue{request.base + hop.server, hop.tag};
  };
  admit(device_.fabric, freed_, wanted,
        [&](std::int32_t server, std::int32_t id) { enter_queue(server, id, now); });
}

// Replication: a store goes to every member, a load asks every member.
void Reference::at_switch(std::int32_t id, std::int64_t now) {
  if (device_.request(id).in_link >= 0)
    leave_buffer(device_.request(id), now);  // replicated at once
  const std::int32_t group = device_.detail(device_.request(id)).group;
  const MulticastPlane& plane =
      multicast_.planes(group, device_.request(id).source)[index(device_.request(id).route)];
  multicast_.count_multicast(id);
  for (const int member : device_.program.groups()[index(group)]) {
    const machine::LinkId down = plane.down_to(member);
    const std::int32_t child = multicast_.make_replica(id, member, down);
    const Request& request = device_.request(child);
    begin_leg(child, Stage::forward, device_.fabric.link_leg(down, plane.up), 0, now,
              request.intent == Intent::member_store ? request.bytes : 0);
  }
}

// A member answered.
void Reference::answer_parent(std::int32_t id, std::int64_t now) {
  if (device_.request(id).in_link >= 0) leave_buffer(device_.request(id), now);
  const Multicast::Answered answered = multicast_.take_answer(id, now);
  if (answered.parent < 0) return;
  const Request& parent = device_.request(answered.parent);
  const MulticastPlane& plane = multicast_.plane_of(parent);
  const bool load = parent.intent == Intent::multicast_load;
  begin_leg(answered.parent, Stage::back,
            device_.fabric.link_leg(device_.fabric.reverse[index(plane.up)], -1), 0, answered.time,
            load ? parent.bytes : 0);
}

}  // namespace hemiola::sim
