// Requests counted without time: how many of which size, and by path.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "sim/support/index.h"

namespace hemiola::sim {

/// Requests of one size on a link.
struct RequestSize {
  std::int64_t payload = 0;
  std::int64_t packet = 0;  ///< payload of a packet on the wire; 0: the link's own
  bool operator==(const RequestSize&) const = default;
};
class RequestHistogram {
 public:
  void add(RequestSize size, std::int64_t count) {
    for (auto& [known, total] : counts_) {
      if (known == size) {
        total += count;
        return;
      }
    }
    counts_.emplace_back(size, count);
  }
  const std::vector<std::pair<RequestSize, std::int64_t>>& counts() const { return counts_; }

 private:
  std::vector<std::pair<RequestSize, std::int64_t>> counts_;
};

/// How many of the lines [begin, begin + count) take each of `paths` paths.
inline std::vector<std::int64_t> spread(std::int64_t begin, std::int64_t count,
                                        std::int64_t paths) {
  constexpr std::int64_t kBlock = 512;  // select_path() permutes the lines of such a block
  std::vector<std::int64_t> lines(index(paths), 0);
  const std::int64_t end = begin + count;
  for (std::int64_t line = begin; line < end;) {
    if (line % kBlock != 0 || end - line < kBlock) {
      ++lines[index(machine::select_path(line, paths))];
      ++line;
      continue;
    }
    const std::int64_t high = line / kBlock;
    const std::int64_t first = (high ^ (high >> 9) ^ (high >> 18)) * kBlock % paths;
    for (std::int64_t p = 0; p < paths; ++p) lines[index(p)] += kBlock / paths;
    for (std::int64_t rest = 0; rest < kBlock % paths; ++rest)
      ++lines[index((first + rest) % paths)];
    line += kBlock;
  }
  return lines;
}

/// spread(), with what was asked for last kept: a rank sends to each peer in turn from one place.
class Spreads {
 public:
  const std::vector<std::int64_t>& of(std::int64_t begin, std::int64_t count, std::int64_t paths) {
    const auto hash = static_cast<std::uint64_t>(begin) * 0x9E3779B97F4A7C15U +
                      static_cast<std::uint64_t>(count) * 0xC2B2AE3D27D4EB4FU;
    Known& known = known_[index(hash >> 32) % known_.size()];
    if (known.begin != begin || known.count != count || known.paths != paths)
      known = {begin, count, paths, spread(begin, count, paths)};
    return known.lines;
  }

 private:
  struct Known {
    std::int64_t begin = -1, count = 0, paths = 0;
    std::vector<std::int64_t> lines{};
  };
  std::vector<Known> known_{4096};
};

}  // namespace hemiola::sim
