#include "sim/bound/traffic.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace hemiola::sim {
namespace {

using machine::LinkId;
using machine::NodeId;

// Rounding to whole femtoseconds per request may go down: half of one for each of them.
Time below(Time time) {
  return {time.fs - time.fs / 20'000};
}

/// Nodes that links of a class leave, or enter, put together: what the first member of a class of
/// workgroups sends out of one of them, the other members send out of any of them.
class Together {
 public:
  /// `crossed`: by link, whether it counts.
  Together(const machine::Machine& machine, const Classes& classes,
           const std::vector<bool>& crossed, bool leaves)
      : root_(machine.nodes.size()) {
    std::iota(root_.begin(), root_.end(), 0);
    std::vector<NodeId> node_of(index(classes.link_classes()), -1);
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      const std::int32_t of = classes.link_class(static_cast<LinkId>(l));
      if (of < 0) continue;
      const NodeId node = leaves ? machine.links[l].from : machine.links[l].to;
      NodeId& first = node_of[index(of)];
      if (first < 0) first = node;
      root_[index(find(node))] = find(first);
    }
    for (std::size_t l = 0; l < machine.links.size(); ++l) {
      const NodeId node = leaves ? machine.links[l].from : machine.links[l].to;
      if (crossed[l]) links_[find(node)].push_back(static_cast<LinkId>(l));
    }
  }

  NodeId find(NodeId node) {
    while (root_[index(node)] != node) node = root_[index(node)] = root_[index(root_[index(node)])];
    return node;
  }
  const std::vector<LinkId>& links(NodeId root) { return links_[root]; }

 private:
  std::vector<NodeId> root_;
  std::map<NodeId, std::vector<LinkId>> links_;
};

}  // namespace

void LinkTraffic::Cut::add(std::span<const Crossing> used, std::int64_t bytes) {
  wire += bytes;
  for (const auto& [node, link] : used) {
    const auto at = std::lower_bound(links.begin(), links.end(), link);
    if (at == links.end() || *at != link) links.insert(at, link);
  }
}

void LinkTraffic::repeat(int period, int ranks, const std::vector<std::vector<int>>& groups) {
  for (const auto& [key, pair] : std::map(groups_)) {
    for (int by = period; by < ranks; by += period) {
      std::vector<int> moved;
      for (const int member : groups[index(key.group)]) moved.push_back((member + by) % ranks);
      const auto same = [&](const std::vector<int>& other) {
        return std::is_permutation(other.begin(), other.end(), moved.begin(), moved.end());
      };
      const auto found = std::ranges::find_if(groups, same);
      if (found == groups.end()) continue;  // then the bound is lower
      groups_[{(key.rank + by) % ranks, static_cast<std::int32_t>(found - groups.begin()),
               key.load}]
          .add(pair.payload, pair.requests);
    }
  }
  LineMap<Pair> all = pairs_;
  pairs_.for_each([&](std::int64_t number, const Pair& pair) {
    const auto [from, to] = ranks_of(number);
    for (int by = period; by < ranks; by += period) {
      const int moved = (from + by) % ranks, other = (to + by) % ranks;
      // Lines become packets of a NIC, which are fewer.
      const bool as_lines = machine_.reach(from, to) == machine_.reach(moved, other);
      all[pair_number(moved, other)].add(pair.payload, as_lines ? pair.requests : 1);
    }
  });
  std::swap(pairs_, all);
}

LowerBound LinkTraffic::bound(const std::vector<std::vector<int>>& groups,
                              const Classes* classes) const {
  Crossings all = crossings(groups);
  if (classes != nullptr) all = of_all_members(all, groups, *classes);
  LowerBound bound;
  const auto consider = [&bound](Rate rate, std::int64_t bytes, const auto& name) {
    if (rate.is_ideal() || rate.bytes_per_second == 0) return;
    // Each of the requests is rounded up to a femtosecond at most: stay below.
    const Time time = below(rate.time_for(bytes));
    if (time <= bound.bandwidth) return;
    bound.bandwidth = time;
    bound.bottleneck = name();
  };
  const auto together = [](const auto& all_of, const auto& rate_of) {
    Rate sum{0};
    for (const auto& one : all_of) {
      const Rate rate = rate_of(one);
      if (rate.is_ideal()) return rate;
      sum.bytes_per_second += rate.bytes_per_second;
    }
    return sum;
  };
  const auto rate_of_link = [&](LinkId link) { return machine_.class_of(link).bandwidth; };
  const auto name_of = [&](NodeId node) { return machine_.nodes[index(node)].name; };
  for (const auto& [key, cut] : all.cuts) {
    const auto& [node, leaves] = key;
    consider(together(cut.links, rate_of_link), cut.wire,
             [&] { return (leaves ? "out of " : "into ") + name_of(node); });
  }
  for (const auto& [switches, bytes] : all.reduced) {
    const auto rate_of = [&](NodeId node) {
      return machine_.nodes[index(node)].switch_model.reduce_rate;
    };
    consider(together(switches, rate_of), bytes,
             [&] { return "added up in " + name_of(switches.front()); });
  }
  for (const auto& [link, cut] : all.single) {
    const machine::Link& l = machine_.links[index(link)];
    consider(together(cut.links, rate_of_link), cut.wire,
             [&] { return name_of(l.from) + " -> " + name_of(l.to); });
  }
  return bound;
}

LinkTraffic::Crossings LinkTraffic::crossings(const std::vector<std::vector<int>>& groups) const {
  Crossings all;
  for (const auto& [key, pair] : groups_) add_group_cuts(key, pair, groups, all);
  std::vector<Crossing> out, in;  // of all paths of a pair
  pairs_.for_each([&](std::int64_t number, const Pair& pair) {
    const auto [from, to] = ranks_of(number);
    const machine::Routes& routes = machine_.routes(from, to);
    if (routes.count == 0) return;
    out.clear();
    in.clear();
    for (std::int32_t p = 0; p < routes.count; ++p) {
      for (const LinkId link : routes.path(p)) {
        const machine::Link& l = machine_.links[index(link)];
        out.emplace_back(l.from, link);
        in.emplace_back(l.to, link);
        if (routes.count == 1) all.single[link].add({&out.back(), 1}, wire(link, pair));
      }
    }
    add_cuts(out, true, routes.count, pair, all.cuts);
    add_cuts(in, false, routes.count, pair, all.cuts);
  });
  return all;
}

/// By link, whether one of its class is in a cut, or switches of a group are behind it.
std::vector<bool> LinkTraffic::crossed_by_members(const Crossings& first,
                                                  const std::vector<std::vector<int>>& groups,
                                                  const Classes& classes) const {
  std::vector<bool> of_class(index(classes.link_classes()), false);
  for (const auto& [key, cut] : first.cuts)
    for (const LinkId link : cut.links)
      if (classes.link_class(link) >= 0) of_class[index(classes.link_class(link))] = true;
  std::vector<bool> crossed(machine_.links.size(), false);
  for (std::size_t l = 0; l < crossed.size(); ++l) {
    const std::int32_t of = classes.link_class(static_cast<LinkId>(l));
    crossed[l] = of >= 0 && of_class[index(of)];
  }
  for (const std::vector<int>& members : groups) {
    const std::vector<NodeId> switches = machine_.multicast_switches(members);
    for (const int member : members)
      for (const bool leaves : {false, true})
        for (const auto& [node, link] : lanes_of(member, switches, leaves))
          crossed[index(link)] = true;
  }
  return crossed;
}

/// A class of links carries what its first members were found to carry; all that links of like
/// nodes carry is over all of them.
LinkTraffic::Crossings LinkTraffic::of_all_members(const Crossings& first,
                                                   const std::vector<std::vector<int>>& groups,
                                                   const Classes& classes) const {
  Crossings all;
  std::map<bool, Together> nodes;
  const std::vector<bool> crossed = crossed_by_members(first, groups, classes);
  for (const bool leaves : {false, true})
    nodes.try_emplace(leaves, machine_, classes, crossed, leaves);
  for (const auto& [key, cut] : first.cuts) {
    Together& like = nodes.at(key.second);
    const NodeId root = like.find(key.first);
    Cut& together = all.cuts[{root, key.second}];
    together.links = like.links(root);
    together.wire += cut.wire;
  }
  std::vector<std::vector<LinkId>> links(index(classes.link_classes()));
  for (std::size_t l = 0; l < machine_.links.size(); ++l) {
    const std::int32_t of = classes.link_class(static_cast<LinkId>(l));
    if (of >= 0) links[index(of)].push_back(static_cast<LinkId>(l));
  }
  for (const auto& [link, cut] : first.single) {
    const std::int32_t of = classes.link_class(link);
    if (of < 0) continue;
    Cut& together = all.single[links[index(of)].front()];
    together.links = links[index(of)];
    together.wire += cut.wire;
  }
  std::set<NodeId> switches;
  for (const std::vector<int>& members : groups) {
    const std::vector<NodeId> of_group = machine_.multicast_switches(members);
    switches.insert(of_group.begin(), of_group.end());
  }
  if (switches.empty()) return all;
  std::int64_t& reduced = all.reduced[{switches.begin(), switches.end()}];
  for (const auto& [of, bytes] : first.reduced) reduced += bytes;
  return all;
}

/// Lanes between a GPU and the switches of its group, one direction.
std::vector<LinkTraffic::Crossing> LinkTraffic::lanes_of(int rank,
                                                         const std::vector<NodeId>& switches,
                                                         bool leaves) const {
  const NodeId gpu = machine_.gpus[index(rank)];
  std::vector<Crossing> lanes;
  for (const NodeId node : switches)
    for (const LinkId link : leaves ? machine_.lanes(gpu, node) : machine_.lanes(node, gpu))
      lanes.emplace_back(gpu, link);
  return lanes;
}

void LinkTraffic::add_group_cuts(const GroupKey& key, const Pair& pair,
                                 const std::vector<std::vector<int>>& groups,
                                 Crossings& all) const {
  const std::vector<int>& members = groups[index(key.group)];
  const std::vector<NodeId> switches = machine_.multicast_switches(members);
  const auto cross = [&](int rank, bool leaves, bool data) {
    const std::vector<Crossing> lanes = lanes_of(rank, switches, leaves);
    if (lanes.empty()) return;
    const Pair carried{data ? pair.payload : 0, pair.requests};
    all.cuts[{lanes.front().first, leaves}].add(lanes, wire(lanes.front().second, carried));
  };
  cross(key.rank, true, !key.load);
  cross(key.rank, false, key.load);
  for (const int member : members) {
    cross(member, false, !key.load);
    cross(member, true, key.load);
  }
  if (key.load) all.reduced[switches] += pair.payload * std::ssize(members);
}

/// The traffic of a pair crosses the cut at every node that all of its paths pass.
void LinkTraffic::add_cuts(std::vector<Crossing>& crossings, bool leaves, std::int32_t paths,
                           const Pair& pair, Cuts& cuts) const {
  std::ranges::sort(crossings);
  for (auto begin = crossings.begin(); begin != crossings.end();) {
    const auto end = std::find_if(begin, crossings.end(), [&](const Crossing& crossing) {
      return crossing.first != begin->first;
    });
    if (end - begin == paths)
      cuts[{begin->first, leaves}].add({begin, end}, wire(begin->second, pair));
    begin = end;
  }
}

std::int64_t LinkTraffic::wire(LinkId link, const Pair& pair) const {
  const machine::LinkClass& c = machine_.class_of(link);
  return pair.payload + pair.requests * std::min(c.header.count, c.wire_bytes(0));
}

}  // namespace hemiola::sim
