#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "program/bind/length.h"
#include "program/semantics/executor.h"
#include "verify/programs/check_job.h"
#include "verify/programs/deadlock.h"
#include "verify/programs/left_over.h"
#include "verify/programs/postcondition.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using program::Bound;

/// What a program that is called again and again has to get through, at least.
constexpr int kCalls = 3;

/// Operations of all calls that are interpreted: minutes, and some gigabytes of memory.
constexpr std::int64_t kMostOperations = 20'000'000;

int calls_of(const Bound& program, const CheckOptions& options) {
  if (options.calls > 0) return options.calls;
  int calls = kCalls;  // a part of a rotating buffer is used again so many calls later
  for (const program::Buffer& buffer : program.buffers())
    calls = std::max(calls, buffer.rotation + 1);
  return calls;
}

/// What every rank gives to every other one is looked at: a minute for so many.
constexpr int kMostRanks = 1 << 16;

Proof not_looked_at(const Bound& program, std::string reason) {
  Proof proof;
  proof.verdict = Verdict::partial;
  proof.executor = program::executor_of(program.program()).name;
  proof.summary = "not proven: " + reason;
  proof.reasons.push_back(std::move(reason));
  return proof;
}

std::optional<Proof> too_long(const Bound& program, const CheckOptions& options, const Fold& fold) {
  const std::int64_t most = kMostOperations / calls_of(program, options);
  std::int64_t sum = 0;
  for (int rank = 0; rank < fold.period() && sum <= most; ++rank)
    sum += std::min(most + 1, program::length_of(program, rank));
  if (sum <= most) return std::nullopt;
  return not_looked_at(
      program,
      fmt::format("a call has more than {} operations with its loops unrolled, and none of "
                  "them was looked at: give a smaller size, or loops with larger pieces "
                  "(unit_size)",
                  most));
}

class Check {
 public:
  Check(const Bound& program, const CheckOptions& options, Fold fold)
      : program_(program),
        calls_(calls_of(program, options)),
        monitor_(options.monitor),
        fold_(std::move(fold)),
        memory_(program, values_, fold_.period()),
        interpreter_(program, fold_, values_, memory_) {}

  /// None if the ranks do not fold after all.
  std::optional<Proof> run() {
    const program::Executor& executor = program::executor_of(program_.program());
    proof_.executor = executor.name;
    proof_.rules = executor.rules(program_.program().protocol);
    if (program_.program().executed_by.assumed)
      proof_.rules += "; assumed, --executor names another";
    initialise_inputs(program_, fold_, values_, memory_);
    for (int call = 0; call < calls_; ++call) {
      values_.begin_call(call);
      if (call > 0) refill_inputs(program_, fold_, values_, memory_);
      const Interpreter::End end = interpreter_.run(monitor_);
      if (end == Interpreter::End::unfoldable) return std::nullopt;
      proof_.operations = interpreter_.operations();
      proof_.calls = call + 1;
      if (!(ended_right(end) && (call > 0 || check_first_call()))) return std::move(proof_);
    }
    proof_.by_place = memory_.by_place();
    check_repeated();
    if (proof_.verdict != Verdict::wrong) proof_.conclude();
    return std::move(proof_);
  }

 private:
  void found(Verdict verdict, Finding finding) {
    proof_.found(verdict, std::move(finding));
    if (proof_.calls < 2) return;
    proof_.summary = "in call " + std::to_string(proof_.calls) + ": " + proof_.summary;
    // What one call leaves behind is why the next one goes wrong.
    if (left_.disturbs)
      proof_.counterexample.insert(proof_.counterexample.begin(), left_.disturbs->steps.begin(),
                                   left_.disturbs->steps.end());
  }

  /// Whether the present call came to its end without a race, and with the right result.
  bool ended_right(Interpreter::End end) {
    if (const auto& fault = interpreter_.fault()) {
      const Workgroup& workgroup = interpreter_.workgroups()[index(fault->workgroup)];
      Finding finding;
      finding.summary = describe(interpreter_, workgroup) + " " + fault->text;
      finding.steps.push_back(witness(interpreter_, workgroup, 0, fault->op, fault->text));
      found(Verdict::wrong, std::move(finding));
      return false;
    }
    const std::optional<Race>& race = memory_.race() ? memory_.race() : memory_.hazard();
    if (race) {
      found(Verdict::wrong, describe(interpreter_, *race));
      return false;
    }
    if (end == Interpreter::End::stuck) {
      found(Verdict::deadlock, explain_deadlock(interpreter_, memory_));
      return false;
    }
    if (is_by_plan() || !has_postcondition(program_)) return true;
    auto finding = check_outputs(interpreter_, memory_, values_);
    if (finding) found(Verdict::wrong, std::move(*finding));
    return !finding;
  }

  /// Its promise, what it leaves behind, and what is open; false if something is wrong.
  bool check_first_call() {
    if (is_by_plan()) {
      if (!check_plan(check(*program_.program().plan, monitor_))) return false;
      if (auto finding = check_expected(interpreter_, memory_, values_)) {
        found(Verdict::wrong, std::move(*finding));
        return false;
      }
    } else if (program_.program().format == "launch") {
      // A product, a compute or a copy (program/jobs/launch_programs.h) is what it does.
    } else if (!has_postcondition(program_)) {
      proof_.reasons.push_back(
          "no postcondition is known for this collective (--promise FILE states one)");
    } else if (program_.program().promise != nullptr) {
      proof_.proven.push_back(
          "each byte that is promised holds each promised contribution exactly once");
    } else {
      proof_.proven.push_back("each byte of the result holds each contribution exactly once");
    }
    proof_.proven.push_back("no two accesses that conflict are unordered");
    proof_.proven.push_back(program_.machine() != nullptr
                                ? "every wait ends with the workgroups that fit on the machine"
                                : "every wait ends if all workgroups are resident");
    warn_of_early_ends(interpreter_, memory_, proof_.warnings);
    warn_of_overwritten_inputs(interpreter_, memory_, proof_.warnings);
    look_at_semaphores();
    if (memory_.mixed_use())
      proof_.reasons.push_back(describe(program_, *memory_.mixed_use()) +
                               " hold both packets and plain data, whose order is not checked");
    left_ = left_over(interpreter_);
    if (left_.ignored) warn_of(*left_.ignored, left_.more_ignored, "semaphore", "");
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

  /// Whether the plan that it was lowered from says what it leaves.
  bool is_by_plan() const {
    return program_.program().plan != nullptr && program_.program().promise == nullptr;
  }

  void look_at_semaphores() {
    for (std::int32_t index = 0; index < static_cast<std::int32_t>(program_.semaphores().size());
         ++index) {
      const char* reason = nullptr;
      for (std::int32_t rank = 0; rank < fold_.period() && reason == nullptr; ++rank) {
        const program::SemaphoreId id{rank, index};
        reason = interpreter_.semaphore(id).order_dependent();
        if (reason != nullptr)
          proof_.reasons.push_back("the order of events is not determined by " +
                                   describe(program_, id) + ": " + reason);
      }
    }
  }

  /// Libraries call a program back to back, and ranks do not start together. All calls that were
  /// interpreted were right: what is left is whether a later one could find what an earlier one has
  /// left.
  void check_repeated() {
    if (!left_.disturbs) {
      if (calls_ > 1) proof_.proven.push_back("calls back to back do not disturb each other");
      return;
    }
    if (calls_ == 1) {
      warn_of(*left_.disturbs, left_.more_disturb, "semaphore or FIFO", "a next call");
      return;
    }
    std::string more;
    if (left_.more_disturb > 0)
      more = " (and " + std::to_string(left_.more_disturb) + " more semaphores or FIFOs)";
    proof_.found(Verdict::wrong, {left_.disturbs->summary + more, left_.disturbs->steps});
  }

  void warn_of(const Finding& finding, std::int64_t more, const std::string& others,
               const std::string& disturbed) {
    proof_.warnings.warning(
        finding.summary,
        {program_.source(), 0, 0, finding.steps.empty() ? "" : finding.steps.back().where},
        disturbed.empty() ? "" : disturbed + " of the program would go wrong");
    if (more > 0)
      proof_.warnings.warning(std::to_string(more) + " more: " + others + " of the same kind",
                              {program_.source(), 0, 0, ""});
  }

  const Bound& program_;
  int calls_ = 1;
  const Monitor* monitor_;
  Fold fold_;
  ValueTable values_;
  Memory memory_;
  Interpreter interpreter_;
  LeftOver left_;
  Proof proof_;
};

}  // namespace

Proof check(const Bound& program, const CheckOptions& options) {
  if (program.linked() != nullptr) return check_job(program, options);
  if (program.ranks() > kMostRanks)
    return not_looked_at(
        program, fmt::format("programs of more than {} ranks are not looked at", kMostRanks));
  require_shapes(program);
  // Ranks that do the same may be promised different things.
  if (options.fold && program.program().promise == nullptr) {
    Fold fold = Fold::of(program);
    if (auto proof = too_long(program, options, fold)) return *std::move(proof);
    if (auto proof = Check(program, options, std::move(fold)).run()) return *std::move(proof);
  }
  Fold whole(program);
  if (auto proof = too_long(program, options, whole)) return *std::move(proof);
  return Check(program, options, std::move(whole)).run().value();
}

}  // namespace hemiola::verify
