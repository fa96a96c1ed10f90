// Names of nodes without what they all begin with.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace hemiola::report {

/// Characters up to the last '.' that all names have in common: "dgx_h100.0." of
/// "dgx_h100.0.xpu.0" and "dgx_h100.0.nvsw.1". 0 of fewer than two names.
std::size_t common_prefix(const std::vector<std::string>& names);

}  // namespace hemiola::report
