// Suites: operators to be overlapped, as they occur in models (docs/scenarios.md).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "explore/space/operator.h"

namespace hemiola::explore {

struct Scenario {
  std::string name;
  std::string model;  ///< empty: the file names none
  std::string set;    ///< "fit" or "unseen"; empty: none
  Operator op;        ///< sizes are global, whatever the file counts

  bool operator==(const Scenario&) const = default;
};

struct Suite {
  std::string file;                 ///< as the user named it
  std::string text;                 ///< of the file
  std::vector<Scenario> scenarios;  ///< in its order, one at least
};

/// Names of the suites that are built in: "overlap".
std::vector<std::string> shipped_suites();

/// A suite that is built in, or a file. Failure, with file and line, for a key that is not known or
/// stands twice, a value of the wrong kind, sizes that ranks do not divide (check()), a name that
/// stands twice, a model that is not among the file's, and a suite without scenarios.
Suite read_scenarios(const std::string& name_or_file);
Suite parse_scenarios(std::string_view yaml, const std::string& file);

/// All scenarios by so many GPUs, whatever the file says: with gathered B, whose rows of one rank
/// it counts, by as many of each rank. Its text says so. What does not divide is left to check().
Suite with_ranks(Suite suite, int ranks);

}  // namespace hemiola::explore
