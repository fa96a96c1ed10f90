#include "verify/plans/coarse_tiles.h"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "verify/plans/atoms.h"
#include "verify/plans/postconditions.h"
#include "verify/plans/unrolled.h"

namespace hemiola::verify {
namespace {

/// Tensors that several computes of a code touch and one of them writes: their tiles wait for each
/// other, so all borders of them count.
std::set<std::int32_t> shared_tensors(const plan::Code& code) {
  std::set<std::int32_t> touched, again, written;
  for (const plan::Compute& compute : code.computes) {
    std::set<std::int32_t> own;
    for (const plan::ComputeOperand& operand : compute.operands) {
      own.insert(operand.tensor);
      if (operand.use != plan::Use::read) written.insert(operand.tensor);
    }
    for (const std::int32_t tensor : own)
      if (!touched.insert(tensor).second) again.insert(tensor);
  }
  std::set<std::int32_t> shared;
  std::set_intersection(again.begin(), again.end(), written.begin(), written.end(),
                        std::inserter(shared, shared.end()));
  return shared;
}

/// By axis of a compute: whether its tiles keep their size in any case.
std::vector<bool> kept_axes(const plan::Compute& compute, const std::set<std::int32_t>& shared) {
  std::vector<bool> kept(compute.axes.size(), false);
  for (const plan::ComputeOperand& operand : compute.operands) {
    if (!shared.contains(operand.tensor)) continue;
    for (const std::int32_t axis : operand.axes)
      if (axis >= 0) kept[index(axis)] = true;
  }
  return kept;
}

/// Calls visit(compute, axis) for all axes that may be coarser.
template <class Visit>
void each_axis(plan::Plan& plan, Visit&& visit) {
  for (plan::Code& code : plan.codes) {
    const std::set<std::int32_t> shared = shared_tensors(code);
    for (plan::Compute& compute : code.computes) {
      const std::vector<bool> kept = kept_axes(compute, shared);
      for (std::size_t axis = 0; axis < compute.axes.size(); ++axis)
        if (!kept[axis]) visit(code, compute, axis);
    }
  }
}

/// The greatest common divisor of all places inside the axis where a region begins or ends; 0:
/// none.
std::int64_t spacing_of_cuts(const plan::Plan& plan, const Atoms& atoms, const plan::Code& code,
                             const plan::Compute& compute, std::size_t axis) {
  std::int64_t spacing = 0;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    if (&plan.code(rank) != &code) continue;
    for (const plan::ComputeOperand& operand : compute.operands) {
      for (std::size_t i = 0; i < operand.axes.size(); ++i) {
        if (operand.axes[i] != static_cast<std::int32_t>(axis)) continue;
        const std::int64_t first = operand.first(i, rank);
        const std::vector<std::int64_t>& cuts = atoms.cuts(operand.tensor, i);
        if (operand.wraps) {
          // Where the tensor ends is a cut, too: no tile reaches over it.
          const std::int64_t extent = plan.tensors[index(operand.tensor)].shape[i];
          for (const std::int64_t cut : cuts) {
            const std::int64_t at = (cut - first + extent) % extent;
            if (at > 0 && at < compute.axes[axis].extent) spacing = std::gcd(spacing, at);
          }
          continue;
        }
        for (auto cut = std::upper_bound(cuts.begin(), cuts.end(), first);
             cut != cuts.end() && *cut < first + compute.axes[axis].extent; ++cut)
          spacing = std::gcd(spacing, *cut - first);
      }
    }
  }
  return spacing;
}

}  // namespace

std::optional<plan::Plan> with_coarse_tiles(const plan::Plan& plan) {
  plan::Plan coarse = plan;
  bool any = false;
  each_axis(coarse, [&](const plan::Code&, plan::Compute& compute, std::size_t axis) {
    plan::ComputeAxis& own = compute.axes[axis];
    any = any || own.tile < own.extent;
    own.tile = std::max<std::int64_t>(1, own.extent);
  });
  if (!any) return std::nullopt;
  std::string none;
  const Unrolled unrolled(coarse);
  const Postconditions promised = postconditions(coarse, none);
  const Atoms atoms(unrolled, alignment(coarse, promised));
  std::vector<std::int64_t> tiles;
  each_axis(coarse, [&](const plan::Code& code, const plan::Compute& compute, std::size_t axis) {
    tiles.push_back(spacing_of_cuts(coarse, atoms, code, compute, axis));
  });
  any = false;
  plan::Plan result = plan;
  std::size_t next = 0;
  each_axis(result, [&](const plan::Code&, plan::Compute& compute, std::size_t axis) {
    plan::ComputeAxis& own = compute.axes[axis];
    const std::int64_t spacing = tiles[next++];
    const std::int64_t tile = spacing == 0 ? std::max<std::int64_t>(1, own.extent) : spacing;
    if (tile <= own.tile || (spacing > 0 && tile % own.tile != 0)) return;
    own.tile = tile;
    any = true;
  });
  if (!any) return std::nullopt;
  return result;
}

}  // namespace hemiola::verify
