#include "machine/infragraph/older.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "core/finding.h"
#include "core/lists.h"
#include "core/names.h"
#include "core/units.h"
#include "machine/infragraph/words.h"

namespace hemiola::machine::infragraph {
namespace {

using Renamed = std::pair<std::string_view, std::string_view>;

constexpr std::array<Renamed, 6> kRates{{{"giga_bits_per_second", "gigabits_per_second"},
                                         {"giga_bytes_per_second", "gigabytes_per_second"},
                                         {"giga_transfers_per_second", "gigatransfers_per_second"},
                                         {"g_bits_per_second", "gigabits_per_second"},
                                         {"g_bytes_per_second", "gigabytes_per_second"},
                                         {"g_transfers_per_second", "gigatransfers_per_second"}}};
template <std::size_t n>
std::string renamed(const std::array<Renamed, n>& names, const std::string& word) {
  for (const auto& [older, newer] : names)
    if (older == word) return std::string(newer);
  return word;
}

std::string word(const YAML::Node& node, const char* key) {
  return node[key] && node[key].IsScalar() ? node[key].Scalar() : std::string();
}

bool is_list(const YAML::Node& node) {
  return node && node.IsSequence();
}

class Converter {
 public:
  Converter(const std::string& file, Diagnostics& warnings) : file_(file), warnings_(warnings) {}

  YAML::Node convert(YAML::Node root) {
    if (!root.IsMap()) return root;
    std::string pointer;
    if (root.size() == 1 && root["infrastructure"] && root["infrastructure"].IsMap()) {
      wrapper_.note("the root key 'infrastructure' to the root itself",
                    [&] { return at(root["infrastructure"], "/infrastructure"); });
      root.reset(YAML::Node(root["infrastructure"]));
      pointer = "/infrastructure";
    }
    if (root["components"] && !root["devices"]) {
      convert_device(root, root, pointer);
    } else {
      each(root, "devices", pointer, [&](YAML::Node device, const std::string& where) {
        convert_device(device, root, where);
      });
    }
    each(root, "links", pointer,
         [&](YAML::Node link, const std::string& where) { convert_link(link, where); });
    convert_instances(root, pointer);
    convert_connections(root, pointer, true);
    each(root, "edges", pointer,
         [&](YAML::Node edge, const std::string& where) { convert_edge(edge, where); });
    convert_annotations(root, pointer);
    if (!root["name"] && is_older()) {
      unnamed_.note("an infrastructure without a name: it has that of the file",
                    [&] { return at(root, pointer); });
      root["name"] = file_stem();
    }
    say();
    return root;
  }

 private:
  SourceLocation at(const YAML::Node& node, const std::string& pointer) const {
    const YAML::Mark mark = node.Mark();
    if (mark.is_null()) return {file_, 0, 0, pointer};
    return {file_, mark.line + 1, mark.column + 1, pointer};
  }

  template <typename Convert>
  static void each(const YAML::Node& parent, const char* key, const std::string& pointer,
                   Convert convert) {
    const YAML::Node list = parent[key];
    if (!is_list(list)) return;
    for (std::size_t i = 0; i < list.size(); ++i)
      if (list[i].IsMap()) convert(list[i], pointer + '/' + key + '/' + std::to_string(i));
  }

  void convert_device(YAML::Node device, YAML::Node root, const std::string& pointer) {
    const std::map<std::string, std::int64_t> counts = counts_in(device, 2);
    each(device, "components", pointer, [&](YAML::Node component, const std::string& where) {
      convert_component(component, counts, where);
    });
    each(device, "links", pointer,
         [&](YAML::Node link, const std::string& where) { convert_link(link, where); });
    convert_connections(device, pointer, false);
    each(device, "edges", pointer,
         [&](YAML::Node edge, const std::string& where) { convert_edge(edge, where); });
    if (is_list(device["instances"]) && !device.is(root)) {
      each(device, "instances", pointer, [&](YAML::Node instance, const std::string& where) {
        device_instances_.note("'instances' of a device to those of the infrastructure",
                               [&] { return at(instance, where); });
        YAML::Node moved(instance);
        if (!moved["name"]) moved["name"] = word(device, "name");
        moved["device"] = word(device, "name");
        root["instances"].push_back(moved);
      });
      device.remove("instances");
    }
  }

  void convert_component(YAML::Node component, const std::map<std::string, std::int64_t>& counts,
                         const std::string& pointer) {
    const std::string name = word(component, "name");
    const char* key = component["choice"] ? "choice" : "type";
    const std::string older = word(component, key);
    if (!older.empty() && (key == std::string_view("type") || older == "npu")) {
      std::string choice = older == "npu" || older == "gpu" ? "xpu" : older;
      // A switch's ports were of the type nic, which stood for whatever faces the network.
      if (choice == "nic" && name.find("port") != std::string::npos) choice = "port";
      const bool known = value_named<Choice>(kChoiceNames, choice).has_value();
      if (!known) choice = "custom";
      types_.note("the " + std::string(key) + " '" + older + "' of a component to the choice '" +
                      choice + "'",
                  [&] { return at(component, pointer + '/' + key); });
      component.remove(key);
      component.remove(older);  // the empty object of a choice
      component["choice"] = choice;
      if (choice == "custom") component["custom"]["type"] = known ? name : older;
    }
    if (component["external"]) {
      external_.note("'external' of a component: edges may end at any",
                     [&] { return at(component["external"], pointer + "/external"); });
      component.remove("external");
    }
    convert_count(component, name, counts, pointer);
  }

  void convert_count(YAML::Node node, const std::string& name,
                     const std::map<std::string, std::int64_t>& counts,
                     const std::string& pointer) {
    if (node["count"]) return;
    const auto found = counts.find(name);
    if (found == counts.end()) return;  // the reader asks for it
    counts_.note("the highest index of '" + name + "' in the connections to its count, " +
                     std::to_string(found->second),
                 [&] { return at(node, pointer); });
    node["count"] = found->second;
  }

  void convert_link(YAML::Node link, const std::string& pointer) {
    if (link["bandwidth"] && !link["physical"]) {
      bandwidths_.note("'bandwidth' of a link to its 'physical'",
                       [&] { return at(link["bandwidth"], pointer + "/bandwidth"); });
      const YAML::Node bandwidth(link["bandwidth"]);
      link.remove("bandwidth");
      link["physical"]["bandwidth"] = bandwidth;
    }
    if (!link["physical"] || !link["physical"].IsMap()) return;
    YAML::Node bandwidth = link["physical"]["bandwidth"];
    if (!bandwidth || !bandwidth.IsMap()) return;
    for (const auto& [older, newer] : kRates) {
      const std::string from(older), to(newer);
      if (!bandwidth[from]) continue;
      units_.note("'" + from + "' to '" + to + "'",
                  [&] { return at(bandwidth[from], pointer + "/physical/bandwidth/" + from); });
      const std::string value = word(bandwidth, from.c_str());
      bandwidth.remove(from);
      bandwidth[to] = value;
    }
    if (bandwidth["choice"]) bandwidth["choice"] = renamed(kRates, word(bandwidth, "choice"));
  }

  void convert_edge(YAML::Node edge, const std::string& pointer) {
    const YAML::Node flag = edge["many2many"];
    if (!flag || edge["scheme"]) return;
    const std::string value = word(edge, "many2many");
    if (value != "true" && value != "false")
      throw Failure("'many2many' is true or false, not '" + value + "'",
                    at(flag, pointer + "/many2many"), "schema 2.4 has 'scheme' instead");
    const std::string scheme = value == "true" ? "many2many" : "one2one";
    schemes_.note("'many2many: " + value + "' of an edge to 'scheme: " + scheme + "'",
                  [&] { return at(flag, pointer + "/many2many"); });
    edge.remove("many2many");
    edge["scheme"] = scheme;
  }

  /// Names in the connections of a device (of the infrastructure), and how many of each these speak
  /// of. Every `parts`-th word after the first is a link.
  std::map<std::string, std::int64_t> counts_in(const YAML::Node& node, std::size_t end_words) {
    std::map<std::string, std::int64_t> counts;
    const YAML::Node list = node["connections"];
    if (!is_list(list)) return counts;
    for (const auto& connection : list) {
      if (!connection.IsScalar()) continue;
      const std::vector<std::string> words = split(connection.Scalar(), '.');
      if (words.size() != 2 * end_words + 1) continue;
      for (const std::size_t first : {std::size_t{0}, end_words + 1}) {
        const auto index = parse_count(words[first + 1]);
        if (!index || *index >= kMostNodes) continue;
        std::int64_t& count = counts[words[first]];
        count = std::max(count, *index + 1);
      }
    }
    return counts;
  }

  void convert_instances(YAML::Node root, const std::string& pointer) {
    const std::map<std::string, std::int64_t> counts = counts_in(root, 4);
    each(root, "instances", pointer, [&](YAML::Node instance, const std::string& where) {
      convert_count(instance, word(instance, "name"), counts, where);
    });
  }

  /// "cpu.0.fabric.cpu.1" of a device, "host.0.nic.1.eth.leaf.0.port.4" of the infrastructure.
  void convert_connections(YAML::Node node, const std::string& pointer, bool infrastructure) {
    const YAML::Node list = node["connections"];
    if (!is_list(list)) return;
    const std::size_t end_words = infrastructure ? 4 : 2;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::string where = pointer + "/connections/" + std::to_string(i);
      const std::string text = list[i].IsScalar() ? list[i].Scalar() : std::string();
      const std::vector<std::string> words = split(text, '.');
      if (words.size() != 2 * end_words + 1)
        throw Failure("'" + text + "' is no connection of the schema before 'edges'",
                      at(list[i], where),
                      infrastructure ? "one is instance.0.component.0.link.instance.0.component.1"
                                     : "one is component.0.link.component.1");
      connections_.note("a connection to an edge", [&] { return at(list[i], where); });
      YAML::Node edge;
      edge["ep1"] = endpoint(words, 0, infrastructure);
      edge["ep2"] = endpoint(words, end_words + 1, infrastructure);
      edge["scheme"] = "one2one";
      edge["link"] = words[end_words];
      node["edges"].push_back(edge);
    }
    node.remove("connections");
  }

  static YAML::Node endpoint(const std::vector<std::string>& words, std::size_t first,
                             bool infrastructure) {
    YAML::Node endpoint;
    if (infrastructure) {
      endpoint["instance"] = words[first] + '[' + words[first + 1] + ']';
      first += 2;
    }
    endpoint["component"] = words[first] + '[' + words[first + 1] + ']';
    return endpoint;
  }

  /// Named data of any kind, which were for whoever knew the name.
  void convert_annotations(YAML::Node root, const std::string& pointer) {
    const YAML::Node list = root["annotations"];
    if (!is_list(list) || list.size() == 0 || !list[0].IsMap() || !list[0]["data"]) return;
    annotations_.note("annotations of named data",
                      [&] { return at(list, pointer + "/annotations"); });
    root.remove("annotations");
  }

  bool is_older() const {
    return std::ranges::any_of(converted_, [](const Finding* finding) { return finding->any(); });
  }

  void say() {
    for (const Finding* finding : converted_)
      finding->warn(warnings_, Leniency::converted,
                    "`hemiola machine convert` writes the file as schema 2.4 has it");
    unnamed_.warn(warnings_, Leniency::converted);
    external_.warn(warnings_, Leniency::ignored, "schema 2.4 has no such key");
    annotations_.warn(warnings_, Leniency::ignored,
                      "schema 2.4 annotates nodes, edges and links by attributes");
  }

  std::string file_stem() const {
    const std::size_t slash = file_.find_last_of('/');
    const std::string name = slash == std::string::npos ? file_ : file_.substr(slash + 1);
    const std::string stem = name.substr(0, name.find('.'));
    return stem.empty() ? "infrastructure" : stem;
  }

  static constexpr std::int64_t kMostNodes = 1'000'000;
  const std::string& file_;
  Diagnostics& warnings_;
  Finding wrapper_, types_, counts_, connections_, schemes_, bandwidths_, units_, device_instances_;
  const std::array<const Finding*, 8> converted_{&wrapper_,     &types_,           &counts_,
                                                 &connections_, &schemes_,         &bandwidths_,
                                                 &units_,       &device_instances_};
  Finding external_, annotations_, unnamed_;
};

}  // namespace

YAML::Node to_current_schema(YAML::Node root, const std::string& file, Diagnostics& warnings) {
  return Converter(file, warnings).convert(std::move(root));
}

}  // namespace hemiola::machine::infragraph
