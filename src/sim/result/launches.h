// When the launches of a job (program/jobs/job.h) were under way, and where their time went, in
// every engine.
//
// What is under way carries where its time went since its launch began (LatencyBreakdown). Where a
// launch begins on a rank, what came before is put aside here, and an attribution begins anew with
// that time as Reason::finished, a reason that nothing else has before the end of a run: so what a
// launch's own end hangs on is known for each of them, and the whole is put together again after
// the run.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "program/bind/bound.h"
#include "sim/result/result.h"

namespace hemiola::sim {

class LaunchLog {
 public:
  /// Of a program alone nothing is ever noted. Ranks may be told of by different threads.
  explicit LaunchLog(const program::Bound& program);

  /// `spent` sums to `now`. What the attribution goes on as.
  Attribution begin(int rank, std::int32_t launch, std::int64_t now, const Attribution& spent);
  void end(int rank, std::int32_t launch, std::int64_t now, const Attribution& spent);

  /// After the run: what carries a time of its launch, from the start of the run on.
  Attribution whole(const Attribution& spent) const;
  /// Launches of the last repetition, in the order of the job. `home`: by rank, who stands for it.
  std::vector<LaunchResult> results(const std::vector<int>& home) const;

 private:
  struct Run {
    std::int32_t launch = 0;
    std::int64_t begin = -1, end = -1;
    Attribution before{}, inside{};
  };
  const Run* last_run(int rank, std::int32_t launch) const;
  std::int32_t counterpart(int rank, std::int32_t launch, int there) const;

  const program::Linked* linked_;
  std::vector<const program::RankCode*> codes_;  ///< by rank; the bound program outlives this
  mutable std::map<int, std::map<std::int32_t, std::int32_t>> counterparts_;  ///< by rank
  std::vector<std::vector<Run>> runs_;  ///< by rank, in the order of their begin
};

}  // namespace hemiola::sim
