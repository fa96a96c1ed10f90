// Lifting: from a program (which workgroups move what) back to a plan (what moves, and after what).
#pragma once

#include "plan/plan.h"
#include "program/bind/bound.h"
#include "program/export.h"

namespace hemiola::lift {

/// The plan of a bound program, for one repetition. Chunks of the plan are the largest unit that
/// divides all that the program moves at its size. Every rank has a code of its own. The plan
/// proposes to be lowered as the program was written (Plan::lowering): one workgroup for each
/// stream, its threads, its protocol, multicast, a barrier at the start if it had one.
///
/// Failure: a program with several kernels or streams on a rank, with computes, or with sizes or
/// offsets that have no common unit of at least an element; exit code 4 for one that does not end
/// (`verify::check` explains it).
plan::Plan lift(const program::Bound& program);

/// What the program does, lifted and written in an executor's format (program/export.h), as the
/// same collective and in place where it is. Failure of both.
std::string export_lifted(const program::Bound& program, program::ExecutorFormat format);

}  // namespace hemiola::lift
