// Lifting: from a program (which workgroups move what) back to a plan (what moves, and after what).
#pragma once

#include "plan/plan.h"
#include "program/program.h"

namespace hemiola::lift {

/// The plan of a bound program, for one repetition. Chunks of the plan are the largest unit that
/// divides all that the program moves at its size. Every rank has a code of its own.
///
/// Failure: a program with several kernels or streams on a rank, with computes, or with sizes or
/// offsets that have no common unit of at least an element; exit code 4 for one that does not end
/// (`verify::check` explains it).
plan::Plan lift(const program::Program& program);

/// A custom plan under the name of the collective that it is proven to be (verify::check), as
/// formats want to know it; as it is where it is none. Other plans: as they are.
plan::Plan with_proven_name(const plan::Plan& plan);

}  // namespace hemiola::lift
