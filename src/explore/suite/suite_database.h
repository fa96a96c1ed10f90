// Results of a suite in one SQLite file; its tables are described in docs/explore.md.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/diagnostics.h"
#include "explore/search/explorer.h"
#include "explore/suite/scenarios.h"
#include "study/laboratory/database_head.h"
#include "study/laboratory/settings.h"

namespace hemiola::explore {

/// How a scenario ended.
enum class ScenarioStatus : std::uint8_t {
  done,
  refused,  ///< more ranks than the machine has, no schedule for its operator, ...
  internal  ///< an error of Hemiola
};
std::string_view name_of(ScenarioStatus status);

/// A schedule that was simulated.
struct ScheduleRow {
  std::string schedule, family;
  std::int64_t degree = 0;
  std::string program;
  study::Settings parameters;
  Time time{}, fluid{};
  std::optional<Time> confirmed{};
  Time bound{}, estimate{};
  std::optional<double> dil_product{}, dil_communication{}, cil_product{}, cil_communication{};
  Bytes buffers{}, extra_traffic{};
  std::vector<std::pair<std::string, Time>> losses;  ///< by cause; empty: nobody has looked
};

/// A scenario and what came of it.
struct ScenarioRow {
  std::int64_t number = 0;  ///< of the scenario, from 0
  Scenario scenario;
  ScenarioStatus status = ScenarioStatus::done;
  std::string error;  ///< message and hint; of one that is not done this is all there is
  std::string serial_program;
  Time serial{}, collective{}, product{}, ideal{};
  std::optional<Time> serial_confirmed{};
  std::string best, best_family;  ///< "serial" where nothing is faster
  Time best_time{};
  double speedup = 0;
  std::int64_t simulated = 0, space = 0;  ///< schedules, serial among them
  std::string features, picks;  ///< JSON: what rules decide by; by rule what it says, its regret
  std::vector<ScheduleRow> schedules;  ///< the fastest first

  /// Of serial over a schedule, by the engine that it was timed with last.
  double speedup_of(const ScheduleRow& schedule) const;
  /// The time of serial that `speedup` is against.
  Time serial_of_best() const;
};
ScenarioRow row_of(std::int64_t number, const Scenario& scenario, const Exploration& found);

/// One process at a time writes to a file. What write() has written is there whatever happens to
/// the process later. Every member throws Failure, with the file, where SQLite cannot go on.
class SuiteDatabase : public study::sqlite::Results {
 public:
  /// What all rows belong to. Two files with the same rows and head have the same contents.
  struct Head : study::DatabaseHead {
    std::string suite;           ///< digest of the suite's text
    std::int64_t scenarios = 0;  ///< that it has

    bool operator==(const Head&) const = default;
  };

  /// Opens the file (":memory:": none) and creates it where there is none. Failure for one that
  /// holds something else: one message says all that differs.
  SuiteDatabase(const std::string& file, const Head& head);

  const Head& head() const { return head_; }
  /// Numbers of the scenarios that have a row, ascending.
  std::vector<std::int64_t> known() const;
  /// All rows, in the order of the suite.
  std::vector<ScenarioRow> read() const;
  /// A scenario with its schedules, or nothing where it fails. Failure for one that has a row.
  void write(const ScenarioRow& row);

 private:
  Head head_;
};

/// The head as text, for a folder of parts (study/support/parts.h).
std::string head_of_parts(const SuiteDatabase::Head& head);

}  // namespace hemiola::explore
