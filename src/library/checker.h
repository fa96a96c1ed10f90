// check(), with what a laboratory has.
#pragma once

#include <vector>

#include "hemiola/check.h"
#include "study/laboratory/experiment.h"

namespace hemiola {

std::vector<Proof> check_with(study::Laboratory& laboratory, const Program& program,
                              const CheckOptions& options);

}  // namespace hemiola
