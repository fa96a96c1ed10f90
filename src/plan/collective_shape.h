// What a collective asks of the tensors between which a plan carries it out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace hemiola::plan {

/// The tensor that is the only one in its role; -1 where there is none or several.
std::int32_t only_tensor(const Plan& plan, Role role);

/// Elements of the tensor that nccl-tests calls size: of the output of an all-gather, else of the
/// input. 0 for custom plans and where that tensor is not the only one in its role.
std::int64_t elements_of_size(const Plan& plan);

struct ShapeFault {
  std::string pointer;  ///< into the file
  std::string text;
  std::string hint;
};
/// Why the tensors cannot be those of the named collective, or why they do not make up the size
/// that the plan states. Nothing is asked of custom plans.
std::optional<ShapeFault> wrong_collective_shape(const Plan& plan);

}  // namespace hemiola::plan
