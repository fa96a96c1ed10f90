// infragraph::Document to Machine.
#include "machine/infragraph/infragraph.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/lists.h"
#include "machine/devices/parameters.h"
#include "machine/fabric_parameters.h"
#include "machine/infragraph/layout.h"
#include "machine/link_classes.h"
#include "machine/network_routing.h"
#include "machine/routes.h"

namespace hemiola::machine::infragraph {
namespace {

constexpr std::string_view kDefaultGpu = "h100";
constexpr std::string_view kOurs = "hemiola.";
constexpr std::string_view kGpuPrefix = "hemiola.gpu.";

/// The end of the list "a, b, c and 4 more".
constexpr std::size_t kMostNamed = 5;

class Expander {
 public:
  Expander(const Document& document, const LoadOptions& options)
      : document_(document), options_(options), layout_(document) {}

  Machine run() {
    machine_.name = document_.name;
    machine_.description = document_.description;
    machine_.warnings = document_.warnings;
    machine_.nodes = layout_.nodes();
    ranks_.resize(machine_.nodes.size());
    add_links();
    annotate_links();
    complete(drafts_, machine_);
    annotate_edges();
    install(drafts_, machine_);
    annotate_nodes();
    number_ranks();
    choose_models();
    annotate_graph();
    warn_of_unconnected_nodes();
    check_reachable();
    return std::move(machine_);
  }

 private:
  struct Rank {
    std::optional<std::int64_t> number;
    bool outside = false;  ///< "rank: none": not part of the job
    SourceLocation where;
  };

  Node& node(NodeId id) { return machine_.nodes[index(id)]; }

  void add_links() {
    const std::vector<Wire> wires = layout_.wires(machine_.warnings);
    machine_.links.reserve(2 * wires.size());
    std::unordered_map<const LinkDefinition*, std::int32_t> known;
    for (const Wire& wire : wires) {
      const auto [entry, is_new] = known.emplace(wire.link, 0);
      if (is_new) entry->second = draft(*wire.link, wire.device);
      machine_.links.push_back({.from = wire.a, .to = wire.b, .link_class = entry->second});
      machine_.links.push_back({.from = wire.b, .to = wire.a, .link_class = entry->second});
    }
  }

  /// Devices define their links separately: equal definitions are one class, others of the same
  /// name are told apart by the device.
  std::int32_t draft(const LinkDefinition& link, const Device* device) {
    bool name_taken = false;
    for (std::size_t i = 0; i < drafts_.size(); ++i) {
      if (drafts_[i].definition != link.name) continue;
      name_taken = true;
      const bool equal = drafts_[i].has_bandwidth == link.bandwidth.has_value() &&
                         drafts_[i].has_latency == link.latency.has_value() &&
                         (!link.bandwidth || *link.bandwidth == drafts_[i].link_class.bandwidth) &&
                         (!link.latency || *link.latency == drafts_[i].link_class.latency) &&
                         link_default(link.name, link.description).name ==
                             link_default(link.name, drafts_[i].description).name;
      if (equal) return static_cast<std::int32_t>(i);
    }
    DraftClass draft;
    const std::string name =
        name_taken ? (device ? device->name : "infrastructure") + "-" + link.name : link.name;
    draft.link_class.name = unused_name(drafts_, name);
    draft.definition = link.name;
    draft.description = link.description;
    draft.where = link.where;
    if (link.bandwidth) draft.link_class.bandwidth = *link.bandwidth;
    if (link.latency) draft.link_class.latency = *link.latency;
    draft.has_bandwidth = link.bandwidth.has_value();
    draft.has_latency = link.latency.has_value();
    drafts_.push_back(std::move(draft));
    return static_cast<std::int32_t>(drafts_.size()) - 1;
  }

  void annotate_links() {
    for (const Annotation& annotation : document_.link_annotations) {
      bool found = false;
      std::vector<std::string> known;
      for (DraftClass& draft : drafts_) {
        known.push_back(draft.link_class.name);
        if (draft.definition != annotation.first && draft.link_class.name != annotation.first)
          continue;
        found = true;
        for (const Attribute& attribute : annotation.attributes) {
          check_mutable(attribute);
          draft.annotate(attribute.name, attribute.value, attribute.where);
        }
      }
      if (found || is_defined(annotation.first)) continue;
      throw Failure("there is no link '" + annotation.first + "'", annotation.where,
                    suggest(annotation.first, known));
    }
  }

  /// A link that is defined and used nowhere may be annotated to no effect.
  bool is_defined(const std::string& link) const {
    const auto has = [&](const std::vector<LinkDefinition>& links) {
      return std::ranges::any_of(links,
                                 [&](const LinkDefinition& other) { return other.name == link; });
    };
    return has(document_.links) ||
           std::ranges::any_of(document_.devices,
                               [&](const Device& device) { return has(device.links); });
  }

  /// Each annotation gives the links that it finds a class of their own.
  void annotate_edges() {
    if (document_.edge_annotations.empty()) return;
    std::unordered_map<NodeId, std::vector<std::size_t>> leaving;
    for (std::size_t i = 0; i < machine_.links.size(); ++i)
      leaving[machine_.links[i].from].push_back(i);
    for (const Annotation& annotation : document_.edge_annotations) {
      const std::vector<NodeId> first = layout_.select(annotation.first, annotation.where);
      const std::vector<NodeId> second = layout_.select(annotation.second, annotation.where);
      std::map<std::int32_t, std::int32_t> changed;  // class -> its new class
      bool found = annotate_one_way(first, second, annotation, leaving, changed);
      found = annotate_one_way(second, first, annotation, leaving, changed) || found;
      if (!found) {
        throw Failure("no edge joins '" + annotation.first + "' and '" + annotation.second + "'",
                      annotation.where);
      }
    }
  }

  bool annotate_one_way(const std::vector<NodeId>& from, const std::vector<NodeId>& to,
                        const Annotation& annotation,
                        const std::unordered_map<NodeId, std::vector<std::size_t>>& leaving,
                        std::map<std::int32_t, std::int32_t>& changed) {
    const std::unordered_set<NodeId> ends(to.begin(), to.end());
    bool found = false;
    for (const NodeId node : from) {
      const auto list = leaving.find(node);
      if (list == leaving.end()) continue;
      for (const std::size_t i : list->second) {
        Link& link = machine_.links[i];
        if (!ends.contains(link.to)) continue;
        found = true;
        const bool is_new_class = std::ranges::any_of(
            changed, [&](const auto& entry) { return entry.second == link.link_class; });
        if (is_new_class) continue;  // both ends name this link
        const auto [entry, is_new] = changed.emplace(link.link_class, 0);
        if (is_new) entry->second = derive(link.link_class, annotation);
        link.link_class = entry->second;
      }
    }
    return found;
  }

  std::int32_t derive(std::int32_t base, const Annotation& annotation) {
    DraftClass draft = drafts_[index(base)];
    draft.link_class.name = unused_name(drafts_, draft.link_class.name);
    for (const Attribute& attribute : annotation.attributes) {
      check_mutable(attribute);
      draft.annotate(attribute.name, attribute.value, attribute.where);
    }
    drafts_.push_back(std::move(draft));
    return static_cast<std::int32_t>(drafts_.size()) - 1;
  }

  static void check_mutable(const Attribute& attribute) {
    for (const std::string_view fixed :
         {"type", "instance", "instance_idx", "device", "composed_device", "link"}) {
      if (attribute.name != fixed) continue;
      throw Failure("'" + attribute.name + "' follows from the graph and cannot be annotated",
                    attribute.where);
    }
  }

  void annotate_nodes() {
    for (const Annotation& annotation : document_.node_annotations) {
      const std::vector<NodeId> nodes = layout_.select(annotation.first, annotation.where);
      for (const Attribute& attribute : annotation.attributes) {
        check_mutable(attribute);
        for (const NodeId id : nodes) annotate_node(id, attribute);
      }
    }
  }

  void annotate_node(NodeId id, const Attribute& attribute) {
    Node& target = node(id);
    const std::string& key = attribute.name;
    const auto wrong_kind = [&](const std::string& expected) {
      throw Failure("'" + key + "' is for " + expected + ", and '" + target.name + "' is a " +
                        std::string(name_of(target.kind)),
                    attribute.where);
    };
    if (key == "rank") {
      if (target.kind != NodeKind::xpu) wrong_kind("xpus");
      read_rank(id, attribute);
    } else if (key == "hemiola.device_model") {
      if (target.kind != NodeKind::xpu) wrong_kind("xpus");
      target.attributes[key] = attribute.value;
      model_places_[attribute.value] = attribute.where;
    } else if (key.starts_with("hemiola.switch.")) {
      if (target.kind == NodeKind::xpu || target.kind == NodeKind::nic) wrong_kind("switches");
      set_fabric_parameter(target.switch_model, key.substr(15), attribute.value, "hemiola.switch.",
                           attribute.where);
    } else if (key.starts_with("hemiola.nic.")) {
      if (target.kind != NodeKind::nic) wrong_kind("NICs");
      set_fabric_parameter(target.nic_model, key.substr(12), attribute.value, "hemiola.nic.",
                           attribute.where);
    } else if (key.starts_with(kOurs)) {
      unknown_node_key(attribute);
    } else {
      // astra-sim-service's latency of a device is that of a switch or a NIC here.
      if (key == "device_latency_ms" && target.kind == NodeKind::nic)
        target.nic_model.latency = time_in(attribute.value, "ms", attribute.where);
      else if (key == "device_latency_ms" && target.kind != NodeKind::xpu)
        target.switch_model.latency = time_in(attribute.value, "ms", attribute.where);
      else
        target.attributes[key] = attribute.value;
    }
  }

  [[noreturn]] static void unknown_node_key(const Attribute& attribute) {
    std::vector<std::string> known{"hemiola.device_model"};
    for (const auto& parameter : fabric_parameters<SwitchModel>())
      known.push_back("hemiola.switch." + std::string(parameter.name));
    for (const auto& parameter : fabric_parameters<NicModel>())
      known.push_back("hemiola.nic." + std::string(parameter.name));
    throw Failure("unknown annotation '" + attribute.name + "'", attribute.where,
                  suggest(attribute.name, known));
  }

  void read_rank(NodeId id, const Attribute& attribute) {
    Rank& rank = ranks_[index(id)];
    rank.where = attribute.where;
    rank.outside = attribute.value == "none";
    rank.number = rank.outside ? std::nullopt : parse_count(attribute.value);
    if (!rank.outside && !rank.number) {
      throw Failure("'" + attribute.value + "' is no rank", attribute.where,
                    "a number from 0, or none for an xpu outside the job");
    }
  }

  /// By rank annotation, then in file order.
  void number_ranks() {
    std::map<std::int64_t, NodeId> numbered;
    std::vector<NodeId> others;
    for (NodeId id = 0; id < static_cast<NodeId>(machine_.nodes.size()); ++id) {
      const Rank& rank = ranks_[index(id)];
      if (node(id).kind != NodeKind::xpu || rank.outside) continue;
      if (!rank.number) {
        others.push_back(id);
      } else if (!numbered.emplace(*rank.number, id).second) {
        throw Failure("'" + node(numbered[*rank.number]).name + "' and '" + node(id).name +
                          "' both have rank " + std::to_string(*rank.number),
                      rank.where);
      }
    }
    for (const auto& [rank, id] : numbered) machine_.gpus.push_back(id);
    if (!numbered.empty() && !others.empty()) {
      machine_.warnings.warning(
          std::to_string(others.size()) + " xpus have no 'rank' and follow those that have one",
          place());
    }
    machine_.gpus.insert(machine_.gpus.end(), others.begin(), others.end());
    if (machine_.gpus.empty())
      machine_.warnings.warning("the machine has no xpu: nothing can run on it", place());
  }

  void choose_models() {
    std::map<std::string, std::int32_t> known;
    std::optional<GpuModel> chosen;
    if (!options_.gpu.empty()) chosen = load_gpu_model(options_.gpu);
    bool defaulted = false;
    for (NodeId id = 0; id < static_cast<NodeId>(machine_.nodes.size()); ++id) {
      if (node(id).kind != NodeKind::xpu) continue;
      const auto [entry, is_new] =
          node(id).attributes.emplace("hemiola.device_model", chosen ? chosen->name : "");
      if (entry->second.empty()) {
        entry->second = kDefaultGpu;
        defaulted = true;
      }
    }
    for (const NodeId id : machine_.gpus) {
      const std::string& name = node(id).attributes.at("hemiola.device_model");
      const auto [entry, is_new] =
          known.emplace(name, static_cast<std::int32_t>(machine_.models.size()));
      if (is_new)
        machine_.models.push_back(chosen && chosen->name == name ? *chosen : model_named(name));
      machine_.gpu_models.push_back(entry->second);
    }
    if (defaulted) {
      machine_.warnings.warning(
          "no device model is named: every such xpu is taken as " + std::string(kDefaultGpu),
          place(), "annotate hemiola.device_model or use --gpu NAME");
    }
  }

  const GpuModel& model_named(const std::string& name) const {
    const auto annotated = model_places_.find(name);
    const std::vector<std::string> known = gpu_model_names();
    const bool is_known = std::ranges::find(known, name) != known.end();
    if (is_known || annotated == model_places_.end()) return gpu_model(name);
    throw Failure("there is no device model '" + name + "'", annotated->second,
                  suggest(name, known, "the device models are " + joined(known, " ")));
  }

  void annotate_graph() {
    for (const Annotation& annotation : document_.graph_annotations) {
      for (const Attribute& attribute : annotation.attributes) {
        check_mutable(attribute);
        if (attribute.name == "hemiola.name") {
          machine_.name = attribute.value;
        } else if (attribute.name == "hemiola.description") {
          machine_.description = attribute.value;
        } else if (attribute.name == kRoutingAttribute) {
          set_network_routing(machine_, attribute.value, attribute.where);
        } else if (attribute.name.starts_with(kGpuPrefix)) {
          for (GpuModel& model : machine_.models) {
            set_parameter(model, std::string_view(attribute.name).substr(kGpuPrefix.size()),
                          attribute.value, attribute.where);
          }
        } else if (attribute.name.starts_with(kOurs)) {
          std::vector<std::string> known{"hemiola.name", "hemiola.description", kRoutingAttribute};
          for (const Parameter& parameter : gpu_parameters())
            known.push_back(std::string(kGpuPrefix) + std::string(parameter.name));
          throw Failure("unknown annotation '" + attribute.name + "'", attribute.where,
                        suggest(attribute.name, known));
        } else {
          machine_.attributes[attribute.name] = attribute.value;
        }
      }
    }
  }

  void warn_of_unconnected_nodes() {
    std::vector<bool> connected(machine_.nodes.size(), false);
    for (const Link& link : machine_.links) connected[index(link.from)] = true;
    std::string names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < connected.size(); ++i) {
      if (connected[i]) continue;
      if (++count <= kMostNamed) names += (names.empty() ? "" : ", ") + machine_.nodes[i].name;
    }
    if (count == 0 || machine_.nodes.size() == 1) return;
    if (count > kMostNamed) names += " and " + std::to_string(count - kMostNamed) + " more";
    machine_.warnings.warning("unconnected components: " + names, place());
  }

  void check_reachable() {
    const auto pair = find_unreachable(machine_);
    if (!pair) return;
    const auto name = [&](int rank) {
      return "'" + node(machine_.gpus[index(rank)]).name + "' (rank " + std::to_string(rank) + ")";
    };
    throw Failure(name(pair->first) + " cannot reach " + name(pair->second), place(),
                  "a path leads through switches, ports and CPUs, or through two NICs; through an "
                  "xpu only where its model says fabric.forwards");
  }

  SourceLocation place() const { return {document_.file, 0, 0, {}}; }

  const Document& document_;
  const LoadOptions& options_;
  Layout layout_;
  Machine machine_;
  std::vector<DraftClass> drafts_;
  std::vector<Rank> ranks_;
  std::map<std::string, SourceLocation> model_places_;
};

}  // namespace

Machine expand(const Document& document, const LoadOptions& options) {
  return Expander(document, options).run();
}

}  // namespace hemiola::machine::infragraph

namespace hemiola::machine {

Machine from_infragraph(std::string_view text, const std::string& file,
                        const LoadOptions& options) {
  return infragraph::expand(infragraph::parse(text, file), options);
}

}  // namespace hemiola::machine
