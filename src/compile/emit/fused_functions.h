// Functions that stand beside a fused kernel in its file.
#pragma once

#include <string>

#include "compile/fuse/carry.h"
#include "compile/fuse/fusion.h"
#include "compile/python/modules.h"

namespace hemiola::compile {

/// Whether descriptors are TMA here, for the two below; empty: the kernel has none.
std::string bulk_constant(const Description& kernel);
/// hm_wait, with a fence between proxies where the kernel loads by descriptors.
std::string wait_function(const Description& kernel);
/// hm_done, which waits for bulk stores where the kernel has such.
std::string done_function(const Description& kernel);
/// hm_carry for data of a type that Triton calls so.
std::string carry_function(const CarriedData& carried);
/// A call of it: of movements from hm_moved to `end`.
std::string carry_call(const std::string& end);
/// coordinates(), of the host.
std::string coordinates_function(const Fusion& fusion);

/// Whether a variable that addresses of a loop's body are made of goes on from turn to turn.
bool carries_addresses(const Source& source, const Node& body);
/// The axis that tl.program_id(axis) asks for; 3: the text does not say.
int axis_of(const Source& source, const Node& call);
/// Why tiles of the operand Fusion::stores cannot go to peers; empty: they can.
std::string why_not_to_peers(const Fusion& fusion);

}  // namespace hemiola::compile
