// Explores the scenarios of a suite, several at a time, into a database.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "explore/search/explorer.h"
#include "explore/suite/scenarios.h"
#include "explore/suite/suite_database.h"
#include "study/support/parts.h"

namespace hemiola::explore {

struct SuiteProgress {
  std::int64_t done = 0, all = 0;  ///< scenarios, those of earlier runs included
  double share = 0;                ///< of what this run has to do, 0 to 1, with what is under way
  std::string doing;               ///< the scenario that one of the threads is at
};

struct SuiteRunOptions {
  int threads = 1;                          ///< scenarios at a time; each has one thread
  const std::atomic<bool>* stop = nullptr;  ///< set from outside; null: never
  study::Parts* parts = nullptr;  ///< where scenarios are shared out among processes; null: not
  /// Told several times a second, in the thread that called.
  std::function<void(const SuiteProgress&)> on_progress{};
};

/// What results of `suite` with `request` belong to. Of the request all counts but `op`, the ranks
/// and the threads. Failure: no such machine.
SuiteDatabase::Head head_of(study::Laboratory& laboratory, const Suite& suite,
                            const Request& request, const std::string& version);

/// Explores what the database has no row of yet on the machine that `laboratory` has: each scenario
/// on the first of the machine's GPUs; with `parts` together with other processes, one of which
/// writes what all of them made. One that cannot be explored is a row that says why. Rows do
/// not depend on the number of threads, or on when a run before this one was ended. Interrupted,
/// with all scenarios that are done written, after `stop`. Failure where the database cannot be
/// written.
void run_suite(study::Laboratory& laboratory, const Suite& suite, const Request& request,
               SuiteDatabase& database, const SuiteRunOptions& options);

}  // namespace hemiola::explore
