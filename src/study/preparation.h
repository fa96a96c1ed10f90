// What comes before a study simulates a program: as many ranks as the row has, and a proof.
#pragma once

#include <atomic>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/data_type.h"
#include "core/diagnostics.h"
#include "core/time.h"
#include "machine/machine.h"
#include "program/program.h"
#include "study/settings.h"
#include "verify/verify.h"

namespace hemiola::study {

/// The machine with its first ranks only, from 1 to all of them.
machine::Machine with_first_ranks(machine::Machine machine, int ranks);

/// To load a program for a machine of as many ranks, or for none (null). Those that choose among
/// plans (`*/synth`) get a judge, which simulates until `stop` is set, and are made for `size`
/// alone, unless a parameter says one.
program::LoadOptions load_options(const std::string& name, Settings parameters, int ranks,
                                  machine::SharedMachine machine, DataType type, ReduceOp op,
                                  std::optional<Bytes> size,
                                  const std::atomic<bool>* stop = nullptr);

/// The smallest size from `wanted.size` on that the program can be bound to (--round-size).
Bytes round_up(const program::Program& program, const program::BindOptions& wanted);
/// "1000 B is run as 1 KiB, the next size that all-reduce/ring takes": a note where that was done.
std::string rounding_note(Bytes asked, Bytes taken, const std::string& program);

/// Failure at `where` if later starts (sim::Options::skew) are listed for more ranks than there
/// are.
void check_skew(std::span<const Time> skew, int ranks, const SourceLocation& where);

/// "full" or "partial". Failure with exit code 3 or 4 for a program that is wrong, which stands in
/// `source`.
std::string checked_by(const verify::Proof& proof, const std::string& source);

/// What holds for both: "full" > "partial" > "skipped"; empty: nothing yet.
std::string weaker(const std::string& a, const std::string& b);

}  // namespace hemiola::study
