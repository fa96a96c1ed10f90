// Results that `run` and `replay` wrote with --json, read again.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "core/units.h"

namespace hemiola::study {

/// Whole numbers by name: femtoseconds by reason, counters.
using Figures = std::map<std::string, std::int64_t>;

struct StoredLink {
  std::string from, to;
  int lane = 0;  ///< of several entries of one pair: its place among them
  std::int64_t payload_bytes = 0, wire_bytes = 0;
  Time busy{};
  std::int64_t max_queue = 0;
};

struct StoredRank {
  int rank = 0;
  Figures fs;  ///< by reason; sums to the time of the result
};

struct StoredResult {
  Bytes size{};
  std::map<std::string, std::string> settings;
  Time time{};
  std::string checked;  ///< "" where the file does not say
  Figures counters;
  std::vector<StoredLink> links;
  std::vector<StoredRank> ranks;  ///< by number; empty where the file has no attribution
};

struct ResultFile {
  std::string file;
  std::int64_t models = 0;  ///< sim::kModelsVersion of then; 0: the file does not say
  std::string command, machine, program, engine;
  std::vector<StoredResult> results;  ///< at least one
};

/// Keys that it does not know are passed over: a later version of the same schema may have added
/// them. Failure with line and pointer: what is not JSON or cut short, another schema, the JSON of
/// another verb, no results, and an attribution that does not sum to its time.
ResultFile read_results(std::string_view text, const std::string& file);

}  // namespace hemiola::study
