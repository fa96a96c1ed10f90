// One point of a sweep after the other, with what they share.
#pragma once

#include <atomic>
#include <span>
#include <string>
#include <vector>

#include "core/monitor.h"
#include "study/laboratory/experiment.h"
#include "study/sweep/sweep.h"
#include "study/sweep/sweep_database.h"

namespace hemiola::study {

/// Points that differ in engine, launch and skew only: bound and checked once.
using SweepUnit = std::span<const std::int64_t>;  ///< numbers of points
bool same_unit(const SweepPoint& a, const SweepPoint& b);

/// One thread's.
class SweepWorker {
 public:
  /// `strict`: SweepRunOptions::strict.
  SweepWorker(const Sweep& sweep, Laboratory& laboratory, const std::atomic<bool>& stop,
              bool strict)
      : sweep_(sweep), laboratory_(laboratory), strict_(strict) {
    monitor_.stop = &stop;
  }

  struct Outcome {
    std::vector<SweepRow> rows;  ///< one for each point
    Diagnostics warnings;        ///< of machine, program and proof; why it is proven in part
  };
  /// Interrupted: the unit is not complete, and none of it is returned.
  Outcome run(SweepUnit unit);

  const Monitor& monitor() const { return monitor_; }

 private:
  struct Prepared {
    program::Bound bound;
    std::string checked;
  };
  Prepared prepare(const SweepPoint& point, Diagnostics& warnings);
  SweepRow start_row(std::int64_t number) const;
  void simulate(const SweepPoint& point, const Prepared& prepared, SweepRow& row);

  const Sweep& sweep_;
  Laboratory& laboratory_;
  bool strict_;
  Monitor monitor_;
};

}  // namespace hemiola::study
