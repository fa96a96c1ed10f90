// What a replay prints, and what a profile for a program has to have.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <vector>

#include "report/report.h"
#include "study/profiles/needed_rows.h"

namespace hemiola::report {

namespace page {
struct Page;
}

/// What was replayed: the head of its table.
struct Replay {
  Run run;
  std::string profile;  ///< its file
  std::size_t rows = 0;
  std::vector<int> ranks;  ///< that are simulated,
  int of = 0;              ///< of so many
};

/// A row for each result: settings that differ, time, reads of flags, stores, and whether answers
/// are recorded or live. Every line that is not a row starts with '#'.
void print_replays(std::ostream& out, const Replay& replay,
                   const std::vector<sim::Result>& results);
/// How long its ranks waited, by peer and by flag, the longest first; a dozen of them. Nothing
/// where nobody waited.
void print_peer_waits(std::ostream& out, const sim::Result& result);
/// The table, where the time of the replayed ranks goes, and what they waited for.
page::Page replay_page(const Replay& replay, const std::vector<sim::Result>& results);
/// One line per result: settings, exact numbers, then the latest rank's nanoseconds by reason.
std::string replays_to_csv(const std::vector<sim::Result>& results);

/// The head of a profile for this program, and what has to write which flags.
void print_needed_rows(std::ostream& out, const Run& run, const std::vector<int>& ranks,
                       const study::NeededRows& needed);

}  // namespace hemiola::report
