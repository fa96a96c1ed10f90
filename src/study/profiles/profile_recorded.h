// What the head of a profile says of the run that it is a recording of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/result/profile.h"

namespace hemiola::study {

/// Keys and what stands behind them: "ranks" and "0,3", "run" and words, "wait", and the numbers of
/// RecordedRun in 16 hexadecimal digits.
using RecordedTexts = std::vector<std::pair<std::string, std::string>>;

/// None for a profile that was not recorded.
RecordedTexts recorded_texts(const sim::RecordedRun& run);
/// Failure for unknown keys and ranks, and what is no number.
sim::RecordedRun read_recorded(const RecordedTexts& texts, int ranks, const std::string& file);

}  // namespace hemiola::study
