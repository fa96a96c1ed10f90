// Results of a sweep in one SQLite file; its tables are described in docs/sweep.md.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/time.h"
#include "core/units.h"
#include "study/support/results.h"
#include "study/sweep/sweep.h"

namespace hemiola::study {

/// How a point ended.
enum class SweepStatus : std::uint8_t {
  done,
  refused,   ///< the program cannot take the size, does not fit the machine, ...
  wrong,     ///< the check found it wrong; it was not simulated
  deadlock,  ///< a wait that cannot end, by the check or in the simulation
  internal   ///< an error of Hemiola
};
std::string_view name_of(SweepStatus status);
/// The exit code of a verb that ends so.
ExitCode code_of(SweepStatus status);

/// A point and what came of it.
struct SweepRow {
  std::int64_t number = 0;  ///< of the point, from 0
  // What it is, as the sweep file has it.
  std::string machine, gpu, set, ranks, program, parameters, dtype, op;
  Bytes size{};
  std::string engine, launch, skew;
  // What came of it; of a point that is not done only `status` and `error`.
  SweepStatus status = SweepStatus::done;
  std::string error;          ///< message and hint
  std::string checked;        ///< "full", "partial", "skipped"
  std::string bound_program;  ///< the name of what ran: `auto/...` chooses by size
  std::int64_t count = 0;     ///< elements
  Time time{};
  double algbw_GBps = 0, busbw_GBps = 0;
  Time bound_bandwidth{}, bound_latency{}, ideal{};
  std::int64_t line_hops = 0;
  std::string counters;     ///< a JSON object: name to integer
  std::string attribution;  ///< a JSON object: reason to fs, of the rank that ends last

  Time bound() const { return std::max(bound_bandwidth, bound_latency); }
};

/// One process at a time writes to a file. What write() has written is there whatever happens to
/// the process later. Every member throws Failure, with the file, where SQLite cannot go on.
class SweepDatabase : public sqlite::Results {
 public:
  /// What all rows belong to. Two files with the same rows and head have the same contents.
  struct Head {
    std::string version;  ///< of Hemiola: another one may give other times
    std::string sweep;    ///< text of the sweep file
    std::int64_t points = 0;
    Shard shard;
    std::vector<std::pair<std::string, std::string>> inputs;  ///< Sweep::inputs

    bool operator==(const Head&) const = default;
  };

  /// Opens the file and creates it where there is none. Failure for one that holds something else,
  /// says what differs.
  SweepDatabase(const std::string& file, const Head& head);
  /// Opens one that is there.
  explicit SweepDatabase(const std::string& file);

  const Head& head() const { return head_; }
  /// Numbers of the points that have a row, ascending.
  std::vector<std::int64_t> known() const;
  /// All rows, in order of their points.
  void read(const std::function<void(const SweepRow&)>& take) const;
  /// All of them, or none where it fails. Failure for a point that has a row.
  void write(std::span<const SweepRow> rows);

 private:
  void read_head();
  void write_head();

  Head head_;
};

/// The head as text, for a folder of parts (study/support/parts.h).
std::string head_of_parts(const SweepDatabase::Head& head);

/// Joins the files of shards of one sweep to one of the whole sweep, `file`, which must not be
/// there yet; it appears when it is complete. Points that no shard has stay missing: running the
/// sweep with it adds them. Failure for files of different sweeps, versions or inputs, and for a
/// point that two of them have. Returns how many rows it has.
std::int64_t merge_sweeps(const std::string& file, std::span<const std::string> shards);

}  // namespace hemiola::study
