// Mutants, checked and run.
#include "verify/plans/data.h"
#include "verify/testing/interleave.h"
#include "verify/testing/mutants.h"

namespace hemiola::verify {

namespace {

constexpr std::array kOutcomes = {Outcome::right, Outcome::wrong, Outcome::hang, Outcome::race};

Execution run(const plan::Plan& plan, std::uint64_t seed) {
  constexpr std::uint64_t kOrders = 8;
  for (std::uint64_t order = 0; order < kOrders; ++order) {
    Execution execution = interleave(plan, mix(seed, order));
    const bool race = execution.outcome == Outcome::race;
    // A race shows in every order; what it does to the result only in some.
    if (race && !execution.differs && order + 1 < kOrders) continue;
    if (execution.outcome != Outcome::right) return execution;
    if (order == 1) break;
  }
  return execute(plan, {.seed = seed, .rounds = 2});
}

}  // namespace

Confusion try_mutants(const std::vector<plan::Plan>& good, std::int64_t count, std::uint64_t seed) {
  Confusion confusion;
  for (std::uint64_t draw = 0; count > 0; ++draw) {
    const plan::Plan& plan = good[draw % good.size()];
    const std::uint64_t own_seed = mix(seed, draw);
    const std::optional<Mutant> mutant = mutate(plan, own_seed);
    if (!mutant) {
      ++confusion.not_drawn;
      continue;
    }
    --count;
    const Proof proof = check(mutant->plan);
    const bool accepted = proof.verdict == Verdict::proven || proof.verdict == Verdict::partial;
    const Execution execution = run(mutant->plan, own_seed);
    ++confusion.counts[accepted][static_cast<std::size_t>(execution.outcome)];
    confusion.races_that_differ += execution.outcome == Outcome::race && execution.differs;
    if (accepted == (execution.outcome == Outcome::right)) continue;
    confusion.disagreements.push_back(
        plan.name + " over " + std::to_string(plan.ranks) + " ranks, draw " + std::to_string(draw) +
        ": " + mutant->change + ": check says '" + proof.summary + "', running '" +
        std::string(name_of(execution.outcome)) + ": " + execution.summary + "'");
  }
  return confusion;
}

std::string to_string(const Confusion& confusion) {
  std::string text = "| check \\ running |";
  for (const Outcome outcome : kOutcomes) text += " " + std::string(name_of(outcome)) + " |";
  text += "\n| --- | --- | --- | --- | --- |\n";
  for (const bool accepted : {true, false}) {
    text += accepted ? "| accepts |" : "| rejects |";
    for (const std::int64_t count : confusion.counts[accepted])
      text += " " + std::to_string(count) + " |";
    text += "\n";
  }
  return text + "\nOf the races, " + std::to_string(confusion.races_that_differ) +
         " led to a wrong result or a hang in one of eight random orders.\n";
}

}  // namespace hemiola::verify
