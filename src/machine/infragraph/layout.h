// Where the nodes of an InfraGraph document stand, and which pairs its edges join.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "machine/infragraph/infragraph.h"
#include "machine/infragraph/slices.h"
#include "machine/machine.h"

namespace hemiola::machine::infragraph {

/// One edge between two nodes, before it becomes two links. Both pointers point into the document.
struct Wire {
  NodeId a, b;
  const LinkDefinition* link;
  const Device* device;  ///< whose link it is; null for the infrastructure's
};

/// Borrows the document. The constructor throws Failure for unknown or recursive devices, names
/// given twice and more than a million nodes.
class Layout {
 public:
  explicit Layout(const Document& document);
  ~Layout();

  std::vector<Node> nodes() const;

  /// In the order that expand() promises. Throws Failure: unknown names, links that the device
  /// lacks, self-loops, one2one of unequal lengths, more than 10 million links.
  std::vector<Wire> wires(Diagnostics& warnings) const;

  /// The nodes that a name stands for; the name of an instance or of a nested device stands for all
  /// nodes inside. Throws Failure.
  std::vector<NodeId> select(const std::string& name, const SourceLocation& where) const;

 private:
  struct Plan;

  const Plan& plan(const std::string& device, const SourceLocation& where);

  const Document& document_;
  std::map<std::string, std::unique_ptr<Plan>> devices_;  ///< null: being planned
  std::unique_ptr<Plan> whole_;
};

}  // namespace hemiola::machine::infragraph
