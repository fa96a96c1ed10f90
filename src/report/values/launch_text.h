// Launches of a job in words.
#pragma once

#include <string>

#include "sim/result/result.h"

namespace hemiola::report {

/// "product is 4.230 us slower than alone: link +7.157, io +0.779; beside gather (for 13.072 us)":
/// what differs most from being alone. Of a launch with `slowed_by`.
std::string slowdown_text(const sim::LaunchResult& launch);

}  // namespace hemiola::report
