#include "compile/emit/torch_kernel.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace hemiola::compile {
namespace {

std::string in_quotes(const std::string& text) {
  return '"' + text + '"';
}

/// Operands that are descriptors of the host, with their blocks: elements of a tile, or of a turn
/// of a loop, along each axis.
std::vector<std::string> descriptors_of(const Fusion& fusion) {
  std::vector<std::string> made;
  for (const FusedOperand& one : fusion.operands) {
    const auto& accesses = fusion.kernel->accesses;
    const auto access = std::ranges::find(accesses, one.parameter, &AccessDescription::operand);
    const bool is_of_host = access->mechanism == Mechanism::descriptor &&
                            std::ranges::all_of(access->axes, [](const AxisIndex& index) {
                              return index.stride.empty();
                            });
    if (!is_of_host) continue;
    std::vector<std::string> names, blocks;
    for (const AxisIndex& index : access->axes) {
      blocks.push_back(!index.range.empty()   ? index.range
                       : !index.tiles.empty() ? index.tiles.front().block
                       : !index.loops.empty() ? index.loops.front().step
                                              : "1");
      const Formula block(blocks.back());
      for (const std::string& name : block.names())
        if (std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
    made.push_back(fmt::format("\"{}\": lambda {}**_: ({}{})", one.parameter,
                               names.empty() ? "" : fmt::format("{}, ", fmt::join(names, ", ")),
                               fmt::join(blocks, ", "), blocks.size() == 1 ? "," : ""));
  }
  return made;
}

std::vector<std::string> tiles_of(const plan::Plan& plan, const Fusion& fusion) {
  const bool has_room = std::ranges::any_of(fusion.operands, [&](const FusedOperand& one) {
    return has_longer_rows(plan.tensors[static_cast<std::size_t>(one.tensor)]);
  });
  std::vector<std::string> all;
  for (std::size_t i = 0; i < fusion.axes.size(); ++i) {
    if (fusion.axes[i].is_derived) continue;
    const TileAxis& axis = fusion.kernel->axes[i];
    // Where it counts longer rows than the tiles are of, it says nothing of tiles.
    const std::string extent = std::to_string(fusion.axes[i].extent);
    const bool counts_rows =
        has_room && std::ranges::any_of(fusion.arguments, [&](const FusedArgument& one) {
          return one.parameter == axis.size && one.value != extent;
        });
    const bool is_parameter = fusion.kernel->parameter(axis.size) != nullptr && !counts_rows;
    all.push_back(
        fmt::format("        \"{}\": hemiola_rt.TileAxis(block={}, size={}, grid={}),\n", axis.name,
                    axis.splits_reduction ? "1" : lambda_of(axis.block),
                    is_parameter && !axis.splits_reduction ? in_quotes(axis.size) : "None",
                    fusion.axes[i].grid));
  }
  return all;
}

}  // namespace

std::string lambda_of(const std::string& block) {
  const Formula formula(block);
  return formula.names().empty()
             ? fmt::format("lambda **_: {}", block)
             : fmt::format("lambda {}, **_: {}", fmt::join(formula.names(), ", "), block);
}

std::string kernel_object(const plan::Plan& plan, const Fusion& fusion, const std::string& function,
                          const std::string& name) {
  std::string text = fmt::format("{} = hemiola_rt.Kernel(\n    {}, coordinates, {{\n{}    }}", name,
                                 function, fmt::join(tiles_of(plan, fusion), ""));
  if (!fusion.workers.empty()) text += fmt::format(", workers=\"{}\"", fusion.workers);
  if (fusion.kernel->scheduler.is_persistent)
    text += fmt::format(", tile=\"{}\"", fusion.kernel->dispatch.tile_id);
  std::vector<std::string> turned, given;
  for (const FusedOperand& one : fusion.operands)
    if (one.is_transposed) turned.push_back(in_quotes(one.parameter));
  if (!turned.empty()) text += fmt::format(",\n    turned=[{}]", fmt::join(turned, ", "));
  if (const std::vector<std::string> made = descriptors_of(fusion); !made.empty())
    text += fmt::format(",\n    descriptors={{{}}}", fmt::join(made, ", "));
  if (!fusion.stores.empty()) text += fmt::format(",\n    stores=\"{}\"", fusion.stores);
  if (fusion.compute > 0) return text + ")\n";
  for (const FusedExtra& one : fusion.extras)
    if (one.shape.empty()) given.push_back(in_quotes(one.parameter));
  return text + fmt::format(
                    ")\nEXTRAS = [{}]  # tensors of the kernel that a caller gives with "
                    "each call\n",
                    fmt::join(given, ", "));
}

}  // namespace hemiola::compile
