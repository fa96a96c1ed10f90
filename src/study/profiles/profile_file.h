// Profiles as files: CSV with a typed heading, and JSON (docs/replay.md, docs/profile.schema.json).
#pragma once

#include <string>
#include <string_view>

#include "sim/result/profile.h"

namespace hemiola::study {

/// JSON if the text begins with '{', else CSV. Failure with the line, or the JSON pointer, of the
/// row: unknown columns, buffers, kinds and ranks, what lies outside a buffer, size 0, times before
/// the origin, rows that do not exist or wait for each other in a circle, and a file that ends in
/// the middle.
sim::Profile read_profile(std::string_view text, const std::string& file);

/// Times in femtoseconds since the origin; the columns that some row needs. What is read of it is
/// equal.
std::string write_profile_csv(const sim::Profile& profile);
std::string write_profile_json(const sim::Profile& profile);

}  // namespace hemiola::study
