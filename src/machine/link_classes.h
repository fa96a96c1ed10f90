// Link classes under construction: what a file says, then what it is taken for where it says
// nothing.
#pragma once

#include <string>
#include <vector>

#include "core/diagnostics.h"
#include "machine/link_defaults.h"
#include "machine/machine.h"

namespace hemiola::machine {

/// A link class and which of its numbers are known.
struct DraftClass {
  LinkClass link_class;
  std::string definition;  ///< name of the link definition: annotations find it by this too
  std::string description;
  bool has_bandwidth = false, has_latency = false, has_max_payload = false, has_header = false;
  SourceLocation where;

  /// An annotation: hemiola.* (bandwidth, latency, max_payload, header, control, credits,
  /// arbitration, route_latency, assumed), link_bandwidth_gbps, link_latency_ms; others are kept as
  /// attributes. Throws Failure.
  void annotate(const std::string& key, const std::string& value, const SourceLocation& where);
};

/// Fills what is not known from link_default(), with one warning per class. Uses machine.nodes and
/// machine.links (whose link_class is an index into `drafts`) to share a GPU's bandwidth among its
/// links.
void complete(std::vector<DraftClass>& drafts, Machine& machine);

/// `base`, or the first of base-2, base-3, ... that no draft has.
std::string unused_name(const std::vector<DraftClass>& drafts, const std::string& base);

/// Moves the used drafts into machine.link_classes in order of first use and numbers lanes.
void install(const std::vector<DraftClass>& drafts, Machine& machine);

}  // namespace hemiola::machine
