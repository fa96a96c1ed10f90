// What `compile --describe` prints of a Triton kernel.
#pragma once

#include <iosfwd>
#include <string>
#include <string_view>

#include "compile/describe/description.h"
#include "compile/rules/rules.h"

namespace hemiola::report {

/// For people: the kernel, its tile axes, operands, accesses, reductions, places for waits and
/// signals, configurations, and what is not understood. Expressions are Python.
void print_kernel(std::ostream& out, const compile::Description& description);

/// One object with all of it; offsets are in bytes (docs/compile.md).
std::string kernel_json(std::string_view command, const compile::Description& description);

/// One JSON object: what kernels of a file wait for and tell, and the rules they break. `program`:
/// what check_json() says of the program that the file is; empty: it is none.
std::string rules_json(std::string_view command, const std::string& file,
                       const std::vector<compile::RuleReport>& reports,
                       const std::string& program = {});

}  // namespace hemiola::report
