// The line engine: multicast groups (NVLS). A switch replicates a request as it comes, and has a
// stage for what members answer: behind the GPUs, before its links to them.

#include <algorithm>

#include "sim/line/line.h"

namespace hemiola::sim {
bool Line::multicasts(const program::Bound& program) {
  for (const program::Body& body : program.bodies()) {
    for (const program::Op& op : body.ops) {
      for (const auto* operands : {&op.src, &op.dst})
        for (const program::Operand& operand : *operands)
          if (program::is_multicast(operand.access)) return true;
    }
  }
  return false;
}

// The ways of every simulated rank to its groups, and of their replicas.
void Line::make_groups_of_switches() {
  if (!multicasts(device_.program)) return;
  std::vector<std::int32_t> stage_at(device_.machine.nodes.size(), -1);
  for (std::size_t g = 0; g < device_.program.groups().size(); ++g) {
    const std::vector<int>& members = device_.program.groups()[g];
    if (device_.machine.multicast_switches(members).empty()) continue;  // told where it is used
    const auto group = static_cast<std::int32_t>(g);
    for (const int rank : members) {
      first_replication_[pair_key(group, rank)] = static_cast<std::int32_t>(replications_.size());
      for (const MulticastPlane& plane : multicast_.planes(group, rank)) {
        std::int32_t& stage = stage_at[index(plane.node)];
        if (stage < 0) {
          stage = static_cast<std::int32_t>(switches_.size());
          switches_.push_back({.answers = {}, .node = plane.node});
        }
        add_replication(plane, rank, members, stage);
      }
    }
  }
}

void Line::add_replication(const MulticastPlane& plane, int rank, const std::vector<int>& members,
                           std::int32_t stage) {
  const auto port = [&](machine::LinkId link) {
    return static_cast<std::int16_t>(device_.fabric.port_of(link));
  };
  const auto way = [&](machine::LinkId there, machine::LinkId from) {
    return make_way(device_.fabric.link_leg(there, from),
                    device_.fabric.link_leg(device_.fabric.reverse[index(there)], -1));
  };
  Replication made{.way = way(plane.up, -1), .replicas = {}};
  made.way.forward.out_port = made.way.back.in_port = port(plane.up);
  made.way.forward.to = at_switch_of(stage);
  made.way.back.to = rank;
  for (const int member : members) {
    const machine::LinkId down = plane.down_to(member);
    made.replicas.push_back({member, down, static_cast<std::int32_t>(replica_ways_.size())});
    Way& replica = replica_ways_.emplace_back(way(down, plane.up));
    replica.forward.in_port = replica.back.out_port = port(device_.fabric.reverse[index(down)]);
    replica.forward.to = member;
    replica.back.to = at_switch_of(stage);
  }
  replications_.push_back(std::move(made));
}

// Before its links to GPUs, with which it keeps step.
void Line::place_switches() {
  for (Switch& at : switches_) {
    std::int64_t offset = 0;
    for (std::size_t l = 0; l < links_.size(); ++l) {
      const std::int32_t merge = links_[l].calendar;  // none: to a GPU outside the job
      if (device_.machine.links[l].from != at.node || merge < 0) continue;
      offset = std::max(offset, merges_[index(merge)].begin_of(0));
    }
    at.answers.set(shift_, offset);
    at.answers.use(workers_[index(at.worker)].spare);
  }
}

void Line::prepare_multicast(Request& request) const {
  request.group = true;
  request.base = first_replication_.at(
                     pair_key(device_.details[index(request.detail)].group, request.source)) +
                 request.route;
}

const WayLeg& Line::leg_of_group(const Request& request) const {
  const Way& way = request.is_member() ? replica_ways_[index(request.base)]
                                       : replications_[index(request.base)].way;
  return request.stage == Stage::back_out ? way.back : way.forward;
}

// At the switch: a request is replicated at once, a member's answer takes its turn.
void Line::at_switch(std::int32_t id, const WayLeg& leg, std::int64_t now) {
  const Request& request = device_.request(id);
  if (request.is_member()) {
    Switch& at = switches_[index(switch_of(leg.to))];
    push_far(at.worker, at.answers, {now, multicast_.tag_of_answer(request), id});
    return;
  }
  multicast_.count_multicast(id);
  for (const Replica& replica : replications_[index(request.base)].replicas) {
    const std::int32_t child_id = multicast_.make_replica(id, replica.member, replica.down);
    Request& child = device_.request(child_id);
    child.stage = Stage::out;
    child.size = request.size;
    child.link = 0;
    child.local = false;
    child.group = true;
    child.base = replica.way;
    walk(child_id, child, replica_ways_[index(replica.way)].forward, now);
  }
}

void Line::run_switch(Switch& at, std::int64_t round) {
  std::vector<Arrival>& taken = mine().taken;
  if (!at.answers.take(round, taken)) return;
  sort_arrivals(taken, mine().scratch, at.answers.begin_of(round), shift_,
                [&](const Arrival& a, const Arrival& b) {
                  if (a.time != b.time) return a.time < b.time;
                  if (a.tag != b.tag) return a.tag < b.tag;
                  return device_.request(a.id).route < device_.request(b.id).route;
                });
  for (const Arrival& arrival : taken) {
    const Multicast::Answered answered = multicast_.take_answer(arrival.id, arrival.time);
    if (answered.parent < 0) continue;
    Request& parent = device_.request(answered.parent);
    parent.stage = Stage::back_out;
    parent.link = 0;
    walk(answered.parent, parent, leg_of(parent), answered.time);
  }
}

}  // namespace hemiola::sim
