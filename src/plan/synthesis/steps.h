// The network of a synthesis in time: steps that a chunk can take between ranks, and the trunks
// that are busy meanwhile. Private to the layer.
#pragma once

#include <vector>

#include "plan/fabric.h"

namespace hemiola::plan {

/// A way between neighbours, with the times of one chunk.
struct Step {
  struct Load {
    std::int32_t trunk = 0;
    Time busy{0};
  };
  int from = 0, to = 0;
  std::vector<Load> loads;
  Time busy{0};     ///< of the busiest trunk
  Time latency{0};  ///< beyond that, until the receiver can use it
  bool is_network = false;
};

class Steps {
 public:
  /// `against`: from `to` to `from` of the ways. Failure: ranks without a way to each other.
  Steps(Fabric& fabric, std::int64_t chunk_bytes, bool against);

  const std::vector<Step>& all() const { return steps_; }
  const Step& operator[](std::int32_t step) const { return steps_[index(step)]; }
  /// Into or out of a rank, by number.
  const std::vector<std::int32_t>& into(int rank) const { return into_[index(rank)]; }
  const std::vector<std::int32_t>& out_of(int rank) const { return out_of_[index(rank)]; }
  const std::vector<std::int32_t>& over(std::int32_t trunk) const { return over_[index(trunk)]; }

  bool is_free(std::int32_t step, Time now) const;
  /// Keeps its trunks busy from now on. Calls `freed(trunk, when)` for each.
  template <class Freed>
  void take(std::int32_t step, Time now, Freed&& freed) {
    for (const Step::Load& load : (*this)[step].loads) {
      free_[index(load.trunk)] = now + load.busy;
      freed(load.trunk, now + load.busy);
    }
  }

 private:
  std::vector<Step> steps_;
  std::vector<std::vector<std::int32_t>> into_, out_of_, over_;
  std::vector<Time> free_;  // by trunk
};

}  // namespace hemiola::plan
