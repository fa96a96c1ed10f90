// Names of nodes without what they all begin with.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace hemiola::report {

/// Characters up to the last '.' that all names have in common: "dgx_h100.0." of
/// "dgx_h100.0.xpu.0" and "dgx_h100.0.nvsw.1". 0 of fewer than two names.
std::size_t common_prefix(const std::vector<std::string>& names);

/// "dgx.xpu.12" as what it is called without its numbers, and these: xpu.2 comes before xpu.12.
std::pair<std::string, std::vector<std::int64_t>> parts_of_name(const std::string& name);

}  // namespace hemiola::report
