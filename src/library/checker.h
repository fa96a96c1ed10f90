// check(), with what a laboratory has.
#pragma once

#include <vector>

#include "hemiola/check.h"
#include "study/experiment.h"

namespace hemiola {

std::vector<Proof> check_with(study::Laboratory& laboratory, const Program& program,
                              const CheckOptions& options);

}  // namespace hemiola
