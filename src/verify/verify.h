// The verifier: is this program or plan complete, free of races and of waits that cannot end?
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/monitor.h"
#include "plan/plan.h"
#include "program/bind/bound.h"

namespace hemiola::verify {

enum class Verdict : std::uint8_t {
  proven,   ///< everything below was proven
  partial,  ///< nothing wrong found, but not a proof: `reasons` says why
  wrong,    ///< a counterexample: exit code 3
  deadlock  ///< a wait that cannot end: exit code 4
};

std::string_view name_of(Verdict verdict);

/// One step of a counterexample, in order.
struct Witness {
  int rank = 0;
  int workgroup = 0;      ///< or another part of the rank; -1: none
  std::string operation;  ///< "op 3 (wait)", "transfer 3 (push)", "tile 5 (gemm)"
  std::string where;      ///< its place in the file
  std::string text;       ///< what it does or misses: "reads input[4096, 8192) of rank 2"
  std::string_view part = "workgroup";  ///< what was counted; plans: "stream", "compute"
};

/// What a check found: one line and the steps behind it.
struct Finding {
  std::string summary;
  std::vector<Witness> steps;
};

struct Proof {
  Verdict verdict = Verdict::proven;
  std::string summary;  ///< one line for the terminal
  std::vector<std::string>
      proven;  ///< "each output byte holds each contribution exactly once", ...
  std::vector<std::string> reasons;     ///< why partial
  std::vector<Witness> counterexample;  ///< of wrong and deadlock
  Diagnostics warnings;                 ///< relaxed closing barriers and the like
  std::int64_t operations = 0;          ///< primitives interpreted
  /// Programs: some order of accesses rests on which threads of a workgroup do them, at places that
  /// follow the size.
  bool by_place = false;
  int calls = 0;  ///< programs: calls in a row that were looked at, the one that went wrong too
  std::string executor;  ///< programs: whose rules were followed (program/semantics/executor.h)
  std::string rules;     ///< ... in words; of programs that are for no executor: ""

  /// Something is wrong: the verdict, and why.
  void found(Verdict verdict, Finding finding);
  /// Nothing is: proven, unless there are reasons why not.
  void conclude();
};

struct CheckOptions {
  /// Calls in a row, each with inputs of its own, of which every result has to be right. 0: the
  /// program is called again and again, so that a call may leave nothing to the next one; three are
  /// interpreted, or one more than parts of rotating buffers take turns. 1: it is called once.
  int calls = 0;
  /// Of ranks that do the same, one is interpreted for all (docs/verify.md, folding). Verdicts are
  /// the same without, and take as many times longer as there are such ranks.
  bool fold = true;
  /// Who may end it, which is Interrupted then; it tells nothing of how far it is.
  const Monitor* monitor = nullptr;
};

/// Interprets a program symbolically, call after call, with vector clocks (docs/verify.md). One of
/// more than 20 million operations in all calls, or of more than 2^16 ranks, is not looked at:
/// partial.
/// Never throws for a wrong program; Failure for one whose buffers cannot be those of its
/// collective.
Proof check(const program::Bound& program, const CheckOptions& options = {});

/// Interprets a plan symbolically, once (docs/verify.md, plans). The plan has passed
/// plan::validate. Never throws for a wrong plan; Failure for one that divides its tensors into
/// more than 2^24 pieces over all ranks, or has more than 10 million tiles. `monitor`: as in
/// CheckOptions.
Proof check(const plan::Plan& plan, const Monitor* monitor = nullptr);

}  // namespace hemiola::verify
