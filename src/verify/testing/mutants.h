// Mutants: good plans with one thing changed, to try the verifier on.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plan/plan.h"
#include "verify/execute.h"

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

/// What check() says of mutants against what happens when they run.
struct Confusion {
  /// [accepted by check()][outcome of running]: how many.
  std::array<std::array<std::int64_t, 4>, 2> counts{};
  std::vector<std::string> disagreements;  ///< accepted and not right, or rejected and right
  std::int64_t races_that_differ = 0;      ///< with a wrong result or a hang in one of eight orders
  std::int64_t not_drawn = 0;              ///< draws that changed nothing or made no valid plan
};

/// Tries `count` mutants of the plans in turn. Each runs under interleave() with two seeds and, if
/// that finds nothing, in threads.
Confusion try_mutants(const std::vector<plan::Plan>& good, std::int64_t count, std::uint64_t seed);

/// As a table of text.
std::string to_string(const Confusion& confusion);

}  // namespace hemiola::verify
