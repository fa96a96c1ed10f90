// What a collective promises of the tensors of a plan.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/area.h"
#include "plan/plan.h"
#include "plan/postconditions.h"

namespace hemiola::verify {

/// Of a collective other than `custom`, between the plan's one input and its one output.
struct Postconditions {
  std::vector<plan::Area> inputs, outputs;           ///< the parts that promises name
  std::vector<std::vector<plan::Postcondition>> of;  ///< by rank
};

/// `reason` says why there are none; empty where there are.
Postconditions postconditions(const plan::Plan& plan, std::string& reason);

}  // namespace hemiola::verify
