// The entrance: what is in a kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compile/describe/description.h"

namespace hemiola::compile {

struct DescribeRequest {
  std::string file;
  std::string kernel;                ///< empty: the only one of the file
  std::vector<std::string> helpers;  ///< files to look into for names that imports do not lead to
  std::map<std::string, std::string> bind;  ///< plan's name: parameter
  std::map<std::string, Role> roles;        ///< parameter, or plan's name: role
  ParameterValues constants;                ///< BLOCK_M: "128"
  Target target = Target::cuda;
};

/// What was understood, and what not with the reason. Failure for a file that is not Python, has no
/// @triton.jit, has several kernels where none is named, or not the one that is; and for names that
/// the kernel does not have.
Description describe(const DescribeRequest& request);
/// The same of a module that was read; `request.file` and `request.helpers` are not looked at.
Description describe(Library& library, const Module& module, const DescribeRequest& request);

/// What decorators say (decorators.cc).
Tuning read_tuning(Library& library, const Function& kernel);

}  // namespace hemiola::compile
