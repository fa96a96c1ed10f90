// From which number of rows on overlap pays.
#pragma once

#include <string>
#include <vector>

#include "explore/exploration.h"

namespace hemiola::explore {

/// Explorations of one operator that differ in M alone, by M.
struct RangeOfRows {
  std::vector<Exploration> found;
  std::vector<std::int64_t> refused;  ///< that do not divide
};

/// The smallest M from which on overlap is faster than serial up to the largest that was looked at;
/// nothing where it is not for the largest.
std::optional<std::int64_t> pays_from(const std::vector<Exploration>& found);

/// The rule that the table is: for each M the family that was the fastest, with thresholds halfway
/// (in the logarithm) between neighbours that differ. A text for Rule::parse(); it holds for
/// this N, K, ranks and machine, which its first lines say.
std::string threshold_rule(const std::vector<Exploration>& found);

}  // namespace hemiola::explore
