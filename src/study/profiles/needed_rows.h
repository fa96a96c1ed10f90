// What a profile has to have for a program: buffers, flags, and who writes them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "program/bind/bound.h"
#include "sim/result/profile.h"

namespace hemiola::study {

/// A flag, or packets, of a replayed rank that others write: it waits for them.
struct NeededFlag {
  int rank = 0, source = 0;
  sim::ProfileKind kind = sim::ProfileKind::add;  ///< or packet
  std::string buffer;
  std::int64_t offset = 0;  ///< of the first byte,
  std::int64_t end = 0;     ///< and behind the last
  std::int64_t rows = 0;
  std::int64_t value = 0;  ///< add: of all rows; packet: the largest
  std::string name;        ///< of a semaphore, in the program
};

struct NeededRows {
  /// A profile that lets `ranks` end. Times are what is missing: all rows are at time 0, or at once
  /// behind the last thing that their workgroup waits for from one of these ranks. In order.
  sim::Profile profile;
  std::vector<NeededFlag> flags;  ///< by rank, kind, buffer, offset and source
};

/// Of ranks of a bound program. Data that nobody waits for, and what is asked of a replayed rank,
/// are not in it: they take room on their way only.
NeededRows needed_rows(const program::Bound& program, const std::vector<int>& ranks);

}  // namespace hemiola::study
