// Reader of the operations of one thread block of an MSCCL++ plan.
#pragma once

#include "core/finding.h"
#include "core/json.h"
#include "program/formats/mscclpp/declarations.h"
#include "program/program.h"

namespace hemiola::program {

/// Reads a thread block of `rank`, which has `blocks` of them, into a body. Adds multicast groups
/// and barriers to the program, and to `rank_keys` the keys `rank` that the DSL writes into local
/// operands of some operations (gstore), at which the executor does not look. Failure at what is
/// wrong.
Body read_thread_block(const JsonValue& value, const MscclppDeclarations& declarations, int rank,
                       std::int64_t blocks, Program& program, Finding& rank_keys);

}  // namespace hemiola::program
