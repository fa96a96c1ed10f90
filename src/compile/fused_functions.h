// Functions that stand beside a fused kernel in its file.
#pragma once

#include <string>

#include "compile/fusion.h"

namespace hemiola::compile {

/// hm_done, which waits for bulk stores where the kernel has such.
std::string done_function(const Description& kernel);
/// hm_carry for data of a type that Triton calls so.
std::string carry_function(const std::string& type);
/// A call of it: of movements from hm_moved to `end`.
std::string carry_call(const std::string& end);
/// coordinates(), of the host.
std::string coordinates_function(const Fusion& fusion);

}  // namespace hemiola::compile
