// InfraGraph 2.4 (Keysight/infragraph, MIT): text -> document -> machine, and back.
//
// Differences from the reference implementation, all on purpose: an edge becomes two directed links
// and parallel edges stay; one2one needs equal lengths (a longer end without a slice gives its
// first nodes and a warning); unset schemes, unknown names and empty slices are errors; `ring` is
// implemented. Annotations, which upstream keeps outside the file, may stand in it under the root
// key `annotations` (one Annotation object or a list of them). docs/machines.md lists the keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/units.h"
#include "machine/infragraph/words.h"
#include "machine/machine.h"

namespace hemiola::machine {

/// Reads InfraGraph YAML or JSON and expands it. A lone device becomes a machine with one instance
/// of it. Uses options.gpu, not options.set (load() applies that to every kind of machine). Throws
/// Failure.
Machine from_infragraph(std::string_view text, const std::string& file,
                        const LoadOptions& options = {});

namespace infragraph {

struct Component {
  std::string name;  ///< of a `device` component: the device's name
  std::string description;
  std::int64_t count = 1;
  Choice choice = Choice::custom;
  std::string custom_type;  ///< for Choice::custom
  SourceLocation where;
};

struct LinkDefinition {
  std::string name;
  std::string description;
  std::optional<Rate> bandwidth;  ///< per direction
  std::optional<Time> latency;
  SourceLocation where;
};

/// Components are "xpu", "xpu[3]", "xpu[0:8:2]", "cx5[0:2].port[0]"; the owner is a slice of
/// instances
/// ("dgx[0]") for an edge of the infrastructure, and for an edge of a device a slice of a nested
/// device
/// ("cx5[0:8]") or empty.
struct Endpoint {
  std::string owner;
  std::string component;
  SourceLocation where;
};

struct Edge {
  Endpoint ep1, ep2;
  Scheme scheme = Scheme::one2one;
  std::string link;
  SourceLocation where;
};

struct Device {
  std::string name;
  std::string description;
  std::vector<Component> components;
  std::vector<LinkDefinition> links;
  std::vector<Edge> edges;
  SourceLocation where;
};

struct Instance {
  std::string name;
  std::string description;
  std::string device;
  std::int64_t count = 1;
  SourceLocation where;
};

struct Attribute {
  std::string name;
  std::string value;
  SourceLocation where;
};

/// Attributes of what `first` (and for an edge `second`) names: nodes by id ("dgx.0.xpu.3") or by
/// slices
/// ("dgx[0:2].xpu[0:4]", the dot may be missing), links by name; the graph has no name.
struct Annotation {
  std::string first, second;
  std::vector<Attribute> attributes;
  SourceLocation where;
};

struct Document {
  std::string name;
  std::string description;
  std::vector<Device> devices;
  std::vector<LinkDefinition> links;
  std::vector<Instance> instances;
  std::vector<Edge> edges;
  std::vector<Annotation> node_annotations, edge_annotations, link_annotations, graph_annotations;
  std::string file;
  Diagnostics warnings;
};

/// Checks keys and types only. Throws Failure with every error found (the first 20).
Document parse(std::string_view text, const std::string& file);

/// Nodes instance by instance, in the order of the components; links in the order of the edges: per
/// instance those of its device (nested devices first), then those of the infrastructure. Link 2k
/// and 2k + 1 are the two directions of one edge. Checks everything else. Throws Failure.
Machine expand(const Document& document, const LoadOptions& options = {});

/// As YAML that parse() reads back.
std::string write(const Document& document);

}  // namespace infragraph
}  // namespace hemiola::machine
