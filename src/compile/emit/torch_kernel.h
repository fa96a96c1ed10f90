// What an emitted file says of its kernel beside the kernel's text. Private to the layer.
#pragma once

#include <string>

#include "compile/fuse/fusion.h"
#include "plan/plan.h"

namespace hemiola::compile {

/// "lambda BLOCK_M, **_: BLOCK_M * 2": an expression in parameters of the kernel as a function.
std::string lambda_of(const std::string& block);

/// "KERNEL = hemiola_rt.Kernel(...)" and EXTRAS (what a caller gives with each call). `function`:
/// the kernel's name; `name`: KERNEL, or what it is called for a later grid.
std::string kernel_object(const plan::Plan& plan, const Fusion& fusion, const std::string& function,
                          const std::string& name);

}  // namespace hemiola::compile
