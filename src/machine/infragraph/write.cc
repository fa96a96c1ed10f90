// Machine to InfraGraph: the devices are recovered from the names of the nodes.
#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "machine/devices/parameters.h"
#include "machine/fabric_parameters.h"
#include "machine/infragraph/infragraph.h"
#include "machine/infragraph/layout.h"

namespace hemiola::machine {
namespace {

using namespace infragraph;

[[noreturn]] void cannot_write(const std::string& why) {
  throw Failure("the machine cannot be written as InfraGraph: " + why);
}

/// "cx5.3.port.0" as ("cx5", 3), ("port", 0).
using Path = std::vector<std::pair<std::string, std::int64_t>>;

Path path_of(const Node& node) {
  const std::string prefix = node.instance + "." + std::to_string(node.instance_index) + ".";
  if (!node.name.starts_with(prefix)) cannot_write("the node name '" + node.name + "'");
  Path path;
  std::string_view rest = std::string_view(node.name).substr(prefix.size());
  while (!rest.empty()) {
    const std::size_t dot = rest.find('.');
    const std::string_view after =
        dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
    const std::size_t end = std::min(after.find('.'), after.size());
    const auto index = parse_count(after.substr(0, end));
    if (!index) cannot_write("the node name '" + node.name + "'");
    path.emplace_back(rest.substr(0, dot), *index);
    rest = end < after.size() ? after.substr(end + 1) : std::string_view{};
  }
  if (path.empty()) cannot_write("the node name '" + node.name + "'");
  return path;
}

Choice choice_of(NodeKind kind) {
  constexpr std::array<Choice, 7> kChoices{Choice::xpu,   Choice::nic,    Choice::switch_,
                                           Choice::cpu,   Choice::memory, Choice::port,
                                           Choice::custom};
  return kChoices[index(kind)];
}

/// The same machine with the instances of one name together, as a document lists them.
Machine grouped(const Machine& machine) {
  std::map<std::string, std::size_t> order;
  for (const Node& node : machine.nodes) order.emplace(node.instance, order.size());
  std::vector<NodeId> old_ids(machine.nodes.size());
  for (std::size_t i = 0; i < old_ids.size(); ++i) old_ids[i] = static_cast<NodeId>(i);
  const auto place = [&](NodeId id) { return order.at(machine.nodes[index(id)].instance); };
  std::ranges::stable_sort(old_ids, [&](NodeId a, NodeId b) { return place(a) < place(b); });
  Machine result = machine;
  result.forget_routes();
  std::vector<NodeId> new_ids(old_ids.size());
  for (std::size_t i = 0; i < old_ids.size(); ++i) {
    new_ids[index(old_ids[i])] = static_cast<NodeId>(i);
    result.nodes[i] = machine.nodes[index(old_ids[i])];
  }
  for (Link& link : result.links) {
    link.from = new_ids[index(link.from)];
    link.to = new_ids[index(link.to)];
  }
  for (NodeId& gpu : result.gpus) gpu = new_ids[index(gpu)];
  return result;
}

class Writer {
 public:
  explicit Writer(const Machine& machine) : machine_(grouped(machine)) {}

  Document document() {
    result_.name = machine_.name;
    result_.description = machine_.description;
    for (const Node& node : machine_.nodes) paths_.push_back(path_of(node));
    for (int rank = 0; rank < machine_.ranks(); ++rank)
      models_[machine_.gpus[index(rank)]] = machine_.model(rank).name;
    find_instances();
    add_devices();
    add_edges();
    annotate_links();
    annotate_nodes();
    annotate_ranks();
    annotate_graph();
    check();
    return std::move(result_);
  }

 private:
  /// One instance of a device: nodes [first, end).
  struct Unit {
    std::size_t first, end;
    std::string device;
  };
  /// An edge between nodes counted from the first of their unit (or of the machine).
  struct Joint {
    NodeId a, b;
    std::int32_t link_class;
    bool operator==(const Joint&) const = default;
  };

  void find_instances() {
    for (std::size_t i = 0; i < machine_.nodes.size(); ++i) {
      const Node& node = machine_.nodes[i];
      const bool same = i > 0 && machine_.nodes[i - 1].instance == node.instance &&
                        machine_.nodes[i - 1].instance_index == node.instance_index;
      if (same) {
        ++units_.back().end;
        continue;
      }
      units_.push_back({i, i + 1, node.device});
      if (i > 0 && machine_.nodes[i - 1].instance == node.instance) {
        ++result_.instances.back().count;
        continue;
      }
      Instance instance;
      instance.name = node.instance;
      instance.device = node.device;
      result_.instances.push_back(std::move(instance));
    }
  }

  void add_devices() {
    for (const Unit& unit : units_) add_device(unit.device, unit.first, unit.end, 0);
  }

  /// The device whose nodes are [first, end), their paths read from `depth` on.
  void add_device(const std::string& name, std::size_t first, std::size_t end, std::size_t depth) {
    if (!known_devices_.insert(name).second) return;
    Device device;
    device.name = name;
    for (std::size_t i = first; i < end;) {
      if (paths_[i].size() <= depth) cannot_write("a node has the name of a device");
      const auto& [component, index] = paths_[i][depth];
      std::size_t next = i + 1;
      while (next < end && paths_[next].size() > depth && paths_[next][depth] == paths_[i][depth])
        ++next;
      if (device.components.empty() || device.components.back().name != component) {
        device.components.push_back(component_at(i, depth));
        if (paths_[i].size() > depth + 1) add_device(component, i, next, depth + 1);
      }
      device.components.back().count = index + 1;
      i = next;
    }
    result_.devices.push_back(std::move(device));
  }

  Component component_at(std::size_t i, std::size_t depth) const {
    const Node& node = machine_.nodes[i];
    Component component;
    component.name = paths_[i][depth].first;
    component.choice = paths_[i].size() > depth + 1 ? Choice::device : choice_of(node.kind);
    const auto type = node.attributes.find("type");
    if (component.choice == Choice::custom && type != node.attributes.end())
      component.custom_type = type->second;
    return component;
  }

  /// Edges inside an instance belong to its device where every instance of the device has the same,
  /// and they stand before all others, as expand() orders them.
  void add_edges() {
    std::vector<Joint> joints;
    for (std::size_t i = 0; i < machine_.links.size(); i += 2) {
      const Link& link = machine_.links[i];
      if (i + 1 == machine_.links.size() || machine_.links[i + 1].from != link.to ||
          machine_.links[i + 1].to != link.from ||
          machine_.links[i + 1].link_class != link.link_class)
        cannot_write("links must come in pairs, one for each direction");
      joints.push_back({link.from, link.to, link.link_class});
    }
    std::size_t inner = 0;
    std::map<std::string, std::vector<Joint>> by_device;
    bool alike = true;
    for (const Unit& unit : units_) {
      std::vector<Joint> own;
      const auto inside = [&](NodeId node) {
        return index(node) >= unit.first && index(node) < unit.end;
      };
      const auto base = static_cast<NodeId>(unit.first);
      for (; inner < joints.size() && inside(joints[inner].a) && inside(joints[inner].b); ++inner)
        own.push_back({joints[inner].a - base, joints[inner].b - base, joints[inner].link_class});
      const auto [entry, is_new] = by_device.emplace(unit.device, own);
      alike = alike && entry->second == own;
    }
    if (!alike) inner = 0;
    std::set<std::string> done;
    for (const Unit& unit : units_) {
      if (!alike || !done.insert(unit.device).second) continue;
      for (Device& device : result_.devices) {
        if (device.name != unit.device) continue;
        device.edges = edges_of(by_device[unit.device], unit.first, false);
        device.links = links_of(device.edges);
      }
    }
    joints.erase(joints.begin(), joints.begin() + static_cast<std::ptrdiff_t>(inner));
    result_.edges = edges_of(joints, 0, true);
    result_.links = links_of(result_.edges);
  }

  /// Up to (and without) the last index: nodes with the same are numbered in a row.
  std::string group_of(std::size_t node) const {
    std::string group;
    for (std::size_t i = 0; i < paths_[node].size(); ++i) {
      const auto& [component, index] = paths_[node][i];
      group += (i ? "." : "") + component;
      if (i + 1 < paths_[node].size()) group += "[" + std::to_string(index) + "]";
    }
    return group;
  }

  /// The same group (and instance), and an index further on by `distance`.
  bool follows(NodeId first, NodeId later, std::int64_t distance) const {
    if (later != first + distance) return false;
    const auto a = index(first), b = index(later);
    const Node &x = machine_.nodes[a], &y = machine_.nodes[b];
    if (x.instance_index != y.instance_index || x.instance != y.instance) return false;
    const Path &p = paths_[a], &q = paths_[b];
    return p.size() == q.size() && std::equal(p.begin(), p.end() - 1, q.begin()) &&
           p.back().first == q.back().first && q.back().second == p.back().second + distance;
  }

  /// Runs of pairs as one2one or many2many edges, greedily, in order.
  std::vector<Edge> edges_of(const std::vector<Joint>& joints, std::size_t base,
                             bool infrastructure) const {
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < joints.size();) {
      const Joint first{joints[i].a + static_cast<NodeId>(base),
                        joints[i].b + static_cast<NodeId>(base), joints[i].link_class};
      const auto matches = [&](std::size_t at, std::int64_t da, std::int64_t db) {
        if (at >= joints.size() || joints[at].link_class != first.link_class) return false;
        return follows(first.a, joints[at].a + static_cast<NodeId>(base), da) &&
               follows(first.b, joints[at].b + static_cast<NodeId>(base), db);
      };
      std::int64_t zip = 1;
      while (matches(i + index(zip), zip, zip)) ++zip;
      std::int64_t columns = 1;
      while (matches(i + index(columns), 0, columns)) ++columns;
      const auto row_matches = [&](std::int64_t row) {
        for (std::int64_t column = 0; column < columns; ++column)
          if (!matches(i + index(row * columns + column), row, column)) return false;
        return true;
      };
      std::int64_t rows = 1;
      while (row_matches(rows)) ++rows;
      // Where the two ranges overlap, many2many would leave pairs out.
      const std::int64_t distance = first.b - first.a;
      if (distance < rows && -distance < columns) rows = columns = 1;
      const bool product = rows * columns > zip;
      Edge edge;
      edge.scheme = product ? Scheme::many2many : Scheme::one2one;
      edge.ep1 = endpoint(first.a, product ? rows : zip, infrastructure);
      edge.ep2 = endpoint(first.b, product ? columns : zip, infrastructure);
      edge.link = class_name(first.link_class);
      edges.push_back(std::move(edge));
      i += index(product ? rows * columns : zip);
    }
    return edges;
  }

  Endpoint endpoint(NodeId first, std::int64_t count, bool infrastructure) const {
    const auto i = index(first);
    Endpoint end;
    if (infrastructure) {
      end.owner =
          machine_.nodes[i].instance + "[" + std::to_string(machine_.nodes[i].instance_index) + "]";
    }
    const std::int64_t index = paths_[i].back().second;
    end.component = group_of(i) + "[" + std::to_string(index) +
                    (count > 1 ? ":" + std::to_string(index + count) : "") + "]";
    return end;
  }

  const std::string& class_name(std::int32_t link_class) const {
    return machine_.link_classes[index(link_class)].name;
  }

  std::vector<LinkDefinition> links_of(const std::vector<Edge>& edges) const {
    std::set<std::string> used;
    for (const Edge& edge : edges) used.insert(edge.link);
    std::vector<LinkDefinition> links;
    for (const LinkClass& link : machine_.link_classes) {
      if (!used.contains(link.name)) continue;
      LinkDefinition definition;
      definition.name = link.name;
      definition.bandwidth = link.bandwidth;
      definition.latency = link.latency;
      links.push_back(std::move(definition));
    }
    return links;
  }

  void annotate_links() {
    for (const LinkClass& link : machine_.link_classes) {
      Annotation annotation;
      annotation.first = link.name;
      const auto add = [&](const std::string& key, const std::string& value) {
        annotation.attributes.push_back({key, value, {}});
      };
      for (const auto& parameter : fabric_parameters<LinkClass>()) {
        if (parameter.name == "latency") continue;  // 'physical' holds it
        if (parameter.name == "bandwidth" && !link.bandwidth.is_ideal()) continue;
        const bool format = parameter.name == "max_payload" || parameter.name == "header";
        if (!format && parameter.name != "bandwidth" &&
            parameter.get(link) == parameter.get(LinkClass{}))
          continue;
        add("hemiola." + std::string(parameter.name), parameter.get(link));
      }
      if (link.assumed) add("hemiola.assumed", "true");
      if (link.route_latency.fs >= 0) add("hemiola.route_latency", to_string(link.route_latency));
      for (const auto& [key, value] : link.attributes) add(key, value);
      result_.link_annotations.push_back(std::move(annotation));
    }
  }

  using Attributes = std::map<std::string, std::string>;

  template <typename Model>
  static void add_changed(const Model& model, const std::string& prefix, Attributes& attributes) {
    for (const auto& parameter : fabric_parameters<Model>()) {
      const std::string value = parameter.get(model);
      if (value != parameter.get(Model{})) attributes[prefix + std::string(parameter.name)] = value;
    }
  }

  Attributes attributes_of(std::size_t index) const {
    const Node& node = machine_.nodes[index];
    Attributes attributes = node.attributes;
    attributes.erase("type");
    const auto model = models_.find(static_cast<NodeId>(index));
    if (model != models_.end()) attributes["hemiola.device_model"] = model->second;
    if (node.kind == NodeKind::nic)
      add_changed(node.nic_model, "hemiola.nic.", attributes);
    else if (node.kind != NodeKind::xpu)
      add_changed(node.switch_model, "hemiola.switch.", attributes);
    return attributes;
  }

  void annotate(const std::string& name, const Attributes& attributes) {
    if (attributes.empty()) return;
    Annotation annotation;
    annotation.first = name;
    for (const auto& [key, value] : attributes) annotation.attributes.push_back({key, value, {}});
    result_.node_annotations.push_back(std::move(annotation));
  }

  /// One annotation for all nodes that differ only in indices, where they agree.
  void annotate_nodes() {
    std::map<std::string, std::vector<std::size_t>> groups;
    std::vector<std::string> order;
    for (std::size_t i = 0; i < machine_.nodes.size(); ++i) {
      std::string group = machine_.nodes[i].instance;
      for (const auto& [component, index] : paths_[i]) group += "[:]." + component;
      group += "[:]";
      std::vector<std::size_t>& members = groups[group];
      if (members.empty()) order.push_back(group);
      members.push_back(i);
    }
    for (const std::string& group : order) {
      const std::vector<std::size_t>& members = groups[group];
      const Attributes first = attributes_of(members[0]);
      const bool alike =
          std::ranges::all_of(members, [&](std::size_t i) { return attributes_of(i) == first; });
      if (alike) {
        annotate(group, first);
        continue;
      }
      for (const std::size_t i : members) annotate(machine_.nodes[i].name, attributes_of(i));
    }
  }

  void annotate_ranks() {
    std::vector<NodeId> in_order;
    for (std::size_t i = 0; i < machine_.nodes.size(); ++i)
      if (machine_.nodes[i].kind == NodeKind::xpu) in_order.push_back(static_cast<NodeId>(i));
    if (in_order == machine_.gpus) return;
    std::map<NodeId, std::string> ranks;
    for (const NodeId node : in_order) ranks[node] = "none";
    for (std::size_t rank = 0; rank < machine_.gpus.size(); ++rank)
      ranks[machine_.gpus[rank]] = std::to_string(rank);
    for (const auto& [node, rank] : ranks)
      annotate(machine_.nodes[index(node)].name, {{"rank", rank}});
  }

  void annotate_graph() {
    const std::vector<std::string> shipped = gpu_model_names();
    for (const GpuModel& model : machine_.models) {
      if (std::ranges::find(shipped, model.name) != shipped.end()) continue;
      cannot_write("its device model '" + model.name + "' is not one of the shipped ones");
    }
    Annotation graph;
    for (const auto& [key, value] : machine_.attributes)
      graph.attributes.push_back({key, value, {}});
    for (const Parameter& parameter : gpu_parameters()) {
      std::set<std::string> values;
      bool changed = false;
      for (const GpuModel& model : machine_.models) {
        values.insert(parameter.get(model));
        changed = changed || parameter.get(model) != parameter.get(gpu_model(model.name));
      }
      if (!changed) continue;
      if (values.size() > 1)
        cannot_write("its device models differ in " + std::string(parameter.name));
      graph.attributes.push_back(
          {"hemiola.gpu." + std::string(parameter.name), *values.begin(), {}});
    }
    if (!graph.attributes.empty()) result_.graph_annotations.push_back(std::move(graph));
  }

  /// A machine built by hand may have names that no document yields.
  void check() const {
    const std::vector<Node> nodes = Layout(result_).nodes();
    const bool equal =
        std::equal(nodes.begin(), nodes.end(), machine_.nodes.begin(), machine_.nodes.end(),
                   [](const Node& a, const Node& b) {
                     return a.name == b.name && a.kind == b.kind && a.device == b.device;
                   });
    if (!equal) cannot_write("instances of one device differ");
  }

  const Machine machine_;
  Document result_;
  std::vector<Path> paths_;
  std::map<NodeId, std::string> models_;  ///< of the ranks, which may not be annotated
  std::vector<Unit> units_;
  std::set<std::string> known_devices_;
};

}  // namespace

std::string to_infragraph(const Machine& machine) {
  return infragraph::write(Writer(machine).document());
}

}  // namespace hemiola::machine
