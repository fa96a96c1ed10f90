// Mutants: good plans with one thing changed, to try the verifier on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "plan/plan.h"

namespace hemiola::verify {

struct Mutant {
  plan::Plan plan;
  std::string change;  ///< "drops a dependency of rank 1, stream 0, transfer 3"
};

/// The same plan with a code for each rank, loops unrolled and all expressions constant.
plan::Plan written_out(const plan::Plan& plan);

/// Changes one thing at one transfer, drawn from the seed: its dependencies, peer, kind, reduction,
/// one of its boxes, its place among its neighbours; or leaves it out, or doubles it. Half of the
/// time for one rank only. None if what was drawn changes nothing or is no valid plan.
std::optional<Mutant> mutate(const plan::Plan& plan, std::uint64_t seed);

}  // namespace hemiola::verify
