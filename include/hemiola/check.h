// Proofs: is a program complete, free of races and of waits that cannot end?
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hemiola/error.h"
#include "hemiola/machine.h"
#include "hemiola/program.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola {

/// From the best to the worst.
enum class Verdict : std::uint8_t {
  proven,   ///< all of Proof::proven
  partial,  ///< nothing wrong found, but not a proof: Proof::reasons says why
  wrong,    ///< a counterexample
  deadlock  ///< a wait that cannot end
};
std::string name_of(Verdict verdict);  ///< "proven", ...

/// One step of a counterexample.
struct ProofStep {
  int rank = 0;
  std::string part;       ///< what `number` counts: "workgroup"; of plans "stream", "compute"
  int number = -1;        ///< -1: of the whole rank
  std::string operation;  ///< "op 3 (wait)", "transfer 3 (push)"
  std::string where;      ///< its place in the file
  std::string text;       ///< what it does or misses: "reads input[4096, 8192) of rank 2"
};

/// Sizes at which a program does the same, so that one proof holds for all of them.
struct SizeRange {
  Bytes min{};
  std::optional<Bytes> max{};  ///< none: every legal size from `min` on
  std::string why_one{};       ///< why it is one size only; empty where it is a range
  Bytes multiple{};            ///< > 0: only multiples of it; else every legal size
};

/// What was found of a plan, or of a program at a size (docs/verify.md).
struct Proof {
  std::string program;
  bool of_plan = false;  ///< before it is lowered; `size` means nothing then
  Bytes size{};
  Verdict verdict = Verdict::proven;
  std::string summary;  ///< one line
  std::vector<std::string> proven;
  std::vector<std::string> reasons;       ///< why partial
  std::vector<ProofStep> counterexample;  ///< in order; of wrong and deadlock
  std::vector<Diagnostic> warnings;       ///< relaxed closing barriers and the like
  int calls = 0;                          ///< programs: calls in a row that were looked at
  std::optional<SizeRange> sizes{};       ///< programs that are not wrong: where it holds
  std::vector<Bytes> looked_at{};         ///< other sizes at which it was proven, too
  std::string executor{};  ///< programs: whose rules it holds for ("msccl"); docs/formats.md
  std::string rules{};     ///< ... in words, where a file is for an executor
};

struct CheckOptions {
  /// Where its workgroups, queues and semaphores have to fit; none: all are taken as resident.
  std::optional<Machine> machine{};
  int ranks = 0;  ///< without a machine: of built-ins; 0: 8
  Bytes size{};   ///< what nccl-tests calls size; 0: the legal one nearest above 1 MiB
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  int calls = 0;  ///< in a row that have to be right; 0: it is called again and again
  /// A file that states what a custom program leaves in its outputs (docs/verify.md, promises);
  /// empty: none. Failure for a program that says it itself.
  std::string promise{};
  /// Interrupted soon after it is set.
  const std::atomic<bool>* stop = nullptr;
};

/// A wrong program is a result, not an error. Plans are proven for all sizes, and where a machine
/// is given and they are right, so are the programs that they are lowered to: the last proof is the
/// one that decides. A collective without an algorithm: one proof or two for each of its built-ins,
/// without a machine for those that need none.
/// Of programs that are cheap to prove other sizes are looked at, too: where one is wrong, the
/// proof at the size that was asked for has a warning; where none was asked for, that one follows
/// it. Failure: a size that the program cannot take, a machine that it does not fit on, bad
/// parameters.
std::vector<Proof> check(const Program& program, const CheckOptions& options = {});
/// The worst of them.
Verdict verdict_of(const std::vector<Proof>& proofs);

/// The program that was to be run is wrong (exit code 3) or cannot end (exit code 4).
class WrongProgram : public Failure {
 public:
  WrongProgram(const Failure& failure, Proof proof) : Failure(failure), proof_(std::move(proof)) {}
  const Proof& proof() const { return proof_; }  ///< with the counterexample

 private:
  Proof proof_;
};

}  // namespace hemiola
