// Plans of a collective in place: input and output are one memory, and transfers name one of them.
#pragma once

#include <cstdint>
#include <string>

#include "plan/plan.h"

namespace hemiola::plan {

/// Whether the plan names a collective and says on its codes what is resident and expected, which
/// is then the collective in place (validate() checks that it is). It is lowered with input and
/// output in one memory.
bool is_in_place(const Plan& plan);

/// Whether what the plan promises is what its codes expect: `custom` plans, and those in place. Of
/// others it follows from the collective.
bool states_result(const Plan& plan);

/// What the plan's collective means in place, in terms of `whole`, the larger of its input and
/// output (either, where they are equally long); the smaller lies in it as in nccl-tests. Needs
/// chunks of one input and one output, and a code for each rank. False, and the plan as it was, for
/// a collective that cannot run in place, and for tensors of other sizes than it has.
bool set_in_place(Plan& plan, std::int32_t whole);

/// Failure if a plan that is in place states something else than its collective means.
/// `source`: the file, for the message.
void check_in_place(const Plan& plan, const std::string& source);

}  // namespace hemiola::plan
