// Which of a tensor's elements belong to a tile, or to a turn of a loop, and to no other.
#include <fmt/format.h>

#include "compile/fuse/bind.h"
#include "plan/launches.h"

namespace hemiola::compile {
namespace {

/// Whether an index runs over the elements of the tile, or of the turn of the fused loop, along an
/// axis of the compute, and over no others.
bool is_own(const AxisIndex& index, std::int32_t compute_axis, const Pairing& pairing,
            const Fusion& fusion) {
  if (!index.indirect.empty() || index.is_derived) return false;
  const auto has_range = [&](const std::string& block) {
    return index.offset.empty() && (index.range.empty() || index.range == block);
  };
  if (fusion.loop.loop >= 0 && fusion.loop.compute == compute_axis)
    return index.tiles.empty() && index.loops.size() == 1 &&
           index.loops.front().loop == fusion.loop.loop && index.loops.front().begin.empty() &&
           has_range(index.loops.front().step);
  if (index.tiles.size() != 1) return false;
  const AxisIndex::TilePart& part = index.tiles.front();
  const TileAxis& axis = fusion.kernel->axes[static_cast<std::size_t>(part.axis)];
  if (axis.splits_reduction) return true;  // along which nothing is cut
  const auto of_plan = pairing.compute_axis.find(axis.name);
  return of_plan != pairing.compute_axis.end() && of_plan->second == compute_axis &&
         part.block == axis.block &&
         (index.loops.empty()
              ? has_range(part.block)
              : goes_over_tile(*fusion.kernel, index) && has_range(index.loops.front().step));
}

/// The second half of a row, say, is in a tensor only if that has room for both.
void check_reach(const AccessDescription& access, const AxisIndex& index, std::int64_t tiled,
                 const plan::Tensor& tensor, std::size_t axis, const Pairing& pairing) {
  const bool is_stopped = !index.size.empty() || index.wraps || index.clamps;
  if (index.offset.empty() || index.tiles.empty() || is_stopped) return;
  const std::optional<std::int64_t> offset = number_in(index.offset, pairing.sizes);
  if (!offset || *offset + tiled <= tensor.shape[axis]) return;
  throw Failure(fmt::format("operand '{}' is accessed up to element {} of its axis {}, and tensor "
                            "'{}' of the plan has {} along it",
                            access.operand, *offset + tiled, axis, tensor.name, tensor.shape[axis]),
                access.call.where(),
                "an axis that the kernel goes along twice is no axis of a plan's compute");
}

}  // namespace

std::optional<bool> FusedConfig::is_causal() const {
  for (const auto& [name, value] : values)
    if (name.find("causal") != name.npos || name.find("CAUSAL") != name.npos)
      return value != "False" && value != "0";
  return std::nullopt;
}

bool goes_over_tile(const Description& kernel, const AxisIndex& index) {
  if (index.tiles.size() != 1 || index.loops.size() != 1) return false;
  const AxisIndex::LoopPart& turn = index.loops.front();
  const LoopDescription* loop = kernel.loop(turn.loop);
  return loop != nullptr && turn.begin.empty() && loop->begin == "0" &&
         loop->end == index.tiles.front().block && loop->step == turn.step;
}

std::string broken_turn(const Description& kernel, std::size_t axis, std::int64_t block,
                        const Names& names) {
  for (const AccessDescription& access : kernel.accesses) {
    for (const AxisIndex& index : access.axes) {
      if (!goes_over_tile(kernel, index) || index.tiles.front().axis != static_cast<int>(axis))
        continue;
      const std::string& step = index.loops.front().step;
      const std::optional<std::int64_t> turn = number_in(step, names);
      if (turn && *turn > 0 && block % *turn == 0) continue;
      return fmt::format("a tile of {} elements along {} is no whole number of turns of {}", block,
                         kernel.axes[axis].name, step);
    }
  }
  return {};
}

std::string missing_mask(const plan::Compute& compute, const FusedConfig& config) {
  if (compute.name != plan::kCausalAttention || config.is_causal().value_or(true)) return {};
  return "the plan's attention is causal, and the kernel's looks at keys behind a query";
}

bool merges(const Pairing& pairing, const plan::Compute& compute) {
  bool any = false, takes_turns = false;
  for (const OperandPair& pair : pairing.pairs) {
    if (!plan::makes(compute.operands[static_cast<std::size_t>(pair.operand)].use)) continue;
    const bool is_turn = pair.kernel->is_added_to && !pair.kernel->is_written;
    if (!is_turn && !(pair.kernel->is_read && pair.kernel->is_written)) return false;
    (is_turn ? takes_turns : any) = true;
  }
  return any && takes_turns;
}

void find_followed(const plan::Plan& plan, const Pairing& pairing, Fusion& fusion) {
  const plan::Compute& compute =
      plan.codes.front().computes[static_cast<std::size_t>(fusion.compute)];
  for (std::size_t number = 0; number < pairing.pairs.size(); ++number) {
    const OperandPair& pair = pairing.pairs[number];
    const std::vector<std::int32_t>& axes =
        compute.operands[static_cast<std::size_t>(pair.operand)].axes;
    std::vector<bool>& follows = fusion.operands[number].follows;
    follows.assign(axes.size(), true);
    for (const AccessDescription& access : fusion.kernel->accesses) {
      if (access.operand != pair.kernel->name) continue;
      for (std::size_t i = 0; i < axes.size(); ++i) {
        const std::size_t at = pair.kernel_axis[i];
        if (axes[i] >= 0 &&
            (at >= access.axes.size() || !is_own(access.axes[at], axes[i], pairing, fusion)))
          follows[i] = false;
        if (axes[i] >= 0 && at < access.axes.size())
          check_reach(
              access, access.axes[at], compute.axes[static_cast<std::size_t>(axes[i])].extent,
              plan.tensors[static_cast<std::size_t>(fusion.operands[number].tensor)], i, pairing);
      }
    }
  }
}

}  // namespace hemiola::compile
