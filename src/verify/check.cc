#include <algorithm>
#include <optional>
#include <utility>

#include "verify/deadlock.h"
#include "verify/postcondition.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using program::Program;

/// Programs up to this size are run again, to see whether calls in a row disturb each other.
constexpr std::int64_t kSmall = 200'000;

class Check {
 public:
  Check(const Program& program, Fold fold)
      : program_(program),
        fold_(std::move(fold)),
        memory_(program, values_, fold_.period()),
        interpreter_(program, fold_, values_, memory_) {}

  /// None if the ranks do not fold after all.
  std::optional<Proof> run() {
    initialise_inputs(program_, fold_, values_, memory_);
    const Interpreter::End end = interpreter_.run();
    proof_.operations = interpreter_.operations();
    switch (end) {
      case Interpreter::End::wrong:
        found_wrong();
        return std::move(proof_);
      case Interpreter::End::stuck:
        found(Verdict::deadlock, explain_deadlock(interpreter_, memory_));
        return std::move(proof_);
      case Interpreter::End::unfoldable:
        return std::nullopt;
      case Interpreter::End::finished:
        if (!check_end()) return std::move(proof_);
        break;
    }
    conclude();
    return std::move(proof_);
  }

 private:
  void found(Verdict verdict, Finding finding) {
    proof_.verdict = verdict;
    proof_.summary = std::move(finding.summary);
    proof_.counterexample = std::move(finding.steps);
  }

  void found_wrong() {
    if (const auto& fault = interpreter_.fault()) {
      const Workgroup& workgroup =
          interpreter_.workgroups()[static_cast<std::size_t>(fault->workgroup)];
      Finding finding;
      finding.summary = describe(interpreter_, workgroup) + " " + fault->text;
      finding.steps.push_back(witness(interpreter_, workgroup, 0, fault->op, fault->text));
      return found(Verdict::wrong, std::move(finding));
    }
    found(Verdict::wrong, describe(interpreter_, *memory_.race()));
  }

  /// After the first call: its result, its left-overs, and further calls. False if something is
  /// wrong.
  bool check_end() {
    if (program_.plan != nullptr) {
      if (!check_plan(check(*program_.plan))) return false;
    } else if (!has_postcondition(program_)) {
      proof_.reasons.push_back("no postcondition is known for this collective");
    } else if (auto finding = check_outputs(interpreter_, memory_, values_)) {
      found(Verdict::wrong, std::move(*finding));
      return false;
    } else {
      proof_.proven.push_back("each byte of the result holds each contribution exactly once");
    }
    proof_.proven.push_back("no two accesses that conflict are unordered");
    proof_.proven.push_back(program_.machine != nullptr
                                ? "every wait ends with the workgroups that fit on the machine"
                                : "every wait ends if all workgroups are resident");
    warn_of_early_ends(interpreter_, memory_, proof_.warnings);
    look_at_semaphores();
    if (memory_.mixed_use())
      proof_.reasons.push_back(describe(program_, *memory_.mixed_use()) +
                               " hold both packets and plain data, whose order is not checked");
    if (interpreter_.ran_ahead())
      proof_.reasons.push_back(
          "threads have to run ahead of a wait of their own workgroup, which is followed only in "
          "part");
    if (interpreter_.operations() <= kSmall) check_next_calls();
    return true;
  }

  /// What a custom collective promises is proven of the plan, whose order the program keeps.
  bool check_plan(Proof plan) {
    if (plan.verdict == Verdict::wrong || plan.verdict == Verdict::deadlock) {
      found(plan.verdict, {std::move(plan.summary), std::move(plan.counterexample)});
      return false;
    }
    for (const std::string& reason : plan.reasons) proof_.reasons.push_back("its plan: " + reason);
    if (plan.reasons.empty()) proof_.proven.push_back("every rank ends with what its plan expects");
    return true;
  }

  void look_at_semaphores() {
    std::int64_t left_over = 0;
    for (std::int32_t index = 0; index < static_cast<std::int32_t>(program_.semaphores.size());
         ++index) {
      const char* reason = nullptr;
      for (std::int32_t rank = 0; rank < fold_.period(); ++rank) {
        const program::SemaphoreId id{rank, index};
        const SemaphoreState& state = interpreter_.semaphore(id);
        if (state.left_over() > 0 && left_over++ == 0) {
          proof_.warnings.warning(
              describe(program_, id) + " keeps " + std::to_string(state.left_over()) +
                  (state.awaited() ? " signals that no wait takes"
                                   : " signals, and nobody waits for it"),
              {program_.source, 0, 0, ""},
              state.awaited() ? "the next call would find them and not wait long enough" : "");
        }
        if (reason == nullptr && (reason = state.order_dependent()) != nullptr)
          proof_.reasons.push_back("the order of events is not determined by " +
                                   describe(program_, id) + ": " + reason);
      }
    }
    left_over *= fold_.images();
    if (left_over > 1)
      proof_.warnings.warning(std::to_string(left_over - 1) + " more semaphores keep signals",
                              {program_.source, 0, 0, ""});
  }

  /// The program again: libraries call it back to back, and ranks do not start together.
  void check_next_calls() {
    int calls = 1;  // a part of a rotating buffer is used again so many calls later
    for (const program::Buffer& buffer : program_.buffers) calls = std::max(calls, buffer.rotation);
    for (int call = 0; call < calls; ++call) {
      const Interpreter::End end = interpreter_.run();
      if (memory_.hazard()) return warn_of_next_calls(describe(interpreter_, *memory_.hazard()));
      if (end == Interpreter::End::stuck)
        return warn_of_next_calls(explain_deadlock(interpreter_, memory_));
      if (const auto& fault = interpreter_.fault()) {
        const Workgroup& self =
            interpreter_.workgroups()[static_cast<std::size_t>(fault->workgroup)];
        return warn_of_next_calls({describe(interpreter_, self) + " " + fault->text,
                                   {witness(interpreter_, self, 0, fault->op, fault->text)}});
      }
      if (end != Interpreter::End::finished) return;
    }
    proof_.proven.push_back("calls back to back do not disturb each other");
  }

  void warn_of_next_calls(const Finding& finding) {
    std::string hint;
    for (const Witness& step : finding.steps) {
      if (!hint.empty()) hint += "; then ";
      hint += "rank " + std::to_string(step.rank) + " workgroup " + std::to_string(step.workgroup) +
              " " + step.operation + " " + step.text;
    }
    proof_.warnings.warning(
        "back-to-back calls disturb each other: " + finding.summary,
        {program_.source, 0, 0, finding.steps.empty() ? "" : finding.steps.back().where},
        std::move(hint));
  }

  void conclude() {
    if (proof_.reasons.empty()) {
      proof_.verdict = Verdict::proven;
      proof_.summary = "proven";
    } else {
      proof_.verdict = Verdict::partial;
      proof_.summary = "nothing wrong found, but not proven: " + proof_.reasons.front();
    }
  }

  const Program& program_;
  Fold fold_;
  ValueTable values_;
  Memory memory_;
  Interpreter interpreter_;
  Proof proof_;
};

}  // namespace

Proof check(const Program& program, const CheckOptions& options) {
  if (program.chunk_bytes <= 0 || program.size.count <= 0)
    throw Failure("the program has no size yet", {program.source, 0, 0, ""},
                  "bind it to a size first");
  if (options.fold) {
    if (auto proof = Check(program, Fold::of(program)).run()) return *std::move(proof);
  }
  return Check(program, Fold(program)).run().value();
}

}  // namespace hemiola::verify
