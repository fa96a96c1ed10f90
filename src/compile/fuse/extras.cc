// Tensors of a kernel that the plan does not have: a bias, scales, what is added to the result.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>

#include "compile/fuse/bind.h"

namespace hemiola::compile {
namespace {

/// An axis of a tensor: its elements, and the compute's axis that they follow (-1: none).
struct Along {
  std::int64_t extent = 0;
  std::int32_t compute = -1;
  std::string stride;
  bool operator==(const Along&) const = default;
};

std::optional<Along> along(const AxisIndex& index, const plan::Compute& compute,
                           const Pairing& pairing, const Fusion& fusion) {
  Along made{.stride = index.stride};
  if (!index.indirect.empty() || index.is_derived || !index.offset.empty()) return std::nullopt;
  if (index.tiles.size() == 1 && index.loops.empty()) {
    const FusedAxis& axis = fusion.axes[static_cast<std::size_t>(index.tiles.front().axis)];
    if (axis.splits_reduction) return std::nullopt;
    made.extent = axis.extent;
    made.compute = axis.compute;
  } else if (index.tiles.empty() && index.loops.size() == 1) {
    const LoopDescription* loop = fusion.kernel->loop(index.loops.front().loop);
    const auto axis =
        loop == nullptr ? pairing.compute_axis.end() : pairing.compute_axis.find(loop->axis);
    if (axis == pairing.compute_axis.end()) return std::nullopt;
    made.compute = axis->second;
    made.extent = compute.axes[static_cast<std::size_t>(axis->second)].extent;
  } else if (index.tiles.empty() && index.loops.empty() && index.range.empty()) {
    made.extent = 1;
  } else {
    return std::nullopt;
  }
  return made;
}

/// By axis; nothing: accesses differ, or go where the text does not say.
std::optional<std::vector<Along>> axes_of(const OperandDescription& operand,
                                          const plan::Compute& compute, const Pairing& pairing,
                                          const Fusion& fusion) {
  std::optional<std::vector<Along>> found;
  for (const AccessDescription& access : fusion.kernel->accesses) {
    if (access.operand != operand.name) continue;
    // A table whose entries are part of addresses has values that only the caller knows.
    for (const AccessDescription& other : fusion.kernel->accesses)
      for (const AxisIndex& index : other.axes)
        if (std::ranges::find(index.indirect, access.id) != index.indirect.end())
          return std::nullopt;
    if (!access.unknown.empty() || access.is_loaded_address || !access.offset.empty() ||
        access.mechanism != Mechanism::pointer || access.action == Action::atomic)
      return std::nullopt;
    std::vector<Along> axes;
    for (const AxisIndex& index : access.axes) {
      const auto one = along(index, compute, pairing, fusion);
      if (!one) return std::nullopt;
      axes.push_back(*one);
    }
    if (found && *found != axes) return std::nullopt;
    found = std::move(axes);
  }
  return found;
}

/// What no dimension of the block runs along stands behind: a head.
template <class Stride>
void sort_by(std::vector<Along>& axes, const Stride& stride_of) {
  if (std::ranges::all_of(axes, [&](const Along& one) { return stride_of(one).has_value(); }))
    std::ranges::stable_sort(
        axes, [&](const Along& a, const Along& b) { return *stride_of(a) > *stride_of(b); });
}

/// What is written alone may lie in longer rows: its elements are the kernel's own. `dense`: what
/// the stride of the next axis is behind such a row.
void make_room(Along& row, std::int64_t stride, std::int64_t& dense) {
  const std::int64_t width = dense / row.extent;
  if (stride <= dense || stride % width != 0) return;
  row = {stride / width, -1, row.stride};
  dense = stride;
}

FusedExtra extra_of(const OperandDescription& operand, const plan::Compute& compute,
                    Pairing& pairing, const Fusion& fusion) {
  FusedExtra made{.parameter = operand.name, .name = operand.name, .is_read = operand.is_read};
  auto axes = axes_of(operand, compute, pairing, fusion);
  if (!axes || axes->empty()) return made;
  const auto stride_of = [&](const Along& one) {
    return number_in(one.stride.empty() ? "1" : one.stride, pairing.sizes);
  };
  sort_by(*axes, stride_of);
  // Dense, with the axes in their order: strides that are parameters are what that gives.
  Names strides;
  std::int64_t dense = 1;
  for (auto at = axes->rbegin(); at != axes->rend(); ++at) {
    const std::optional<std::int64_t> known = stride_of(*at);
    const bool is_open = !known && fusion.kernel->parameter(at->stride) != nullptr;
    if (known && at != axes->rbegin() && !operand.is_read) make_room(*std::prev(at), *known, dense);
    if (known ? *known != dense && at->extent > 1 : !is_open) return made;
    if (is_open) strides[at->stride] = dense;
    dense *= at->extent;
  }
  for (const auto& [name, value] : strides) pairing.sizes[name] = value;
  for (const Along& one : *axes) made.shape.push_back(one.extent);
  return made;
}

}  // namespace

void find_extras(const plan::Plan& plan, const FuseRequest& request, Pairing& pairing,
                 Fusion& fusion) {
  static const std::set<std::string> kTaken{"copies", "compute", "arrived", "made", "done",
                                            "groups", "work",    "rank",    "rt",   "t"};
  const plan::Compute& compute =
      plan.codes.front().computes[static_cast<std::size_t>(fusion.compute)];
  for (const OperandDescription& operand : fusion.kernel->operands) {
    const bool is_paired = std::ranges::any_of(
        fusion.operands, [&](const FusedOperand& one) { return one.parameter == operand.name; });
    if (is_paired || request.constants.contains(operand.name) ||  // None
        fusion.kernel->parameter(operand.name) == nullptr)
      continue;
    FusedExtra made = extra_of(operand, compute, pairing, fusion);
    if (fusion.compute > 0) made.name += fmt::format("_{}", fusion.compute + 1);
    while (kTaken.contains(made.name) ||
           std::ranges::any_of(plan.tensors,
                               [&](const plan::Tensor& one) { return one.name == made.name; }))
      made.name += '_';
    fusion.extras.push_back(std::move(made));
  }
}

}  // namespace hemiola::compile
