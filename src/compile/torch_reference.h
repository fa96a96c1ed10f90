// What the results of known plans have to be, in one expression of PyTorch.
#pragma once

#include <string>

#include "plan/plan.h"

namespace hemiola::compile {

/// The definition of reference(rank, held) for operators of the templates with products, known by
/// the plan's name and tensors, and for collectives. Empty: none is known. `names`: of tensors.
/// `softmax_scale`: of attention, Python; empty: the kernel's attention is another one.
std::string reference_of(const plan::Plan& plan, const std::vector<std::string>& names,
                         const std::string& softmax_scale = {});

}  // namespace hemiola::compile
