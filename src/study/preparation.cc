#include "study/preparation.h"

#include <numeric>
#include <utility>
#include <vector>

namespace hemiola::study {

machine::Machine with_first_ranks(machine::Machine machine, int ranks) {
  std::vector<int> first(static_cast<std::size_t>(ranks));
  std::iota(first.begin(), first.end(), 0);
  machine.place(first);
  return machine;
}

std::string checked_by(const verify::Proof& proof, const std::string& source) {
  const bool deadlock = proof.verdict == verify::Verdict::deadlock;
  if (deadlock || proof.verdict == verify::Verdict::wrong)
    throw Failure("the program is wrong and was not simulated: " + proof.summary, {.file = source},
                  "'hemiola check' prints the counterexample",
                  deadlock ? ExitCode::deadlock : ExitCode::wrong_program);
  return proof.verdict == verify::Verdict::proven ? "full" : "partial";
}

std::string weaker(const std::string& a, const std::string& b) {
  if (a.empty() || b == "skipped") return b;
  return a == "full" ? b : a;
}

}  // namespace hemiola::study
