// hemiola_rt, which emitted files call: the Python package, built into the program.
#pragma once

#include <string>

namespace hemiola::compile {

/// Writes the package as `folder`/hemiola_rt, for machines on which Hemiola is not installed; an
/// older one there is overwritten. Failure at `folder` where it cannot be made.
void write_runtime(const std::string& folder);

}  // namespace hemiola::compile
