#include "verify/verify.h"

#include <utility>

#include "verify/execute.h"

namespace hemiola::verify {

std::string_view name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::proven:
      return "proven";
    case Verdict::partial:
      return "partial";
    case Verdict::wrong:
      return "wrong";
    case Verdict::deadlock:
      return "deadlock";
  }
  return "unknown";
}

std::string_view name_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::right:
      return "right";
    case Outcome::wrong:
      return "wrong";
    case Outcome::hang:
      return "hang";
    case Outcome::race:
      return "race";
  }
  return "?";
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
