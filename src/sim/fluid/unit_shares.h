// What the parts of a block share of their compute unit.
#pragma once

#include <cstdint>
#include <vector>

#include "program/bind/bound.h"
#include "sim/alike/classes.h"
#include "sim/fluid/shares.h"

namespace hemiola::sim {

/// Of a class of workgroups.
struct UnitShare {
  std::int64_t parts = 1;      ///< of its block
  std::int32_t resource = -1;  ///< time of the unit, fs per second; -1: it has the unit for itself
  std::int64_t blocks = 1;     ///< that the resource stands for
};

/// By class. Parts of a block do different things at different times, each with the whole unit:
/// classes whose blocks meet share one resource, and each takes of it what it needs.
std::vector<UnitShare> share_units(const program::Bound& program, const Classes& fold,
                                   Shares& shares);

}  // namespace hemiola::sim
