// Carries out a sweep: checks and simulates its points, in several threads, into a database.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "study/support/parts.h"
#include "study/sweep/sweep.h"
#include "study/sweep/sweep_database.h"

namespace hemiola::parts {
class Registry;
}

namespace hemiola::study {

struct SweepProgress {
  std::int64_t done = 0, all = 0;  ///< points, those of earlier runs included
  /// Of what this run has to do, 0 to 1: by sizes, with what is under way.
  double share = 0;
  std::string doing;  ///< the point that one of the threads is at, or was when it was stopped
  std::int64_t time_fs = -1, line_hops = 0;  ///< of its simulation, as in Monitor
};

struct SweepRunOptions {
  int threads = 1;
  bool strict = false;  ///< what a reader ignored or converted makes a point that cannot be run
  const std::atomic<bool>* stop = nullptr;  ///< set from outside; null: never
  Parts* parts = nullptr;  ///< where the points are shared out among processes; null: they are not
  const parts::Registry* registry = nullptr;  ///< what names mean; null: the built-ins
  /// Told several times a second, in the thread that called.
  std::function<void(const SweepProgress&)> on_progress;
  /// Told what was found beside the results, in the thread that called: the same thing once for
  /// every point that it concerns.
  std::function<void(const Diagnostics&)> on_warnings;
};

/// Runs the points of the database's shard that it has no row of yet; with `parts` together with
/// other processes, one of which writes what all of them made. A point that cannot be run is
/// a row that says why. Rows do not depend on the number of threads, or on when a run before this
/// one was ended. Interrupted, with all points that are done written, after `stop`. Failure where
/// the database cannot be written.
void run_sweep(const Sweep& sweep, SweepDatabase& database, const SweepRunOptions& options);

}  // namespace hemiola::study
