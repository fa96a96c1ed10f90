// A proof at one size, and what it says of others.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "study/laboratory/experiment.h"
#include "verify/programs/sizes.h"

namespace hemiola::study {

struct SizeCheck {
  program::Bound bound;
  std::shared_ptr<const verify::Proof> proof;  ///< at the size asked for; may be wrong
  /// For which sizes it holds; nothing of a program that is wrong.
  std::optional<verify::SizeClass> sizes;
  std::vector<Bytes> beside;  ///< other sizes that were looked at, and are right
  /// The first size beside it at which the program is wrong.
  struct Other {
    Bytes size{};
    std::shared_ptr<const verify::Proof> proof;
  };
  std::optional<Other> wrong_beside;
};

/// Proves a program at a size. Of one that is cheap to prove the sizes beside its class are looked
/// at, too, and the classes above are joined to it as long as they are right. A size that cannot be
/// bound (a kernel of another algorithm, too much memory) is none of the program's. Failure as
/// Laboratory::bind() and proof(); never for a program that is wrong.
SizeCheck check_size(Laboratory& laboratory, const SharedProgram& program,
                     const machine::SharedMachine& machine, const program::BindOptions& at,
                     const verify::CheckOptions& options, const Watch& watch = {});

/// Exit code of a verdict: done, not_proven, wrong_program or deadlock.
ExitCode exit_code_of(verify::Verdict verdict);
/// The worse of two: anything that was found is worse than what was not proven.
ExitCode worse(ExitCode a, ExitCode b);

}  // namespace hemiola::study
