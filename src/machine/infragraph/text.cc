// infragraph::Document to YAML.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>
#include <vector>

#include "core/names.h"
#include "machine/infragraph/infragraph.h"

namespace hemiola::machine::infragraph {
namespace {

/// Plain where YAML reads it back as the same text, else in double quotes.
std::string quoted(const std::string& text) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) ||
           std::string_view("_-. /()").find(c) != std::string_view::npos;
  };
  const bool is_plain = !text.empty() && std::isalnum(static_cast<unsigned char>(text.front())) &&
                        text.back() != ' ' && std::ranges::all_of(text, plain);
  const bool is_null = text == "null" || text == "Null" || text == "NULL";
  if (is_plain && !is_null) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      constexpr std::string_view kHex = "0123456789abcdef";
      out += "\\x";
      out += kHex[static_cast<unsigned char>(c) >> 4];
      out += kHex[static_cast<unsigned char>(c) & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

/// value / scale as a decimal without an exponent.
std::string decimal(std::int64_t value, std::int64_t scale) {
  std::string text = std::to_string(value / scale);
  std::string fraction = std::to_string(scale + value % scale).substr(1);
  while (!fraction.empty() && fraction.back() == '0') fraction.pop_back();
  return fraction.empty() ? text : text + "." + fraction;
}

class Text {
 public:
  std::string write(const Document& document) {
    line(0, "name: " + quoted(document.name));
    described(0, document.description);
    list(0, "devices", document.devices, [&](const Device& device) { write_device(device); });
    list(0, "links", document.links, [&](const LinkDefinition& link) { write_link(link, 1); });
    list(0, "instances", document.instances, [&](const Instance& instance) {
      line(1, "- name: " + quoted(instance.name));
      described(2, instance.description);
      line(2, "device: " + quoted(instance.device));
      line(2, "count: " + std::to_string(instance.count));
    });
    list(0, "edges", document.edges, [&](const Edge& edge) { write_edge(edge, 1, "instance"); });
    write_annotations(document);
    return std::move(out_);
  }

 private:
  void line(int depth, const std::string& text) {
    out_.append(2 * index(depth), ' ');
    out_ += text;
    out_ += '\n';
  }

  void described(int depth, const std::string& description) {
    if (!description.empty()) line(depth, "description: " + quoted(description));
  }

  template <typename Item, typename Write>
  void list(int depth, const std::string& key, const std::vector<Item>& items, Write write,
            bool required = false) {
    if (items.empty()) {
      if (required) line(depth, key + ": []");
      return;
    }
    line(depth, key + ":");
    for (const Item& item : items) write(item);
  }

  void write_device(const Device& device) {
    line(1, "- name: " + quoted(device.name));
    described(2, device.description);
    list(2, "components", device.components, [&](const Component& component) {
      line(3, "- name: " + quoted(component.name));
      described(4, component.description);
      line(4, "count: " + std::to_string(component.count));
      line(4, "choice: " + std::string(name_in(kChoiceNames, component.choice)));
      if (component.choice == Choice::custom && !component.custom_type.empty())
        line(4, "custom: { type: " + quoted(component.custom_type) + " }");
    });
    list(
        2, "links", device.links, [&](const LinkDefinition& link) { write_link(link, 3); }, true);
    list(
        2, "edges", device.edges, [&](const Edge& edge) { write_edge(edge, 3, "device"); }, true);
  }

  void write_link(const LinkDefinition& link, int depth) {
    line(depth, "- name: " + quoted(link.name));
    described(depth + 1, link.description);
    const bool has_rate = link.bandwidth && !link.bandwidth->is_ideal();
    if (!has_rate && !link.latency) return;
    line(depth + 1, "physical:");
    if (has_rate) {
      line(depth + 2, "bandwidth: { choice: gigabytes_per_second, gigabytes_per_second: " +
                          decimal(link.bandwidth->bytes_per_second, 1'000'000'000) + " }");
    }
    if (link.latency)
      line(depth + 2, "latency: { choice: ns, ns: " + decimal(link.latency->fs, 1'000'000) + " }");
  }

  void write_edge(const Edge& edge, int depth, const std::string& owner) {
    const auto endpoint = [&](const Endpoint& end) {
      const std::string first = end.owner.empty() ? "" : owner + ": " + quoted(end.owner) + ", ";
      return "{ " + first + "component: " + quoted(end.component) + " }";
    };
    line(depth, "- ep1: " + endpoint(edge.ep1));
    line(depth + 1, "ep2: " + endpoint(edge.ep2));
    line(depth + 1, "scheme: " + std::string(name_in(kSchemeNames, edge.scheme)));
    line(depth + 1, "link: " + quoted(edge.link));
  }

  void write_annotations(const Document& document) {
    if (document.node_annotations.empty() && document.edge_annotations.empty() &&
        document.link_annotations.empty() && document.graph_annotations.empty())
      return;
    line(0, "annotations:");
    const auto named = [&](const Annotation& annotation) {
      line(2, "- name: " + quoted(annotation.first));
      list(
          3, "attributes", annotation.attributes,
          [&](const Attribute& attribute) { write_attribute(attribute, 4); }, true);
    };
    list(1, "nodes", document.node_annotations, named);
    list(1, "edges", document.edge_annotations, [&](const Annotation& annotation) {
      line(2, "- ep1: " + quoted(annotation.first));
      line(3, "ep2: " + quoted(annotation.second));
      list(
          3, "attributes", annotation.attributes,
          [&](const Attribute& attribute) { write_attribute(attribute, 4); }, true);
    });
    list(1, "links", document.link_annotations, named);
    std::vector<Attribute> graph;
    for (const Annotation& annotation : document.graph_annotations)
      graph.insert(graph.end(), annotation.attributes.begin(), annotation.attributes.end());
    list(1, "graph", graph, [&](const Attribute& attribute) { write_attribute(attribute, 2); });
  }

  void write_attribute(const Attribute& attribute, int depth) {
    line(depth,
         "- { attribute: " + quoted(attribute.name) + ", value: " + quoted(attribute.value) + " }");
  }

  std::string out_;
};

}  // namespace

std::string write(const Document& document) {
  return Text().write(document);
}

}  // namespace hemiola::machine::infragraph
