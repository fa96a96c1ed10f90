// What the results of known plans have to be, in one expression of PyTorch.
#pragma once

#include <string>

#include "plan/plan.h"

namespace hemiola::compile {

/// What attention of a kernel makes of its scores.
struct Softmax {
  std::string scale;       ///< what they are multiplied by, Python; empty: the kernel does more
  bool is_causal = false;  ///< without those of keys behind the query
};

/// The definition of reference(rank, held) for operators of the templates with products, known by
/// the plan's name and tensors, and for collectives. Empty: none is known. `names`: of tensors.
/// `has_epilogue`: products go through `epilogue(product, of)` of the file.
std::string reference_of(const plan::Plan& plan, const std::vector<std::string>& names,
                         const Softmax& softmax = {}, bool has_epilogue = false);

}  // namespace hemiola::compile
