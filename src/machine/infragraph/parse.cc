// YAML or JSON (which YAML 1.2 contains) to infragraph::Document.
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "core/lists.h"
#include "core/names.h"
#include "machine/fabric_parameters.h"
#include "machine/infragraph/infragraph.h"

namespace hemiola::machine::infragraph {
namespace {

constexpr int kMostErrors = 20;

/// A place in the file: the node and the JSON pointer to it.
struct Place {
  YAML::Node node;
  std::string pointer;
};

class Parser {
 public:
  Parser(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  Document parse() {
    YAML::Node root;
    try {
      root = YAML::Load(std::string(text_));
    } catch (const YAML::ParserException& problem) {
      throw Failure("this is neither YAML nor JSON: " + problem.msg, at(problem.mark, ""));
    }
    document_.file = file_;
    try {
      read_root({root, ""});
    } catch (const TooMany&) {
      problems_.error("more errors follow", SourceLocation{file_, 0, 0, {}});
    }
    if (problems_.has_errors()) throw Failure(problems_);
    return std::move(document_);
  }

 private:
  struct TooMany {};

  SourceLocation at(const YAML::Mark& mark, const std::string& pointer) const {
    if (mark.is_null()) return {file_, 0, 0, pointer};
    return {file_, mark.line + 1, mark.column + 1, pointer};
  }
  SourceLocation where(const Place& place) const { return at(place.node.Mark(), place.pointer); }

  void error(std::string message, const SourceLocation& location, std::string hint = {}) {
    problems_.error(std::move(message), location, std::move(hint));
    if (static_cast<int>(problems_.items().size()) >= kMostErrors) throw TooMany{};
  }

  /// Checks that `place` is a map with known keys, each once, and has the required ones.
  bool check_map(const Place& place, const std::string& what,
                 std::initializer_list<std::string_view> required,
                 std::initializer_list<std::string_view> optional) {
    if (!place.node.IsMap()) {
      error(what + " must be a map of keys and values", where(place));
      return false;
    }
    std::vector<std::string> known(required.begin(), required.end());
    for (const std::string_view key : optional)
      if (!key.empty()) known.emplace_back(key);
    std::vector<std::string> seen;
    for (const auto& entry : place.node) {
      if (!entry.first.IsScalar()) {
        error("a key of " + what + " must be a name", at(entry.first.Mark(), place.pointer));
        continue;
      }
      const std::string key = entry.first.Scalar();
      const SourceLocation location = at(entry.first.Mark(), place.pointer + "/" + key);
      if (std::ranges::find(known, key) == known.end())
        error("unknown key '" + key + "' in " + what, location, hint_for(key, known));
      else if (std::ranges::find(seen, key) != seen.end())
        error("key '" + key + "' stands twice in " + what, location);
      seen.push_back(key);
    }
    bool complete = true;
    for (const std::string_view key : required) {
      if (std::ranges::find(seen, key) != seen.end()) continue;
      error(what + " has no '" + std::string(key) + "'", where(place));
      complete = false;
    }
    return complete;
  }

  static std::string hint_for(const std::string& word, const std::vector<std::string>& known) {
    return suggest(word, known, "known are " + joined(known, " "));
  }

  static Place child(const Place& place, const std::string& key) {
    return {place.node[key], place.pointer + "/" + key};
  }

  std::string text(const Place& place, const std::string& key) {
    const Place value = child(place, key);
    if (!value.node) return {};
    if (value.node.IsNull()) return {};
    if (!value.node.IsScalar()) {
      error("'" + key + "' must be text", where(value));
      return {};
    }
    return value.node.Scalar();
  }

  /// A name that a slice or --set can refer to.
  std::string name(const Place& place) {
    std::string value = text(place, "name");
    if (place.node["name"] && value.empty()) error("a name is empty", where(child(place, "name")));
    for (const char c : value) {
      const auto byte = static_cast<unsigned char>(c);
      if (std::isalnum(byte) || std::string_view(" -_()><").find(c) != std::string_view::npos)
        continue;
      error("the name '" + value + "' contains '" + std::string(1, c) + "'",
            where(child(place, "name")), "letters, digits, blanks and -_()>< are allowed");
      break;
    }
    return value;
  }

  std::int64_t count(const Place& place) {
    const Place value = child(place, "count");
    if (!value.node) return 1;
    const auto number = parse_count(value.node.IsScalar() ? value.node.Scalar() : "");
    if (!number || *number < 1) {
      error("a count must be a whole number of at least 1", where(value));
      return 1;
    }
    return *number;
  }

  template <typename Value, std::size_t n>
  Value choice(const Place& place, const std::string& key,
               const std::array<std::string_view, n>& names, Value otherwise) {
    const std::string word = text(place, key);
    if (const auto value = value_named<Value>(names, word)) return *value;
    if (place.node[key])
      error("'" + word + "' is no " + key, where(child(place, key)),
            hint_for(word, {names.begin(), names.end()}));
    return otherwise;
  }

  template <typename Read>
  void each(const Place& parent, const std::string& key, Read read) {
    const Place list = child(parent, key);
    if (!list.node || list.node.IsNull()) return;
    if (!list.node.IsSequence()) {
      error("'" + key + "' must be a list", where(list));
      return;
    }
    std::size_t i = 0;
    for (const auto& item : list.node) read(Place{item, list.pointer + "/" + std::to_string(i++)});
  }

  void read_root(const Place& root) {
    if (!root.node.IsMap()) {
      error("an InfraGraph file must be a map of keys and values", where(root));
      return;
    }
    if (root.node["components"] && !root.node["instances"]) {
      read_lone_device(root);
      return;
    }
    check_map(root, "the infrastructure", {"name"},
              {"description", "devices", "links", "instances", "edges", "annotations"});
    document_.name = text(root, "name");
    document_.description = text(root, "description");
    each(root, "devices", [&](const Place& item) { read_device(item, {}); });
    each(root, "links", [&](const Place& item) { document_.links.push_back(read_link(item)); });
    each(root, "instances", [&](const Place& item) { read_instance(item); });
    each(root, "edges",
         [&](const Place& item) { document_.edges.push_back(read_edge(item, "instance", true)); });
    const Place annotations = child(root, "annotations");
    if (annotations.node && annotations.node.IsSequence())
      each(root, "annotations", [&](const Place& item) { read_annotation(item); });
    else if (annotations.node && !annotations.node.IsNull())
      read_annotation(annotations);
    if (!document_.instances.empty() || problems_.has_errors()) return;
    if (document_.devices.size() == 1) {
      instantiate_lone_device();
    } else {
      error("the infrastructure has no instances", where(root),
            "add 'instances' with a name, a device and a count");
    }
  }

  void read_lone_device(const Place& root) {
    read_device(root, "annotations");
    const Place annotations = child(root, "annotations");
    if (annotations.node && !annotations.node.IsNull()) read_annotation(annotations);
    if (document_.devices.size() == 1) instantiate_lone_device();
  }

  void instantiate_lone_device() {
    const Device& device = document_.devices[0];
    if (document_.name.empty()) document_.name = device.name;
    if (document_.description.empty()) document_.description = device.description;
    document_.instances.push_back({.name = device.name,
                                   .description = {},
                                   .device = device.name,
                                   .count = 1,
                                   .where = device.where});
    document_.warnings.warning(
        "the file describes a device, not an infrastructure: one instance of it is used",
        device.where);
  }

  void read_device(const Place& place, std::string_view also) {
    check_map(place, "a device", {"name", "components"}, {"description", "links", "edges", also});
    if (!place.node.IsMap()) return;
    Device device;
    device.name = name(place);
    device.description = text(place, "description");
    device.where = where(place);
    each(place, "components",
         [&](const Place& item) { device.components.push_back(read_component(item)); });
    each(place, "links", [&](const Place& item) { device.links.push_back(read_link(item)); });
    each(place, "edges",
         [&](const Place& item) { device.edges.push_back(read_edge(item, "device", false)); });
    document_.devices.push_back(std::move(device));
  }

  Component read_component(const Place& place) {
    Component component;
    component.where = where(place);
    // The choice's own key holds an empty object, as the schema's generator writes it.
    if (!check_map(
            place, "a component", {"name", "count", "choice"},
            {"description", "custom", "device", "cpu", "xpu", "nic", "memory", "port", "switch"}))
      return component;
    component.name = name(place);
    component.description = text(place, "description");
    component.count = count(place);
    component.choice = choice(place, "choice", kChoiceNames, Choice::custom);
    for (const std::string_view key : kChoiceNames) {
      const Place detail = child(place, std::string(key));
      if (!detail.node || detail.node.IsNull()) continue;
      const auto value = value_named<Choice>(kChoiceNames, key);
      if (value != component.choice) {
        error("a component of another choice has the key '" + std::string(key) + "'",
              where(detail));
      } else if (value == Choice::custom) {
        if (check_map(detail, "custom", {"type"}, {})) component.custom_type = text(detail, "type");
      } else if (detail.node.IsMap()) {
        check_map(detail, std::string(key), {}, {});
      }
    }
    return component;
  }

  LinkDefinition read_link(const Place& place) {
    LinkDefinition link;
    link.where = where(place);
    if (!check_map(place, "a link", {"name"}, {"description", "physical"})) return link;
    link.name = name(place);
    link.description = text(place, "description");
    const Place physical = child(place, "physical");
    if (!physical.node || physical.node.IsNull()) return link;
    check_map(physical, "physical", {}, {"bandwidth", "latency"});
    if (!physical.node.IsMap()) return link;
    try {
      read_bandwidth(child(physical, "bandwidth"), link);
      read_latency(child(physical, "latency"), link);
    } catch (const Failure& failure) {
      const Diagnostic& problem = failure.diagnostics().items().front();
      error(problem.message, problem.where, problem.hint);
    }
    return link;
  }

  /// The one key of `keys` that stands in the map, which `choice` must agree with; "" if none does.
  std::string one_of(const Place& place, const std::string& what,
                     const std::vector<std::string>& keys) {
    std::string found;
    if (!place.node.IsMap()) {
      error(what + " must be a map of keys and values", where(place));
      return found;
    }
    for (const auto& entry : place.node) {
      const std::string key = entry.first.IsScalar() ? entry.first.Scalar() : "";
      if (key == "choice") continue;
      if (std::ranges::find(keys, key) == keys.end()) {
        error("unknown key '" + key + "' in " + what, at(entry.first.Mark(), place.pointer),
              hint_for(key, keys));
      } else if (!found.empty()) {
        error(what + " is given twice", at(entry.first.Mark(), place.pointer), "keep one unit");
      } else {
        found = key;
      }
    }
    const std::string chosen = text(place, "choice");
    if (found.empty())
      error(what + " has no value", where(place), hint_for("", keys));
    else if (place.node["choice"] && chosen != found)
      error(what + " chooses '" + chosen + "' but gives '" + found + "'", where(place));
    return found;
  }

  void read_bandwidth(const Place& place, LinkDefinition& link) {
    if (!place.node || place.node.IsNull()) return;
    const std::string key =
        one_of(place, "bandwidth",
               {"gigabits_per_second", "gigabytes_per_second", "gigatransfers_per_second"});
    if (key.empty()) return;
    const std::string number = text(place, key);
    const SourceLocation location = where(child(place, key));
    if (key == "gigabits_per_second")
      link.bandwidth = rate_in(number, "Gb/s", location);
    else if (key == "gigabytes_per_second")
      link.bandwidth = rate_in(number, "GB/s", location);
    else
      link.bandwidth = transfers(number, link, location);
  }

  /// GT/s count one lane: the width is in the description ("x16"), the encoding is PCIe's
  /// 128b/130b.
  Rate transfers(const std::string& number, const LinkDefinition& link,
                 const SourceLocation& location) {
    std::int64_t width = 0;
    for (const std::int64_t candidate : {16, 8, 4, 2, 1}) {
      const std::string word = "x" + std::to_string(candidate);
      const std::string& described = link.description;
      const std::size_t found = described.find(word);
      if (found == std::string::npos) continue;
      const std::size_t after = found + word.size();
      if (after < described.size() && std::isdigit(static_cast<unsigned char>(described[after])))
        continue;
      width = candidate;
      break;
    }
    if (width == 0) {
      width = 16;
      document_.warnings.warning(
          "link '" + link.name + "' gives gigatransfers per second and no width: x16 is assumed",
          location, "name the width in the description, as in 'PCIe x8'");
    }
    const Rate lane = rate_in(number, "Gb/s", location);
    return {static_cast<std::int64_t>(static_cast<__int128>(lane.bytes_per_second) * width * 128 /
                                      130)};
  }

  void read_latency(const Place& place, LinkDefinition& link) {
    if (!place.node || place.node.IsNull()) return;
    const std::string key = one_of(place, "latency", {"ms", "us", "ns"});
    if (key.empty()) return;
    link.latency = time_in(text(place, key), key, where(child(place, key)));
  }

  void read_instance(const Place& place) {
    Instance instance;
    instance.where = where(place);
    if (check_map(place, "an instance", {"name", "device", "count"}, {"description"})) {
      instance.name = name(place);
      instance.description = text(place, "description");
      instance.device = text(place, "device");
      instance.count = count(place);
    }
    document_.instances.push_back(std::move(instance));
  }

  Edge read_edge(const Place& place, std::string_view owner, bool owner_required) {
    Edge edge;
    edge.where = where(place);
    if (!check_map(place, "an edge", {"ep1", "ep2", "link"}, {"scheme"})) return edge;
    edge.ep1 = read_endpoint(child(place, "ep1"), owner, owner_required);
    edge.ep2 = read_endpoint(child(place, "ep2"), owner, owner_required);
    edge.link = text(place, "link");
    if (!place.node["scheme"])
      error("an edge has no 'scheme'", edge.where, "one of one2one, many2many, ring");
    edge.scheme = choice(place, "scheme", kSchemeNames, Scheme::one2one);
    return edge;
  }

  Endpoint read_endpoint(const Place& place, std::string_view owner, bool owner_required) {
    Endpoint endpoint;
    endpoint.where = where(place);
    const bool complete = owner_required ? check_map(place, "an endpoint", {owner, "component"}, {})
                                         : check_map(place, "an endpoint", {"component"}, {owner});
    if (!complete) return endpoint;
    endpoint.owner = text(place, std::string(owner));
    endpoint.component = text(place, "component");
    return endpoint;
  }

  void read_annotation(const Place& place) {
    if (!place.node.IsMap()) {
      error("an annotation must be a map of keys and values", where(place));
      return;
    }
    check_map(place, "an annotation", {}, {"nodes", "edges", "links", "graph"});
    each(place, "nodes", [&](const Place& item) {
      document_.node_annotations.push_back(read_target(item, {"name"}));
    });
    each(place, "edges", [&](const Place& item) {
      document_.edge_annotations.push_back(read_target(item, {"ep1", "ep2"}));
    });
    each(place, "links", [&](const Place& item) {
      document_.link_annotations.push_back(read_target(item, {"name"}));
    });
    Annotation graph;
    graph.where = where(place);
    each(place, "graph",
         [&](const Place& item) { graph.attributes.push_back(read_attribute(item)); });
    if (!graph.attributes.empty()) document_.graph_annotations.push_back(std::move(graph));
  }

  Annotation read_target(const Place& place, const std::vector<std::string>& names) {
    Annotation annotation;
    annotation.where = where(place);
    const bool complete = names.size() == 1
                              ? check_map(place, "an annotation", {"name", "attributes"}, {})
                              : check_map(place, "an annotation", {"ep1", "ep2", "attributes"}, {});
    if (!complete) return annotation;
    annotation.first = text(place, names[0]);
    if (names.size() > 1) annotation.second = text(place, names[1]);
    each(place, "attributes",
         [&](const Place& item) { annotation.attributes.push_back(read_attribute(item)); });
    return annotation;
  }

  Attribute read_attribute(const Place& place) {
    Attribute attribute;
    attribute.where = where(place);
    if (!check_map(place, "an attribute", {"attribute", "value"}, {})) return attribute;
    attribute.name = text(place, "attribute");
    attribute.value = text(place, "value");
    return attribute;
  }

  std::string_view text_;
  const std::string& file_;
  Document document_;
  Diagnostics problems_;
};

}  // namespace

Document parse(std::string_view text, const std::string& file) {
  try {
    return Parser(text, file).parse();
  } catch (const YAML::Exception& problem) {
    SourceLocation location{file, 0, 0, {}};
    if (!problem.mark.is_null()) {
      location.line = problem.mark.line + 1;
      location.column = problem.mark.column + 1;
    }
    throw Failure("the file cannot be read: " + problem.msg, location);
  }
}

}  // namespace hemiola::machine::infragraph
