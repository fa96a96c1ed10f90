// Of a replay: for whom, and for which of their flags, the time of a rank was spent in waiting.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/result/latency_breakdown.h"
#include "sim/result/profile.h"
#include "sim/result/result.h"

namespace hemiola::sim {

/// What is known of an emulated rank is when its rows come. So a wait that a row ends keeps what
/// the wavefront had spent before the wait; from then until the row comes is Reason::peer; and what
/// follows is the way of the row. A LatencyBreakdown names its waits by a number: -1: none; n >= 0:
/// that link of a chain; below: everything until the row -2 - n came, whose waiter is not known
/// yet.
class PeerWaits {
 public:
  /// A row comes in, at `due`, fs.
  static void comes(LatencyBreakdown& spent, std::int32_t row, std::int64_t due);
  /// The row answers the request whose `spent` it is.
  void answers(LatencyBreakdown& spent, std::int32_t row, std::int64_t due);
  /// A wavefront begins a wait.
  void begin(std::int32_t wave, const LatencyBreakdown& spent);
  /// What a wavefront has spent when what `cause` tells of ends a wait; `until`: when it began.
  LatencyBreakdown ended(const LatencyBreakdown& cause, const LatencyBreakdown& until);
  /// The same for the wait that began last.
  LatencyBreakdown ended(const LatencyBreakdown& cause, std::int32_t wave);
  /// By peer and by what was waited for, the longest first; sums to Reason::peer.
  std::vector<PeerWait> of(int rank, const LatencyBreakdown& spent, const Profile& profile) const;

 private:
  struct Link {
    std::int32_t before = -1;
    std::int32_t row = 0;
    std::int64_t fs = 0;
  };
  std::int32_t add(std::int32_t before, std::int32_t row, std::int64_t fs);

  std::vector<Link> links_;
  std::vector<LatencyBreakdown> until_;  ///< by wavefront
};

}  // namespace hemiola::sim
