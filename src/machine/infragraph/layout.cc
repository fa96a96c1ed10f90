#include "machine/infragraph/layout.h"

#include <algorithm>
#include <functional>
#include <set>
#include <span>
#include <unordered_set>

#include "core/lists.h"

namespace hemiola::machine::infragraph {
namespace {

constexpr std::int64_t kMostNodes = 1'000'000;
constexpr std::size_t kMostWires = 5'000'000;  // two links each
constexpr int kMostProblems = 20;

using Pair = std::pair<NodeId, NodeId>;

[[noreturn]] void unknown(const std::string& what, const std::string& name,
                          const std::vector<std::string>& known, const SourceLocation& where) {
  throw Failure(
      "there is no " + what + " '" + name + "'", where,
      suggest(name, known, known.empty() ? "there are none" : "known are " + joined(known, " ")));
}

template <typename Named>
void check_unique(const std::vector<Named>& items, const std::string& what) {
  std::set<std::string_view> seen;
  for (const Named& item : items)
    if (!seen.insert(item.name).second)
      throw Failure("two " + what + " are named '" + item.name + "'", item.where);
}

NodeKind kind_of(Choice choice) {
  switch (choice) {
    case Choice::cpu:
      return NodeKind::cpu;
    case Choice::xpu:
      return NodeKind::xpu;
    case Choice::nic:
      return NodeKind::nic;
    case Choice::memory:
      return NodeKind::memory;
    case Choice::port:
      return NodeKind::port;
    case Choice::switch_:
      return NodeKind::switch_;
    case Choice::custom:
    case Choice::device:
      return NodeKind::custom;
  }
  return NodeKind::custom;
}

void check_room(std::size_t wires, std::size_t more, const SourceLocation& where) {
  if (more <= kMostWires && wires + more <= kMostWires) return;
  throw Failure("the machine has more than " + std::to_string(2 * kMostWires) + " links", where,
                "check the slices and counts: a many2many edge joins every pair");
}

/// Real files join the two NICs of a host with `port`, meaning as many ports as it takes. Where a
/// slice says how many are meant, a different number is a mistake.
bool takes_the_first(const Endpoint& longer) {
  return !parse_path(longer.component, longer.where).back().has_slice;
}

std::vector<Pair> one2one(const std::vector<NodeId>& a, const std::vector<NodeId>& b,
                          const Edge& edge, Diagnostics& warnings) {
  const Endpoint& longer = a.size() > b.size() ? edge.ep1 : edge.ep2;
  const std::size_t count = std::min(a.size(), b.size());
  if (a.size() != b.size() && takes_the_first(longer)) {
    warnings.warning("a one2one edge joins " + std::to_string(count) + " nodes with the first " +
                         std::to_string(count) + " of " +
                         std::to_string(std::max(a.size(), b.size())) + " '" + longer.component +
                         "'",
                     edge.where, "write the slice: " + longer.component + "[0:...]");
  } else if (a.size() != b.size()) {
    throw Failure("a one2one edge joins " + std::to_string(a.size()) + " nodes with " +
                      std::to_string(b.size()),
                  edge.where, "give both ends the same number of nodes, or use many2many");
  }
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    if (a[i] == b[i]) {
      throw Failure("an edge joins a node with itself", edge.where,
                    "the two ends of a one2one edge must differ in each pair");
    }
    pairs.emplace_back(a[i], b[i]);
  }
  return pairs;
}

/// Every pair once: where both ends name the same nodes, no node meets itself, and (b, a) is the
/// edge that (a, b) is.
std::vector<Pair> many2many(const std::vector<NodeId>& a, const std::vector<NodeId>& b,
                            const Edge& edge, std::size_t so_far) {
  check_room(so_far, a.size() > kMostWires / b.size() ? kMostWires + 1 : a.size() * b.size(),
             edge.where);
  const std::unordered_set<NodeId> in_a(a.begin(), a.end());
  std::unordered_set<NodeId> in_both;
  for (const NodeId node : b)
    if (in_a.contains(node)) in_both.insert(node);
  std::vector<Pair> pairs;
  for (const NodeId from : a) {
    const bool shared = in_both.contains(from);
    for (const NodeId to : b) {
      if (from == to || (shared && from > to && in_both.contains(to))) continue;
      pairs.emplace_back(from, to);
    }
  }
  return pairs;
}

/// From each node to the next and from the last to the first; two nodes have one edge, not two.
std::vector<Pair> ring(std::vector<NodeId> nodes, const std::vector<NodeId>& more) {
  const std::unordered_set<NodeId> seen(nodes.begin(), nodes.end());
  for (const NodeId node : more)
    if (!seen.contains(node)) nodes.push_back(node);
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) pairs.emplace_back(nodes[i], nodes[i + 1]);
  if (nodes.size() > 2) pairs.emplace_back(nodes.back(), nodes.front());
  return pairs;
}

std::vector<Pair> join(const std::vector<NodeId>& a, const std::vector<NodeId>& b, const Edge& edge,
                       std::size_t so_far, Diagnostics& warnings) {
  std::vector<Pair> pairs = edge.scheme == Scheme::one2one     ? one2one(a, b, edge, warnings)
                            : edge.scheme == Scheme::many2many ? many2many(a, b, edge, so_far)
                                                               : ring(a, b);
  check_room(so_far, pairs.size(), edge.where);
  if (pairs.empty())
    warnings.warning("this edge joins nothing: both ends are one node", edge.where);
  return pairs;
}

const LinkDefinition& find_link(const std::vector<LinkDefinition>& links, const Edge& edge) {
  for (const LinkDefinition& link : links)
    if (link.name == edge.link) return link;
  unknown("link", edge.link, names_of(links), edge.where);
}

/// Runs `read` on each edge and throws the errors of all of them together.
void each_edge(const std::vector<Edge>& edges, const std::function<void(const Edge&)>& read) {
  Diagnostics problems;
  int count = 0;
  for (const Edge& edge : edges) {
    try {
      read(edge);
    } catch (const Failure& failure) {
      problems.append(failure.diagnostics());
      if (++count >= kMostProblems) break;
    }
  }
  if (problems.has_errors()) throw Failure(problems);
}

}  // namespace

/// A device with everything nested in it, its nodes numbered from 0. So is the infrastructure,
/// whose components are the instances.
struct Layout::Plan {
  struct Part {
    std::string name;
    std::int64_t count;
    SourceLocation where;
    const Component* component;  ///< null for an instance
    const Plan* nested;          ///< null for a plain component
    NodeId first = 0;

    NodeId unit() const { return nested ? nested->size : 1; }
  };
  std::string what;      ///< a part is: "component"
  const Device* device;  ///< null: the infrastructure
  const std::vector<LinkDefinition>& links;
  const std::vector<Edge>& edges;
  std::vector<Part> parts{};
  NodeId size = 0;
  mutable std::vector<Wire> wires{};
  mutable bool has_wires = false;

  void add(Part part, const std::string& owner) {
    if (part.count > kMostNodes || size + part.count * part.unit() > kMostNodes)
      throw Failure(owner + " has more than " + std::to_string(kMostNodes) + " nodes", part.where,
                    "check the counts");
    part.first = size;
    size += static_cast<NodeId>(part.count) * part.unit();
    parts.push_back(std::move(part));
  }

  /// Appends the nodes that segments[depth ...] name.
  void select(std::span<const Segment> segments, bool groups, NodeId base,
              const SourceLocation& where, std::vector<NodeId>& nodes) const {
    const Segment& segment = segments.front();
    const auto part = std::ranges::find(parts, segment.name, &Part::name);
    if (part == parts.end()) unknown(what, segment.name, names_of(parts), where);
    if (!part->nested && segments.size() > 1)
      throw Failure("'" + segment.name + "' is no device and has no components", where);
    if (part->nested && segments.size() == 1 && !groups) {
      throw Failure("'" + segment.text() + "' is a device: an edge needs one of its components",
                    where, "as in " + segment.text() + "." + part->nested->parts[0].name);
    }
    const Indices indices = segment.resolve(part->count, where);
    for (std::int64_t i = 0; i < indices.count; ++i) {
      const auto first = base + part->first + static_cast<NodeId>(indices.at(i)) * part->unit();
      if (segments.size() > 1)
        part->nested->select(segments.subspan(1), groups, first, where, nodes);
      else
        for (NodeId node = 0; node < part->unit(); ++node) nodes.push_back(first + node);
    }
  }

  void append_nodes(const Node& like, const std::string& prefix, std::vector<Node>& nodes) const {
    for (const Part& part : parts) {
      for (std::int64_t i = 0; i < part.count; ++i) {
        Node node = like;
        node.name = prefix + part.name + "." + std::to_string(i);
        if (part.component == nullptr) {
          node.instance = part.name;
          node.instance_index = static_cast<int>(i);
          node.device = part.nested->device->name;
        }
        if (part.nested) {
          part.nested->append_nodes(node, node.name + ".", nodes);
          continue;
        }
        node.kind = kind_of(part.component->choice);
        if (!part.component->custom_type.empty())
          node.attributes["type"] = part.component->custom_type;
        nodes.push_back(std::move(node));
      }
    }
  }

  /// Nested devices first, in the order of the components, then its own edges.
  const std::vector<Wire>& find_wires(Diagnostics& warnings) const {
    if (has_wires) return wires;
    has_wires = true;
    for (const Part& part : parts) {
      if (!part.nested) continue;
      const std::vector<Wire>& inner = part.nested->find_wires(warnings);
      for (std::int64_t i = 0; i < part.count; ++i) {
        check_room(wires.size(), inner.size(), part.where);
        const NodeId base = part.first + static_cast<NodeId>(i) * part.unit();
        for (const Wire& wire : inner)
          wires.push_back({wire.a + base, wire.b + base, wire.link, wire.device});
      }
    }
    each_edge(edges, [&](const Edge& edge) {
      const LinkDefinition& link = find_link(links, edge);
      const std::vector<Pair> pairs =
          join(end_of(edge.ep1), end_of(edge.ep2), edge, wires.size(), warnings);
      for (const auto& [a, b] : pairs) wires.push_back({a, b, &link, device});
    });
    return wires;
  }

  std::vector<NodeId> end_of(const Endpoint& end) const {
    std::vector<Segment> segments;
    if (!end.owner.empty() || device == nullptr) segments = parse_path(end.owner, end.where);
    for (Segment& segment : parse_path(end.component, end.where))
      segments.push_back(std::move(segment));
    std::vector<NodeId> nodes;
    select(segments, false, 0, end.where, nodes);
    return nodes;
  }
};

Layout::~Layout() = default;

Layout::Layout(const Document& document)
    : document_(document), whole_(new Plan{"instance", nullptr, document.links, document.edges}) {
  check_unique(document.devices, "devices");
  check_unique(document.instances, "instances");
  check_unique(document.links, "links");
  for (const Device& device : document.devices) plan(device.name, device.where);
  for (const Instance& instance : document.instances)
    whole_->add({instance.name, instance.count, instance.where, nullptr,
                 &plan(instance.device, instance.where)},
                "the machine");
}

const Layout::Plan& Layout::plan(const std::string& name, const SourceLocation& where) {
  const auto known = devices_.find(name);
  if (known != devices_.end()) {
    if (known->second) return *known->second;
    throw Failure("the device '" + name + "' contains itself", where);
  }
  const auto device = std::ranges::find(document_.devices, name, &Device::name);
  if (device == document_.devices.end())
    unknown("device", name, names_of(document_.devices), where);
  // A device inside a device inside ...: its depth is the number of devices under way.
  constexpr int kMostDepth = 64;
  const auto depth =
      std::ranges::count_if(devices_, [](const auto& entry) { return !entry.second; });
  if (depth >= kMostDepth) throw Failure("devices are nested more than 64 deep", where);
  devices_[name] = nullptr;
  check_unique(device->components, "components of '" + name + "'");
  check_unique(device->links, "links of '" + name + "'");
  if (device->components.empty())
    throw Failure("the device '" + name + "' has no components", device->where);
  std::unique_ptr<Plan> result(new Plan{"component", &*device, device->links, device->edges});
  for (const Component& component : device->components) {
    const bool nested = component.choice == Choice::device;
    result->add({component.name, component.count, component.where, &component,
                 nested ? &plan(component.name, component.where) : nullptr},
                "the device '" + name + "'");
  }
  return *(devices_[name] = std::move(result));
}

std::vector<Node> Layout::nodes() const {
  std::vector<Node> nodes;
  whole_->append_nodes({}, "", nodes);
  return nodes;
}

std::vector<Wire> Layout::wires(Diagnostics& warnings) const {
  // Mistakes in a device that no instance uses are mistakes too.
  for (const auto& [name, device] : devices_) device->find_wires(warnings);
  whole_->find_wires(warnings);
  return std::move(whole_->wires);
}

std::vector<NodeId> Layout::select(const std::string& name, const SourceLocation& where) const {
  const std::vector<Segment> segments = parse_path(name, where);
  std::vector<NodeId> nodes;
  whole_->select(segments, true, 0, where, nodes);
  return nodes;
}

}  // namespace hemiola::machine::infragraph
