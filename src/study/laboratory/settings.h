// Parameters as users say them.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace hemiola::study {

using Settings = std::vector<std::pair<std::string, std::string>>;  ///< "gpu.l2.size", "25 MiB"
/// "a=1 b=2".
std::string to_text(const Settings& settings);

}  // namespace hemiola::study
