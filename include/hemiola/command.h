// The command line as a function, for programs that add parts of their own to it.
#pragma once

#include "hemiola/parts/registry.h"

namespace hemiola {

/// What `hemiola` does with these arguments: every verb, with the parts of the registry. Results go
/// to standard output, all else to standard error. Returns the exit code (ExitCode) and throws
/// nothing; a part that breaks the contract of its role is bad input.
int command(int argc, char** argv, const parts::Registry& registry = parts::built_ins());

}  // namespace hemiola
