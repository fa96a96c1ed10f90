// Sizes, starts, verdicts and errors, as every study says them.
#pragma once

#include <span>
#include <string>

#include "core/diagnostics.h"
#include "core/time.h"
#include "program/program.h"
#include "study/laboratory/settings.h"

namespace hemiola::study {

/// The smallest size from `wanted.size` on that the program can be bound to (--round-size).
Bytes round_up(const program::Program& program, const program::BindOptions& wanted);
/// The largest up to there (--round-down); 0 B: there is none.
Bytes round_down(const program::Program& program, const program::BindOptions& wanted);
/// "1000 B is run as 1 KiB, the next size that all-reduce/ring takes": a note where that was done.
std::string rounding_note(Bytes asked, Bytes taken, const std::string& program);

/// Failure at `where` if later starts (sim::Options::skew) are listed for more ranks than there
/// are.
void check_skew(std::span<const Time> skew, int ranks, const SourceLocation& where);

/// All errors with their hints, in one line. Places are left out: a database is the same from
/// wherever a study was started.
std::string error_text(const Failure& failure);

/// What holds for both: "full" > "partial" > "skipped"; empty: nothing yet.
std::string weaker(const std::string& a, const std::string& b);

}  // namespace hemiola::study
