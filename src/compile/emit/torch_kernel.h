// What an emitted file says of its kernel beside the kernel's text. Private to the layer.
#pragma once

#include <string>

#include "compile/fuse/fusion.h"
#include "plan/plan.h"

namespace hemiola::compile {

/// "KERNEL = hemiola_rt.Kernel(...)" and EXTRAS (what a caller gives with each call): tiles, and
/// how operands, axes and parameters are paired with the plan, so that hemiola_rt takes plans of
/// other shapes with it. `function`: the kernel's name; `name`: KERNEL, or what it is called for a
/// later grid.
std::string kernel_object(const plan::Plan& plan, const Fusion& fusion, const std::string& function,
                          const std::string& name);

}  // namespace hemiola::compile
