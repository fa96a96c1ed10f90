// Two files of results beside each other: which results are of the same thing, and what of their
// time, links and counters is not the same. All figures are whole numbers; nothing is rounded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "study/results/result_file.h"

namespace hemiola::study {

/// What is not there counts as 0: a reason without time, a link that carried nothing.
struct FigureChange {
  std::string name;
  std::int64_t a = 0, b = 0;
  std::int64_t difference() const { return b - a; }
};

/// Where the time of one rank went. The differences sum to that of the results' times exactly.
struct RankChange {
  int a_rank = 0, b_rank = 0;
  std::vector<FigureChange> reasons;  ///< of either; the largest difference first
};

struct LinkChange {
  std::string from, to;
  int lane = 0;
  Time a_busy{}, b_busy{};
  std::int64_t a_wire_bytes = 0, b_wire_bytes = 0;
};

/// A result of A beside one of B.
struct ResultChange {
  Bytes size{};
  std::map<std::string, std::string> a_settings, b_settings;
  Time a{}, b{};
  std::string a_checked, b_checked;
  std::size_t a_ranks = 0, b_ranks = 0;  ///< of their attributions
  /// Of the latest rank of A and of B: the same one where some rank is the latest in both. Nothing
  /// where a file has no attribution.
  std::optional<RankChange> latest;
  std::vector<RankChange> ranks;       ///< that moved, in both files; the one that moved most first
  std::vector<LinkChange> links;       ///< that moved; by busy time, then wire bytes
  std::vector<FigureChange> counters;  ///< that moved; by share() first

  Time difference() const { return b - a; }
  /// Both attributions are there, of different numbers of ranks.
  bool other_ranks() const { return a_ranks > 0 && b_ranks > 0 && a_ranks != b_ranks; }
  /// (b - a) / a; nothing where a is 0.
  std::optional<double> relative() const;
  bool same() const;  ///< nothing moved
};

/// A result without a counterpart in the other file.
struct Unmatched {
  Bytes size{};
  std::map<std::string, std::string> settings;
};

/// "gpu.l2.size=25MiB program=all-reduce/ring"
std::string to_text(const std::map<std::string, std::string>& settings);
/// "1 MiB, gpu.l2.size=25MiB"
std::string to_text(const Unmatched& one);

struct Difference {
  ResultFile a, b;                    ///< without their results
  std::vector<ResultChange> results;  ///< in the order of A
  std::vector<Unmatched> only_a, only_b;

  /// Names of what the two runs differ in: "models" (their version), "machine", "program",
  /// "engine", "ranks" (their number).
  std::vector<std::string> unlike() const;
};

/// Results meet by size and settings, equal ones in their order. Else two meet that are the only
/// ones of their files of a size and settings but for `program` (the built-in that won), or the
/// only ones of a size. Failure where nothing meets.
Difference compare(ResultFile a, ResultFile b);

/// How far a figure moved, of the larger of the two: from 0 to 1, and to 2 where the sign changed.
double share(const FigureChange& change);

/// "2%": how much longer B may take than A. Exact: no fraction is rounded.
struct Limit {
  std::string text;
  std::int64_t millionths = 0;  ///< of a percent
  bool exceeded_by(const ResultChange& change) const;
};
/// Failure at `where`: no number with '%', a negative one, more than six decimals.
Limit read_limit(std::string_view text, const SourceLocation& where);

}  // namespace hemiola::study
