// hemiola compile MODULE.txt: products of an HLO module, and one of them as a plan.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"

namespace hemiola::cli {

struct CompileModuleOptions {
  std::string module;         ///< file
  std::string product;        ///< --dot
  std::string template_name;  ///< --template; empty: the usual one
  std::vector<std::string> parameters;
  std::string output;
};

/// Whether a file holds an HLO module.
bool is_module_file(const std::string& file);
/// Prints the products of a module, and for each the collectives beside it.
ExitCode describe_module(const CompileModuleOptions& options);
/// Writes the plan of one product, and says what it is.
ExitCode compile_module(const CompileModuleOptions& options);

}  // namespace hemiola::cli
