// Packets that carry their own flags, in the fluid engine: which of them have begun to arrive, and
// which are there.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <vector>

#include "sim/fluid/run.h"

namespace hemiola::sim::fluid {

class Packets {
 public:
  explicit Packets(Run& run) : run_(run) {}

  /// Whether those that the present move of an agent loads have begun to arrive (or all have):
  /// `last` of them, null where it loads none. Else the agent is woken when more do.
  bool arrived(std::int32_t agent, bool whole, const Moment*& last);
  /// A move of `rank` stores some. `issued`: the first (or last) stores are.
  void announce(int rank, const program::Primitive& primitive, bool whole, const Moment& issued);

 private:
  /// On their way or there.
  struct Range {
    std::int64_t end = 0;
    Moment first, last{-1};  ///< arrival of the first byte; of the last one, or -1
  };
  struct Space {
    std::map<std::int64_t, std::map<std::int64_t, Range>> by_flag;  ///< flag, begin
    std::vector<std::int32_t> waiting;
  };
  std::uint64_t space_of(const program::Span& span) const;

  Run& run_;
  std::unordered_map<std::uint64_t, Space> spaces_;
};

}  // namespace hemiola::sim::fluid
