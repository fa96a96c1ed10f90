#include "machine/routes.h"

#include <algorithm>
#include <compare>
#include <mutex>
#include <numeric>
#include <queue>
#include <tuple>
#include <unordered_map>

namespace hemiola::machine {
namespace {

constexpr std::int64_t kMostPaths = 256;

/// Links by node, in the order of their ids.
class Adjacency {
 public:
  void build(std::size_t nodes, const std::vector<Link>& links, NodeId Link::*end) {
    first_.assign(nodes + 1, 0);
    for (const Link& link : links) ++first_[static_cast<std::size_t>(link.*end) + 1];
    for (std::size_t i = 0; i < nodes; ++i) first_[i + 1] += first_[i];
    ids_.resize(links.size());
    std::vector<std::size_t> next(first_.begin(), first_.end() - 1);
    for (std::size_t i = 0; i < links.size(); ++i)
      ids_[next[static_cast<std::size_t>(links[i].*end)]++] = static_cast<LinkId>(i);
  }
  std::span<const LinkId> of(NodeId node) const {
    const auto i = static_cast<std::size_t>(node);
    return {ids_.data() + first_[i], first_[i + 1] - first_[i]};
  }

 private:
  std::vector<std::size_t> first_;
  std::vector<LinkId> ids_;
};

/// What a shortest path is. Hops between the ranks and their NICs come first, because software
/// picks the nearest NIC before anything else; a load/store path has only those.
struct Cost {
  std::int32_t host_hops = 0;
  std::int32_t network_hops = 0;
  std::int64_t latency_fs = 0;
  auto operator<=>(const Cost&) const = default;
};

/// Where a path is: before its first NIC (load/store paths stay here), between its NICs, after
/// them.
enum Phase : std::int32_t { kStart = 0, kNetwork = 1, kEnd = 2 };

enum class Mode { load_store, network, network_through_gpus };

/// A place on a path: a node in a phase.
struct State {
  NodeId node = 0;
  std::int32_t phase = kStart;
};

struct Step {
  LinkId link;
  std::int32_t from;  ///< state
  std::int32_t next;  ///< in the list of steps into the same state; -1 ends it
};

}  // namespace

struct Machine::RouteCache {
  std::mutex mutex;
  std::unordered_map<std::uint64_t, Routes> routes;

  void prepare(const Machine& machine);
  Routes find(const Machine& machine, NodeId from, NodeId to);
  /// Nodes that can be the end of a path from `from`, marked by true.
  std::vector<bool> reached(const Machine& machine, NodeId from);

  Adjacency out, in;

 private:
  std::int32_t index(State state) const {
    return state.phase * static_cast<std::int32_t>(nodes_) + state.node;
  }
  State state(std::int32_t index) const {
    const auto nodes = static_cast<std::int32_t>(nodes_);
    return {index % nodes, index / nodes};
  }
  std::optional<State> follow(const Machine& machine, Mode mode, State at, NodeId next,
                              NodeId target) const;
  void start(NodeId from);
  std::int32_t search(const Machine& machine, Mode mode, NodeId from, NodeId target);
  void relax(const Machine& machine, Mode mode, std::int32_t at, LinkId link, NodeId target);
  void mark_end(const Machine& machine, Mode mode, NodeId target);
  Routes enumerate(std::int32_t target, Reach reach);
  std::int32_t by_destination(const Machine& machine, const Routes& routes) const;

  static constexpr NodeId kNoTarget = -1;

  std::size_t nodes_ = 0, links_ = 0;
  std::vector<bool> forwards_;  ///< per node: an intermediate node of a load/store path

  // The search under way. A state is valid where its stamp is the current one.
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> stamps_, end_stamps_;
  std::vector<std::uint32_t> kept_;  ///< states on shortest paths
  std::vector<Cost> costs_;
  std::vector<std::int32_t> last_step_;
  std::vector<Step> steps_;
  using Entry = std::pair<Cost, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue_;
};

std::vector<bool> Machine::forwarding_nodes() const {
  std::vector<bool> forwards(nodes.size(), true);
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.kind == NodeKind::nic) forwards[i] = false;
    if (node.kind != NodeKind::xpu) continue;
    const auto named = node.attributes.find("hemiola.device_model");
    for (const GpuModel& model : models)
      if (named != node.attributes.end() && named->second == model.name)
        forwards[i] = model.forwards;
  }
  for (int rank = 0; rank < ranks(); ++rank)
    forwards[static_cast<std::size_t>(gpus[static_cast<std::size_t>(rank)])] = model(rank).forwards;
  return forwards;
}

std::shared_ptr<Machine::RouteCache> Machine::make_route_cache() {
  return std::make_shared<RouteCache>();
}

void Machine::RouteCache::prepare(const Machine& machine) {
  if (nodes_ == machine.nodes.size() && links_ == machine.links.size()) return;
  nodes_ = machine.nodes.size();
  links_ = machine.links.size();
  routes.clear();
  out.build(nodes_, machine.links, &Link::from);
  in.build(nodes_, machine.links, &Link::to);
  forwards_ = machine.forwarding_nodes();
  stamps_.assign(3 * nodes_, 0);
  kept_.assign(3 * nodes_, 0);
  end_stamps_.assign(nodes_, 0);
  costs_.resize(3 * nodes_);
  last_step_.resize(3 * nodes_);
  stamp_ = 0;
}

/// The state after moving from `at` to the node `next`, or nothing where the rules forbid it.
std::optional<State> Machine::RouteCache::follow(const Machine& machine, Mode mode, State at,
                                                 NodeId next, NodeId target) const {
  const auto i = static_cast<std::size_t>(next);
  const NodeKind kind = machine.nodes[i].kind;
  if (mode == Mode::load_store) {
    if (next == target || forwards_[i] || (target == kNoTarget && kind == NodeKind::xpu))
      return State{next, kStart};
    return std::nullopt;
  }
  if (kind == NodeKind::nic) {
    if (at.phase == kEnd) return std::nullopt;
    at.phase += 1;
  } else if (kind == NodeKind::xpu) {
    const bool ends = at.phase == kEnd && (next == target || target == kNoTarget);
    const bool passes = mode == Mode::network_through_gpus && at.phase != kNetwork && forwards_[i];
    if (!ends && !passes) return std::nullopt;
  }
  if (at.phase == kEnd && target != kNoTarget && end_stamps_[i] != stamp_) return std::nullopt;
  return State{next, at.phase};
}

void Machine::RouteCache::start(NodeId from) {
  if (++stamp_ == 0) {  // wrapped round: old stamps would look new
    std::ranges::fill(stamps_, 0);
    std::ranges::fill(end_stamps_, 0);
    std::ranges::fill(kept_, 0);
    stamp_ = 1;
  }
  steps_.clear();
  queue_ = {};
  const auto source = static_cast<std::size_t>(index({from, kStart}));
  stamps_[source] = stamp_;
  costs_[source] = {};
  last_step_[source] = -1;
  queue_.emplace(Cost{}, static_cast<std::int32_t>(source));
}

/// Marks the nodes from which `target` can be reached without another NIC, so that a search does
/// not walk into every host of the network.
void Machine::RouteCache::mark_end(const Machine& machine, Mode mode, NodeId target) {
  std::vector<NodeId> pending{target};
  end_stamps_[static_cast<std::size_t>(target)] = stamp_;
  while (!pending.empty()) {
    const NodeId node = pending.back();
    pending.pop_back();
    if (machine.nodes[static_cast<std::size_t>(node)].kind == NodeKind::nic) continue;
    for (const LinkId link : in.of(node)) {
      const NodeId before = machine.links[static_cast<std::size_t>(link)].from;
      const auto i = static_cast<std::size_t>(before);
      const bool passes = machine.nodes[i].kind != NodeKind::xpu ||
                          (mode == Mode::network_through_gpus && forwards_[i]);
      if (!passes || end_stamps_[i] == stamp_) continue;
      end_stamps_[i] = stamp_;
      pending.push_back(before);
    }
  }
}

void Machine::RouteCache::relax(const Machine& machine, Mode mode, std::int32_t at, LinkId link,
                                NodeId target) {
  const State here = state(at);
  const NodeId next = machine.links[static_cast<std::size_t>(link)].to;
  const std::optional<State> there = follow(machine, mode, here, next, target);
  if (!there) return;
  const LinkClass& link_class = machine.class_of(link);
  Cost cost = costs_[static_cast<std::size_t>(at)];
  (here.phase == kNetwork ? cost.network_hops : cost.host_hops) += 1;
  cost.latency_fs +=
      link_class.route_latency.fs >= 0 ? link_class.route_latency.fs : link_class.latency.fs;
  const std::int32_t to = index(*there);
  const auto slot = static_cast<std::size_t>(to);
  const bool seen = stamps_[slot] == stamp_;
  if (seen && costs_[slot] < cost) return;
  if (!seen || cost < costs_[slot]) {
    stamps_[slot] = stamp_;
    costs_[slot] = cost;
    last_step_[slot] = -1;
    queue_.emplace(cost, to);
  }
  steps_.push_back({link, at, last_step_[slot]});
  last_step_[slot] = static_cast<std::int32_t>(steps_.size()) - 1;
}

/// Returns the target's state, or -1. Without a target it visits all that can be reached.
std::int32_t Machine::RouteCache::search(const Machine& machine, Mode mode, NodeId from,
                                         NodeId target) {
  start(from);
  if (mode != Mode::load_store && target != kNoTarget) mark_end(machine, mode, target);
  std::vector<LinkId> last_hop;
  while (!queue_.empty()) {
    const auto [cost, at] = queue_.top();
    queue_.pop();
    if (cost != costs_[static_cast<std::size_t>(at)]) continue;  // found a better way since
    const State here = state(at);
    if (here.node == target && (mode == Mode::load_store || here.phase == kEnd)) return at;
    // Through a GPU only where that is allowed; a full search visits GPUs that do not forward.
    const bool is_end = machine.nodes[static_cast<std::size_t>(here.node)].kind == NodeKind::xpu &&
                        here.node != from && !forwards_[static_cast<std::size_t>(here.node)];
    if (is_end) continue;
    if (mode == Mode::load_store && target != kNoTarget) {
      // Next to the target, no other neighbour can be on a path with as few hops: a switch with
      // thousands of ports costs no more than one with two.
      last_hop.clear();
      for (const LinkId link : in.of(target))
        if (machine.links[static_cast<std::size_t>(link)].from == here.node)
          last_hop.push_back(link);
      for (const LinkId link : last_hop) relax(machine, mode, at, link, target);
      if (!last_hop.empty()) continue;
    }
    for (const LinkId link : out.of(here.node)) relax(machine, mode, at, link, target);
  }
  return -1;
}

namespace {

/// The shortest paths as a graph whose vertices are links: a path is a walk from the source's links
/// to the target. Unranks the paths in the order of their links without writing all of them down.
class PathGraph {
 public:
  struct Edge {
    LinkId link;
    std::int32_t from, to;  ///< states
    std::int32_t lane = 0;  ///< among the edges from -> to
    std::int32_t lanes = 1;
    std::int64_t paths = 0;  ///< from here to the target
    std::size_t next = 0;    ///< the first edge out of `to`; the number of edges at the target
  };

  /// `edges` in an order in which the edges out of a state follow all edges into it, those out of
  /// one state side by side, in the order of their links; the first leaves the source.
  explicit PathGraph(std::vector<Edge> edges) : edges_(std::move(edges)) {
    std::vector<std::size_t> firsts;  // of states, by state
    for (std::size_t i = 0, end = 0; i < edges_.size(); i = end) {
      end = end_of(i);
      firsts.push_back(i);
      number_lanes(i, end);
    }
    std::ranges::sort(
        firsts, [&](std::size_t a, std::size_t b) { return edges_[a].from < edges_[b].from; });
    for (std::size_t i = edges_.size(); i-- > 0;) {
      Edge& edge = edges_[i];
      const auto next = std::lower_bound(
          firsts.begin(), firsts.end(), edge.to,
          [&](std::size_t first, std::int32_t state) { return edges_[first].from < state; });
      const bool ends = next == firsts.end() || edges_[*next].from != edge.to;
      edge.next = ends ? edges_.size() : *next;
      edge.paths = ends ? 1 : 0;
      const std::size_t end = end_of(edge.next);
      for (std::size_t k = edge.next; k < end; ++k)
        if (continues(edge, edges_[k])) edge.paths = add(edge.paths, edges_[k].paths);
    }
    const std::size_t end = end_of(0);
    for (std::size_t i = 0; i < end; ++i) paths_ = add(paths_, edges_[i].paths);
  }

  std::int64_t paths() const { return paths_; }

  void append_path(std::int64_t rank, std::vector<LinkId>& links) const {
    const Edge* before = nullptr;
    for (std::size_t at = 0; at < edges_.size(); at = before->next) {
      const Edge* chosen = nullptr;
      for (std::size_t i = at; i < edges_.size() && edges_[i].from == edges_[at].from; ++i) {
        const Edge& edge = edges_[i];
        if (before && !continues(*before, edge)) continue;
        chosen = &edge;
        if (rank < edge.paths) break;
        rank -= edge.paths;
      }
      links.push_back(chosen->link);
      before = chosen;
    }
  }

 private:
  /// One after the last edge out of the same state.
  std::size_t end_of(std::size_t first) const {
    std::size_t end = first;
    while (end < edges_.size() && edges_[end].from == edges_[first].from) ++end;
    return end;
  }
  /// Planes stay apart: between bundles of as many lanes a path keeps its lane.
  static bool continues(const Edge& before, const Edge& after) {
    return before.lanes != after.lanes || before.lane == after.lane;
  }
  static std::int64_t add(std::int64_t a, std::int64_t b) {
    constexpr std::int64_t kMost = std::int64_t{1} << 60;  // more are not told apart
    return std::min(kMost, a + b);
  }
  /// Of the edges out of one state.
  void number_lanes(std::size_t begin, std::size_t end) {
    order_.resize(end - begin);
    std::iota(order_.begin(), order_.end(), begin);
    std::ranges::stable_sort(
        order_, [&](std::size_t a, std::size_t b) { return edges_[a].to < edges_[b].to; });
    for (std::size_t first = 0, last = 0; first < order_.size(); first = last) {
      while (last < order_.size() && edges_[order_[last]].to == edges_[order_[first]].to) ++last;
      for (std::size_t i = first; i < last; ++i) {
        edges_[order_[i]].lane = static_cast<std::int32_t>(i - first);
        edges_[order_[i]].lanes = static_cast<std::int32_t>(last - first);
      }
    }
  }

  std::vector<Edge> edges_;
  std::vector<std::size_t> order_;
  std::int64_t paths_ = 0;
};

}  // namespace

Routes Machine::RouteCache::enumerate(std::int32_t target, Reach reach) {
  std::vector<std::int32_t> pending{target};
  std::vector<PathGraph::Edge> edges;
  kept_[static_cast<std::size_t>(target)] = stamp_;
  while (!pending.empty()) {
    const std::int32_t at = pending.back();
    pending.pop_back();
    for (std::int32_t i = last_step_[static_cast<std::size_t>(at)]; i >= 0;
         i = steps_[static_cast<std::size_t>(i)].next) {
      const Step& step = steps_[static_cast<std::size_t>(i)];
      edges.push_back({.link = step.link, .from = step.from, .to = at});
      std::uint32_t& kept = kept_[static_cast<std::size_t>(step.from)];
      if (kept == stamp_) continue;
      kept = stamp_;
      pending.push_back(step.from);
    }
  }
  std::ranges::sort(edges, [&](const PathGraph::Edge& a, const PathGraph::Edge& b) {
    return std::tie(costs_[static_cast<std::size_t>(a.from)], a.from, a.link) <
           std::tie(costs_[static_cast<std::size_t>(b.from)], b.from, b.link);
  });
  const PathGraph graph(std::move(edges));
  const Cost& cost = costs_[static_cast<std::size_t>(target)];
  Routes routes;
  routes.reach = reach;
  routes.hops = cost.host_hops + cost.network_hops;
  const std::int64_t total = graph.paths(), count = std::min(total, kMostPaths);
  routes.count = static_cast<std::int32_t>(count);
  routes.links.reserve(static_cast<std::size_t>(count * routes.hops));
  for (std::int64_t i = 0; i < count; ++i) {
    const auto rank = static_cast<std::int64_t>(static_cast<__int128>(i) * total / count);
    graph.append_path(rank, routes.links);
  }
  return routes;
}

/// Every switch takes, of its links on shortest paths, the one whose number is the place of the
/// destination's NIC at its own switch, modulo how many there are.
std::int32_t Machine::RouteCache::by_destination(const Machine& machine,
                                                 const Routes& routes) const {
  const auto link_of = [&](LinkId link) { return machine.links[static_cast<std::size_t>(link)]; };
  const auto to_nic = [&](LinkId link) {
    return machine.nodes[static_cast<std::size_t>(link_of(link).to)].kind == NodeKind::nic;
  };
  const std::span<const LinkId> first = routes.path(0);
  const auto last = std::find_if(first.rbegin(), first.rend(), to_nic);
  if (routes.count == 1 || last == first.rend()) return 0;
  const std::span<const LinkId> leaving = out.of(link_of(*last).from);
  const auto place =
      std::ranges::count_if(leaving, [&](LinkId link) { return link < *last && to_nic(link); });
  std::vector<std::int32_t> left(static_cast<std::size_t>(routes.count));
  std::iota(left.begin(), left.end(), 0);
  for (std::size_t hop = 0; left.size() > 1; ++hop) {
    std::vector<LinkId> links;
    for (const std::int32_t path : left) links.push_back(routes.path(path)[hop]);
    std::ranges::sort(links);
    links.erase(std::unique(links.begin(), links.end()), links.end());
    const LinkId taken = links[static_cast<std::size_t>(place) % links.size()];
    std::erase_if(left, [&](std::int32_t path) { return routes.path(path)[hop] != taken; });
  }
  return left.front();
}

Routes Machine::RouteCache::find(const Machine& machine, NodeId from, NodeId to) {
  if (from == to) return {.reach = Reach::self, .hops = 0, .count = 1, .links = {}};
  for (const Mode mode : {Mode::load_store, Mode::network, Mode::network_through_gpus}) {
    const std::int32_t target = search(machine, mode, from, to);
    if (target < 0) continue;
    Routes routes =
        enumerate(target, mode == Mode::load_store ? Reach::load_store : Reach::network);
    if (routes.reach == Reach::network) routes.by_destination = by_destination(machine, routes);
    return routes;
  }
  return {};
}

std::vector<bool> Machine::RouteCache::reached(const Machine& machine, NodeId from) {
  std::vector<bool> found(nodes_, false);
  for (const Mode mode : {Mode::load_store, Mode::network_through_gpus}) {
    search(machine, mode, from, kNoTarget);
    const Phase last = mode == Mode::load_store ? kStart : kEnd;
    for (std::size_t i = 0; i < nodes_; ++i) {
      const auto at = static_cast<std::size_t>(index({static_cast<NodeId>(i), last}));
      if (stamps_[at] == stamp_) found[i] = true;
    }
  }
  return found;
}

const Routes& Machine::routes(int from, int to) const {
  const NodeId source = gpus.at(static_cast<std::size_t>(from));
  const NodeId target = gpus.at(static_cast<std::size_t>(to));
  const std::lock_guard lock(route_cache->mutex);
  route_cache->prepare(*this);
  const std::uint64_t key = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(source)) << 32) |
                            static_cast<std::uint32_t>(target);
  const auto found = route_cache->routes.find(key);
  if (found != route_cache->routes.end()) return found->second;
  return route_cache->routes.emplace(key, route_cache->find(*this, source, target)).first->second;
}

std::vector<LinkId> Machine::lanes(NodeId from, NodeId to) const {
  const std::lock_guard lock(route_cache->mutex);
  route_cache->prepare(*this);
  const std::span<const LinkId> leaving = route_cache->out.of(from),
                                entering = route_cache->in.of(to);
  std::vector<LinkId> found;
  // Either list holds all of them, in order of id.
  for (const LinkId link : leaving.size() < entering.size() ? leaving : entering) {
    const Link& candidate = links[static_cast<std::size_t>(link)];
    if (candidate.from == from && candidate.to == to) found.push_back(link);
  }
  return found;
}

std::optional<std::pair<int, int>> find_unreachable(const Machine& machine) {
  constexpr std::size_t kMostWork = 2'000'000;
  const int sources = machine.gpus.size() * machine.links.size() > kMostWork ? 1 : machine.ranks();
  Machine::RouteCache cache;
  cache.prepare(machine);
  for (int from = 0; from < sources; ++from) {
    const NodeId source = machine.gpus[static_cast<std::size_t>(from)];
    const std::vector<bool> reached = cache.reached(machine, source);
    for (int to = 0; to < machine.ranks(); ++to) {
      const NodeId target = machine.gpus[static_cast<std::size_t>(to)];
      if (!reached[static_cast<std::size_t>(target)]) return std::pair{from, to};
    }
  }
  return std::nullopt;
}

}  // namespace hemiola::machine
