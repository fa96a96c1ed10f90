// Values followed through fusions, copies and changes of shape: where they come from, and which of
// their dimensions is which. Private to the room.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "workload/hlo/module.h"

namespace hemiola::workload::hlo {

/// An instruction as it is called: a fusion's parameters are what its caller passes.
struct Spot {
  const Computation* computation = nullptr;
  const Instruction* instruction = nullptr;
  const Spot* caller = nullptr;  ///< the fusion, kept by Spots; null: in no fusion
};

/// Walks, and keeps the callers that spots refer to. Refers to the module.
class Spots {
 public:
  explicit Spots(const Module& module) : module_(module) {}

  const Spot* keep(const Spot& spot) {
    kept_.push_back(spot);
    return &kept_.back();
  }
  Spot operand(const Spot& at, std::size_t index) const {
    return {at.computation, &at.computation->instructions[at.instruction->operands[index]],
            at.caller};
  }
  /// The root of a fusion, as called from it.
  Spot inside(const Spot& fusion);
  /// What a fusion passes as this parameter; nothing for parameters of no fusion.
  std::optional<Spot> argument(const Spot& parameter) const;
  /// Behind copies, conversions, bitcasts and fusions.
  Spot look_through(Spot at);

 private:
  const Module& module_;
  std::deque<Spot> kept_;
};

/// A dimension that is divided into `parts` equal pieces, one behind the other, goes through an
/// instruction with one operand that changes no value: copy, convert, transpose, reshape, bitcast.
/// The dimension of the result; nothing where pieces are mixed, or the instruction is another.
std::optional<std::int64_t> carried_dimension(const Module& module, const Shape& operand,
                                              const Instruction& instruction,
                                              std::int64_t dimension, std::int64_t parts);
/// Whether it is one of these.
bool carries_values(const Instruction& instruction);

}  // namespace hemiola::workload::hlo
