// Rows that are longer than what a plan has in them: where a kernel has one parameter for the rows
// of several tensors, the shorter ones get the room of the longest.
#include <algorithm>

#include "compile/fuse/bind.h"

namespace hemiola::compile {

bool has_longer_rows(const plan::Tensor& tensor) {
  return room_of(tensor).value_or(tensor.shape) != tensor.shape;
}

bool Pairer::has_room(const OperandPair& pair) const {
  return has_longer_rows(tensor_of(pair.operand));
}
bool Pairer::has_room(const std::string& axis) const {
  return std::ranges::any_of(made_.pairs, [&](const OperandPair& pair) {
    const plan::Tensor& tensor = tensor_of(pair.operand);
    for (std::size_t i = 0; i < pair.kernel_axis.size(); ++i)
      if (axis_name(pair, pair.kernel_axis[i]) == axis && has_room(pair) &&
          extent_of(pair, i) != tensor.shape[i])
        return true;
    return false;
  });
}

bool Pairer::is_looped(const OperandPair& pair, std::size_t axis) const {
  const std::string& name = axis_name(pair, pair.kernel_axis[axis]);
  return kernel_.scheduler.is_persistent || name.empty() ||
         std::ranges::any_of(kernel_.loops,
                             [&](const LoopDescription& loop) { return loop.axis == name; });
}

void Pairer::for_each_size(const OperandPair& pair, const UseSize& use) const {
  const std::vector<std::size_t>& paired = pair.kernel_axis;
  for (const int id : pair.kernel->accesses) {
    for (const AccessDescription& access : kernel_.accesses) {
      if (access.id != id || access.axes.size() != pair.kernel->axes.size()) continue;
      for (std::size_t i = 0; i < access.axes.size(); ++i) {
        const auto at = std::ranges::find(paired, i);
        use(access, i, at == paired.end() ? -1 : static_cast<int>(at - paired.begin()));
      }
    }
  }
}

std::map<std::int32_t, std::vector<std::int64_t>> Pairer::strides_with_room() {
  pair_operands_and_axes();
  Names largest;
  for (const OperandPair& pair : made_.pairs)
    for_each_size(pair, [&](const AccessDescription& access, std::size_t i, int axis) {
      if (axis < 0 || !is_parameter(access.axes[i].size)) return;
      std::int64_t& most = largest[access.axes[i].size];
      most = std::max(most, extent_of(pair, static_cast<std::size_t>(axis)));
    });
  std::map<std::int32_t, std::vector<std::int64_t>> found;
  for (const OperandPair& pair : made_.pairs) {
    const plan::Tensor& tensor = tensor_of(pair.operand);
    const std::int32_t number = compute_.operands[static_cast<std::size_t>(pair.operand)].tensor;
    std::vector<std::int64_t> room = tensor.shape;
    for_each_size(pair, [&](const AccessDescription& access, std::size_t i, int axis) {
      const auto most = largest.find(access.axes[i].size);
      if (axis > 0 && most != largest.end() && !is_looped(pair, static_cast<std::size_t>(axis)))
        room[static_cast<std::size_t>(axis)] =
            std::max(room[static_cast<std::size_t>(axis)], most->second);
    });
    if (room != tensor.shape && tensor.strides.empty() && !is_moved(number))
      found[number] = plan::Tensor(tensor.name, tensor.role, room, tensor.type).layout();
  }
  return found;
}

std::optional<std::vector<std::int64_t>> room_of(const plan::Tensor& tensor) {
  const std::vector<std::int64_t> steps = tensor.layout();
  std::vector<std::int64_t> made = tensor.shape;
  for (std::size_t axis = 1; axis < made.size(); ++axis) {
    made[axis] = steps[axis - 1] / steps[axis];
    if (steps[axis - 1] % steps[axis] != 0 || made[axis] < tensor.shape[axis]) return std::nullopt;
  }
  return steps.empty() || steps.back() == 1 ? std::optional(made) : std::nullopt;
}

Grids with_room(Grids grids, const Description& kernel, const FuseRequest& request) {
  for (std::int32_t grid = 0; grid < grids.count(); ++grid) {
    const auto& computes = grids.plan.codes.front().computes;
    Pairer pairer(kernel, grids.plan, computes[static_cast<std::size_t>(grid)], request);
    std::map<std::int32_t, std::vector<std::int64_t>> strides;
    try {
      strides = pairer.strides_with_room();
    } catch (const Failure&) {  // fuse() says what does not fit
    }
    for (const auto& [tensor, of] : strides)
      grids.plan.tensors[static_cast<std::size_t>(tensor)].strides = of;
  }
  return grids;
}

}  // namespace hemiola::compile
