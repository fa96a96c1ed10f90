// What a collective promises, compared with what the memory holds.
#pragma once

#include <optional>

#include "verify/describe.h"

namespace hemiola::verify {

/// Gives every rank its input. Call before the interpretation.
void initialise_inputs(const program::Program& program, ValueTable& values, Memory& memory);

/// Whether the collective's promise is known.
bool has_postcondition(const program::Program& program);

/// The first byte of an output that does not hold each contribution exactly once, or that may not
/// have arrived when all kernels have ended.
std::optional<Finding> check_outputs(const Interpreter& interpreter, const Memory& memory,
                                     const ValueTable& values);

/// Ranks whose kernel may end before the last stores into their output have arrived, or while
/// others still read their buffers: right at the end of all kernels, but not earlier.
void warn_of_early_ends(const Interpreter& interpreter, const Memory& memory,
                        Diagnostics& warnings);

}  // namespace hemiola::verify
