// What every collective promises of its result: said once, for plans and for programs.
#pragma once

#include <cstdint>
#include <vector>

#include "core/data_type.h"

namespace hemiola::plan {

/// Part `output` of a rank's output is the sum of part `input` of the inputs of the ranks
/// first .. first + ranks - 1.
struct Postcondition {
  std::int32_t output = 0;
  std::int32_t input = 0;
  std::int32_t first = 0;
  std::int32_t ranks = 1;
};

/// Into how many equal parts inputs and outputs are cut. Parts of both are equally long.
struct PostconditionParts {
  std::int32_t input = 1, output = 1;
};
PostconditionParts parts_of(Collective collective, std::int32_t ranks);

/// What `rank` has at the end, in the order of its output; nothing for custom collectives, whose
/// plans say it themselves (plan::Expectation). `root`: of broadcast and reduce.
std::vector<Postcondition> postconditions_of(Collective collective, std::int32_t ranks,
                                             std::int32_t root, std::int32_t rank);

}  // namespace hemiola::plan
