// What comes before a study simulates a program: as many ranks as the row has, and a proof.
#pragma once

#include <string>

#include "machine/machine.h"
#include "verify/verify.h"

namespace hemiola::study {

/// The machine with its first ranks only, from 1 to all of them.
machine::Machine with_first_ranks(machine::Machine machine, int ranks);

/// "full" or "partial". Failure with exit code 3 or 4 for a program that is wrong, which stands in
/// `source`.
std::string checked_by(const verify::Proof& proof, const std::string& source);

/// What holds for both: "full" > "partial" > "skipped"; empty: nothing yet.
std::string weaker(const std::string& a, const std::string& b);

}  // namespace hemiola::study
