// What a custom program leaves in its outputs, as a user states it (docs/verify.md, promises).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json.h"
#include "program/program.h"

namespace hemiola::program {

/// Ranks first .. first + ranks - 1.
struct RankRange {
  std::int32_t first = 0;
  std::int32_t ranks = 1;
  bool operator==(const RankRange&) const = default;
};

/// Chunks [begin, begin + chunks) of an output: the sum over some ranks of the chunks of their
/// inputs that begin at `source`.
struct PromisedRegion {
  std::int64_t begin = 0, chunks = 1;
  std::int64_t source = 0;
  std::vector<RankRange> from;  ///< in order, apart from each other
};

struct Promise {
  std::string text;  ///< of which it was read: two promises are the same if these are
  std::vector<std::vector<PromisedRegion>> of;  ///< by rank
};

/// Failure, with its place, for what is no promise of a program of so many ranks, and for one that
/// promises two things of a chunk.
Promise read_promise(const JsonValue& value, int ranks);
Promise read_promise(std::string_view json, const std::string& file, int ranks);

/// Gives the program the promise of a file. Failure for a program whose collective is known.
void promise(Program& program, const std::string& file);

}  // namespace hemiola::program
