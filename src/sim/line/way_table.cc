#include "sim/line/way_table.h"

#include "sim/device/multicast.h"
#include "sim/line/stages.h"

namespace hemiola::sim {

void WayTable::add_ways(std::int32_t route) {
  const std::lock_guard lock(making_ways_);
  for (std::int32_t r = ways_made_.load(std::memory_order_relaxed); r <= route; ++r) {
    const Path& path = device_.fabric.path(r);
    const auto end = [&](machine::NodeId node) {
      const int rank = device_.fabric.rank_of(node);
      return device_.options.replay == nullptr ? device_.home(rank) : rank;
    };
    ways_.reserve(index(r));
    Way& way = ways_[index(r)] = make_way(path.forward, path.reverse);
    way.forward.out_port = way.back.in_port = static_cast<std::int16_t>(path.source_port);
    way.forward.in_port = way.back.out_port = static_cast<std::int16_t>(path.destination_port);
    way.back.to = end(device_.machine.links[index(path.links.front())].from);
    way.forward.to = end(device_.machine.links[index(path.links.back())].to);
    ways_made_.store(r + 1, std::memory_order_release);
  }
}

Way WayTable::make_way(const Leg& forward, const Leg& back) const {
  Way way;
  way.hops = std::make_unique<LinkHop[]>(index(forward.count + back.count));
  LinkHop* hops = way.hops.get();
  for (auto [leg, made] : {std::pair(&forward, &way.forward), std::pair(&back, &way.back)}) {
    made->hops = hops;
    made->count = static_cast<std::int16_t>(leg->count);
    for (std::int32_t h = 0; h < leg->count; ++h) {
      const Hop& hop = leg->hops[h];
      *hops++ = {.link = hop.server - device_.fabric.link_base,
                 .tag = hop.tag,
                 .reason = hop.node_reason,
                 .latency = hop.latency,
                 .node_latency = hop.node_latency};
    }
  }
  return way;
}

bool WayTable::multicasts(const program::Bound& program) {
  for (const program::Body& body : program.bodies()) {
    for (const program::Op& op : body.ops) {
      for (const auto* operands : {&op.src, &op.dst})
        for (const program::Operand& operand : *operands)
          if (program::is_multicast(operand.access)) return true;
    }
  }
  return false;
}

void WayTable::make_groups() {
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
          stage = static_cast<std::int32_t>(stages_.switches.size());
          stages_.switches.push_back({.answers = {}, .node = plane.node});
        }
        add_replication(plane, rank, members, stage);
      }
    }
  }
}

void WayTable::add_replication(const MulticastPlane& plane, int rank,
                               const std::vector<int>& members, std::int32_t stage) {
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

void WayTable::prepare_multicast(Request& request) const {
  request.group = true;
  request.base = first_replication_.at(
                     pair_key(device_.details[index(request.detail)].group, request.source)) +
                 request.route;
}

const WayLeg& WayTable::leg_of_group(const Request& request) const {
  const Way& way = request.is_member() ? replica_ways_[index(request.base)]
                                       : replications_[index(request.base)].way;
  return request.stage == Stage::back_out ? way.back : way.forward;
}

}  // namespace hemiola::sim
