#include "verify/verify.h"

#include <utility>

#include "core/names.h"
#include "verify/execute.h"

namespace hemiola::verify {

std::string_view name_of(Verdict verdict) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"proven", "partial", "wrong", "deadlock"});
  return name_in(kNames, verdict);
}

std::string_view name_of(Outcome outcome) {
  constexpr auto kNames = std::to_array<std::string_view>({"right", "wrong", "hang", "race"});
  return name_in(kNames, outcome);
}

void Proof::found(Verdict wrong, Finding finding) {
  verdict = wrong;
  summary = std::move(finding.summary);
  counterexample = std::move(finding.steps);
}

void Proof::conclude() {
  verdict = reasons.empty() ? Verdict::proven : Verdict::partial;
  summary = reasons.empty() ? "proven" : "nothing wrong found, but not proven: " + reasons.front();
}

}  // namespace hemiola::verify
