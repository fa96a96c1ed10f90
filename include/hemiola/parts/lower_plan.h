// From plans to programs, for kernels and formats that are plans.
#pragma once

#include "hemiola/parts/parameter.h"
#include "hemiola/parts/plan.h"
#include "hemiola/parts/program.h"

namespace hemiola::program {

/// A plan, lowered with these parameters of the lowering (docs/plans.md) for `machine`, if that is
/// known: for kernels that are a plan with the protocol and the workgroups that a library chooses.
Program lower_plan(const plan::Plan& plan, const parts::Parameters& parameters = {},
                   const machine::Machine* machine = nullptr);

}  // namespace hemiola::program
