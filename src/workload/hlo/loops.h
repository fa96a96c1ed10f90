// Loops, branches and how much of a workload they make.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>

#include "workload/hlo/module.h"
#include "workload/hlo/work.h"

namespace hemiola::workload::hlo {

/// How often a while runs its body: as the compiler says (`known_trip_count`), or where its counter
/// begins, ends and grows by constants. Nothing where neither tells.
std::optional<std::int64_t> trip_count(const Module& module, const Computation& computation,
                                       const Instruction& loop);

/// Of a computation, with everything that it calls.
struct Extent {
  std::int64_t nodes = 0;  ///< that it makes at most
  std::int64_t steps = 0;  ///< instructions that a walk visits; loops without nodes are walked once
  /// To compare branches: bytes of kernels, flop at 300 per byte (a GPU does about as many in the
  /// time in which it reads one), and bytes of communication eight times (links are as much
  /// slower).
  double cost = 0;
};

/// Keeps what it has found. Refers to module and work.
class Extents {
 public:
  Extents(const Module& module, KernelWork& work) : module_(module), work_(work) {}

  const Extent& of(const Computation& computation);
  /// The branch of a conditional that costs most.
  const Computation& costliest(const Instruction& conditional);

 private:
  Extent of_instruction(const Computation& computation, const Instruction& instruction);

  const Module& module_;
  KernelWork& work_;
  std::unordered_map<const Computation*, Extent> known_;
};

/// The branches of a conditional: `branch_computations`, or those for true and false.
std::vector<const Computation*> branches_of(const Module& module, const Instruction& conditional);

}  // namespace hemiola::workload::hlo
