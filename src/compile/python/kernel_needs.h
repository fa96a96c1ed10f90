// What the text of a kernel needs of other texts: helpers, constants, imports.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "compile/python/modules.h"

namespace hemiola::compile {

/// All nodes of a kind in a node, in the order of the text.
void find_all(const Node& node, Kind kind, std::vector<const Node*>& found);

/// Whether a call asks for the program's number, or for how many there are.
bool asks_for_program(const Source& source, const Node& call);

class KernelNeeds {
 public:
  /// Failure: a helper asks for the program's number; a name begins with `prefix`; a module is
  /// neither found nor part of Python, Triton or PyTorch.
  KernelNeeds(Library& library, const Function& kernel, std::string prefix);

  /// Lines of Python: imports beside triton and tl, constants, helpers as they stand in their
  /// files, each before what calls it.
  std::string imports() const;
  std::string constants() const;
  std::string helpers() const;

 private:
  void collect(const Function& function);
  void need(const Module& from, const std::string& name);

  Library& library_;
  const Function& kernel_;
  std::string prefix_;
  std::set<std::string> seen_;
  bool in_constant_ = false;  ///< what is looked for is part of a constant's value
  std::vector<const Function*> helpers_;
  std::vector<std::string> constants_;
  std::map<std::string, Import> imports_;
};

}  // namespace hemiola::compile
