// What the reader of MSCCL XML has to say of a file that it reads all the same.
#pragma once

#include "program/formats/msccl/document.h"
#include "program/program.h"

namespace hemiola::program::msccl {

/// Warns of the <copy> elements, which no interpreter carries out. In place, what a copy speaks of
/// may be one memory; elsewhere the chunk is not copied. `program` has its buffers.
void warn_of_copies(const Algorithm& algorithm, const Source& source, Program& program);

/// Warns of a redop that says "nop" though steps reduce: the operation is the caller's.
void warn_of_reduction(const Algorithm& algorithm, const Source& source, Program& program);

}  // namespace hemiola::program::msccl
