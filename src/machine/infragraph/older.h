// InfraGraph files that were written for a schema before 2.4.
#pragma once

#include <yaml-cpp/yaml.h>

#include <string>

#include "core/diagnostics.h"

namespace hemiola::machine::infragraph {

/// Brings a file's tree into the form of 2.4, in place where it can, and returns its root; a tree
/// of 2.4 stays as it is. Files do not say which schema they were written for, so each older form
/// is recognised by itself (docs/machines.md lists them). Says what was converted or ignored in
/// `warnings`. Failure, with file and pointer, for an older form whose meaning is not clear.
YAML::Node to_current_schema(YAML::Node root, const std::string& file, Diagnostics& warnings);

}  // namespace hemiola::machine::infragraph
