// Words for counterexamples: who does what to which bytes.
#pragma once

#include <string>

#include "verify/programs/interpreter.h"
#include "verify/verify.h"

namespace hemiola::verify {

/// "bytes [0, 4096) of scratch of rank 1" in bytes of memory; packets say so.
std::string describe(const program::Bound& program, const Region& where);
/// "channel 3 of rank 1"
std::string describe(const program::Bound& program, program::SemaphoreId id);
/// "workgroup 2 of rank 1"; of an image (fold.h) with its own rank.
std::string describe(const Interpreter& interpreter, const Workgroup& workgroup,
                     std::int32_t image = 0);
Witness witness(const Interpreter& interpreter, const Workgroup& workgroup, std::int32_t image,
                std::int32_t op, std::string text);
/// The contributions of a byte at `begin`: "input of rank 1 from byte 4096 on (2 times)"; those of
/// other calls than the present one say so.
std::string describe(const program::Bound& program, const Memory& memory,
                     const std::vector<Term>& terms, std::int64_t begin, std::int32_t call);
Finding describe(const Interpreter& interpreter, const Race& race);

}  // namespace hemiola::verify
