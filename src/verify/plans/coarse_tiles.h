// Plans whose tiles are as large as their dependencies let them be: for the proof.
//
// A tile waits for the transfers that write what it reads, and is waited for by those that read
// what it wrote. Tiles that no region of the plan tells apart have the same to wait for and the
// same that waits for them, so what is proven of all of them together is proven of each. A product
// of 229,000 tiles becomes one of as many as it has chunks.
#pragma once

#include <optional>

#include "plan/plan.h"
#include "verify/verify.h"

namespace hemiola::verify {

/// The plan with larger tiles, each a whole number of the plan's along every axis, where borders of
/// regions leave room for any; else nothing.
std::optional<plan::Plan> with_coarse_tiles(const plan::Plan& plan);

/// As check(plan), with the plan's own tiles.
Proof check_tile_by_tile(const plan::Plan& plan, const Monitor* monitor = nullptr);

}  // namespace hemiola::verify
