// What a collective promises of its tensors, for plans.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::verify {

/// On a rank: elements of output part `output` are the sum of those of input part `input` over the
/// ranks first .. first + ranks - 1.
struct Promise {
  std::int32_t output = 0;
  std::int32_t input = 0;
  std::int32_t first = 0;
  std::int32_t ranks = 1;
};

/// Of a collective other than `custom`, between the plan's one input and its one output.
struct Promises {
  std::vector<plan::Area> inputs, outputs;  ///< the parts that promises name
  std::vector<std::vector<Promise>> of;     ///< by rank
};

/// `reason` says why there are none; empty where there are.
Promises promises(const plan::Plan& plan, std::string& reason);

}  // namespace hemiola::verify
