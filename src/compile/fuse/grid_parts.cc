#include "compile/fuse/grid_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/diagnostics.h"
#include "core/index.h"
#include "plan/launches.h"

namespace hemiola::compile {
namespace {

std::string named(const Placed& one) {
  return "'" + one.compute->name + "'";
}

std::string name_of_sum(const plan::Compute& compute) {
  for (const plan::ComputeAxis& axis : compute.axes)
    if (axis.reduced) return axis.name;
  return {};
}

/// Where tiles begin along an axis of the compute: in the tensor that they make, or else in the
/// first that has the axis.
std::int64_t first_of(const plan::Compute& compute, const plan::ComputeOperand& result,
                      std::int32_t axis, int rank) {
  for (std::size_t i = 0; i < result.axes.size(); ++i)
    if (result.axes[i] == axis) return result.first(i, rank);
  for (const plan::ComputeOperand& operand : compute.operands) {
    for (std::size_t i = 0; i < operand.axes.size(); ++i)
      if (operand.axes[i] == axis) return operand.first(i, rank);
  }
  return 0;
}

bool adds(const plan::Compute& compute) {
  return std::ranges::any_of(compute.operands, [](const plan::ComputeOperand& operand) {
    return operand.use == plan::Use::add;
  });
}

/// Elements that tiles in a box make, whatever they sum over.
std::int64_t results_in(const plan::Compute& compute, const plan::Rect& box) {
  std::int64_t all = 1;
  for (std::size_t i = 0; i < compute.axes.size(); ++i)
    if (!compute.axes[i].reduced) all *= box.end[i] - box.begin[i];
  return all;
}

/// What the parts of a grid sum over together.
std::int64_t depth_of(const Grid& grid) {
  const plan::Rect hull = hull_of(grid);
  const plan::Compute& compute = *grid.front().compute;
  std::int64_t depth = 1;
  for (std::size_t i = 0; i < compute.axes.size(); ++i)
    if (compute.axes[i].reduced) depth *= hull.end[i] - hull.begin[i];
  return depth;
}

/// Whether both make some of the same elements, over any parts of their sums.
bool makes_same(const Placed& one, const Placed& other) {
  for (const plan::Rect& a : one.boxes) {
    for (const plan::Rect& b : other.boxes) {
      bool all = true;
      for (std::size_t i = 0; i < a.begin.size(); ++i)
        all = all && (one.compute->axes[i].reduced ||
                      std::max(a.begin[i], b.begin[i]) < std::min(a.end[i], b.end[i]));
      if (all) return true;
    }
  }
  return false;
}

bool have_same_axes(const plan::Compute& a, const plan::Compute& b) {
  const auto alike = [](const auto& one, const auto& other, const auto& same) {
    return std::ranges::equal(one, other, same);
  };
  return alike(a.axes, b.axes,
               [](const plan::ComputeAxis& one, const plan::ComputeAxis& other) {
                 return one.name == other.name && one.reduced == other.reduced;
               }) &&
         alike(a.operands, b.operands,
               [](const plan::ComputeOperand& one, const plan::ComputeOperand& other) {
                 return plan::makes(one.use) == plan::makes(other.use) && one.axes == other.axes;
               });
}

}  // namespace

plan::Rect hull_of(const Grid& grid) {
  plan::Rect hull = grid.front().boxes.front();
  for (const Placed& one : grid) {
    for (const plan::Rect& box : one.boxes) {
      for (std::size_t i = 0; i < hull.begin.size(); ++i) {
        hull.begin[i] = std::min(hull.begin[i], box.begin[i]);
        hull.end[i] = std::max(hull.end[i], box.end[i]);
      }
    }
  }
  return hull;
}

const plan::ComputeOperand* result_of(const plan::Compute& compute) {
  const plan::ComputeOperand* found = nullptr;
  for (const plan::ComputeOperand& operand : compute.operands)
    if (plan::makes(operand.use) && found == nullptr) found = &operand;
  return found;
}

void GridParts::refuse(const std::string& what, const std::string& hint) const {
  throw Failure(what, {.file = file_}, hint.empty() ? kWithoutKernel : hint);
}

Placed GridParts::placed(const plan::Compute& compute, std::int32_t number, int rank) const {
  const plan::ComputeOperand* result = result_of(compute);
  if (result == nullptr) refuse("compute '" + compute.name + "' makes nothing");
  Placed made{.compute = &compute, .number = number, .boxes = {}, .moved = {}};
  plan::Rect box;
  for (std::int32_t axis = 0; axis < std::ssize(compute.axes); ++axis) {
    const std::int64_t first = first_of(compute, *result, axis, rank);
    box.begin.push_back(first);
    box.end.push_back(first + compute.axes[index(axis)].extent);
  }
  for (const plan::ComputeOperand& operand : compute.operands) {
    std::vector<std::int64_t>& moved = made.moved.emplace_back();
    for (std::size_t i = 0; i < operand.axes.size(); ++i)
      moved.push_back(
          operand.axes[i] < 0 ? 0 : operand.first(i, rank) - box.begin[index(operand.axes[i])]);
  }
  made.boxes = {box};
  for (std::int32_t axis = 0; axis < std::ssize(compute.axes); ++axis) wrap(made, axis);
  return made;
}

/// Boxes that go around the end of tensors as two.
void GridParts::wrap(Placed& one, std::int32_t axis) const {
  std::optional<std::int64_t> length;
  for (std::size_t o = 0; o < one.compute->operands.size(); ++o) {
    const plan::ComputeOperand& operand = one.compute->operands[o];
    for (std::size_t i = 0; i < operand.axes.size(); ++i) {
      if (operand.axes[i] != axis || !operand.wraps) continue;
      const std::int64_t extent = tensor(operand.tensor).shape[i];
      if (one.moved[o][i] != 0 || length.value_or(extent) != extent)
        refuse(
            fmt::format("operands of compute {} go around the ends of tensors at different "
                        "places",
                        named(one)));
      length = extent;
    }
  }
  if (!length) return;
  std::vector<plan::Rect> all;
  for (plan::Rect box : one.boxes) {
    const std::int64_t turns = box.begin[index(axis)] / *length * *length;
    box.begin[index(axis)] -= turns;
    box.end[index(axis)] -= turns;
    plan::Rect rest = box;
    box.end[index(axis)] = std::min(box.end[index(axis)], *length);
    all.push_back(box);
    if (rest.end[index(axis)] <= *length) continue;
    rest.begin[index(axis)] = 0;
    rest.end[index(axis)] -= *length;
    all.push_back(std::move(rest));
  }
  one.boxes = std::move(all);
}

std::string GridParts::why_not(const Grid& grid, const Placed& one) const {
  const Placed& first = grid.front();
  const plan::Compute &a = *first.compute, &b = *one.compute;
  const std::string both = named(first) + " and " + named(one);
  if (a.kernel != b.kernel)
    return fmt::format("{} is a '{}', {} a '{}'", named(first), a.kernel, named(one), b.kernel);
  if (a.operands.size() != b.operands.size() || !have_same_axes(a, b))
    return both + " have other operands or axes";
  for (std::size_t i = 0; i < a.operands.size(); ++i) {
    if (a.operands[i].tensor == b.operands[i].tensor) continue;
    return fmt::format(
        "{} {} '{}', {} '{}'", named(first), plan::makes(a.operands[i].use) ? "makes" : "reads",
        tensor(a.operands[i].tensor).name, named(one), tensor(b.operands[i].tensor).name);
  }
  if (a.waits == plan::Waits::tiles || b.waits == plan::Waits::tiles)
    return both + " are kernels in which tiles wait for themselves";
  if (first.moved != one.moved) return both + " take rows of one operand for other rows of another";
  for (const Placed& other : grid) {
    for (const plan::Rect& rect : other.boxes) {
      for (const plan::Rect& box : one.boxes)
        if (!plan::intersection(rect, box).empty())
          return fmt::format("{} and {} make the same elements", named(other), named(one));
    }
    // Tiles of a grid begin with nothing, so a launch that does so too has elements of its own.
    if (!adds(b) && makes_same(other, one))
      return fmt::format("{} begins again with elements that {} has made", named(one),
                         named(other));
  }
  return {};
}

void GridParts::require_begun(const Grid& grid) const {
  const std::int64_t depth = depth_of(grid);
  std::int64_t begun = 0, made = 0;  // elements times the depth of their sums
  for (const Placed& one : grid) {
    for (const plan::Rect& box : one.boxes) {
      made += box.elements();
      if (!adds(*one.compute)) begun += results_in(*one.compute, box) * depth;
    }
  }
  if (begun == made) return;
  for (const Placed& one : grid) {
    for (const plan::ComputeOperand& operand : one.compute->operands) {
      if (operand.use != plan::Use::add) continue;
      refuse(fmt::format("compute '{}' adds to what is in tensor '{}' already, and tiles of a "
                         "grid store their sums: computes that add up over '{}' are waves of one "
                         "grid only if they are all of that sum",
                         one.compute->name, tensor(operand.tensor).name, name_of_sum(*one.compute)),
             "a plan that is cut along rows or columns fits; without a kernel, 'hemiola compile "
             "--plan' writes launches as PyTorch");
    }
  }
}

}  // namespace hemiola::compile
