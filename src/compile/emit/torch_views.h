// Memory of plans as views of PyTorch's tensors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compile/emit/torch_statements.h"
#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::compile {

/// By tensor of the plan, an identifier of Python each: its name, as far as it is one.
std::vector<std::string> python_names(const plan::Plan& plan);

/// "t.a[{}, {:16}]": a rectangle of a tensor, where axes of one element are indexed and so gone.
/// `kept`: axes that stay, whatever their extent (by axis of the tensor; empty: none).
Statement view_of(const std::string& name, const plan::Tensor& tensor, const plan::Rect& rect,
                  const std::vector<bool>& kept = {});

/// The statement that a launch is on a rank: "compute[{}].mm(...)", behind "for" where blocks go
/// around the end of a tensor. Failure at `file` for what is no product of two matrices, and for
/// operands that lie in another order than rows by columns.
Statement product_of(const plan::Plan& plan, const std::vector<std::string>& names,
                     const plan::Compute& compute, int rank, std::int64_t stream,
                     const std::string& file);

}  // namespace hemiola::compile
