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

/// "BLOCK_M, **_: BLOCK_M" of an expression in parameters.
std::string lambda_of(const std::string& block) {
  const Formula formula(block);
  return formula.names().empty()
             ? fmt::format("lambda **_: {}", block)
             : fmt::format("lambda {}, **_: {}", fmt::join(formula.names(), ", "), block);
}

class KernelObject {
 public:
  KernelObject(const plan::Plan& plan, const Fusion& fusion)
      : plan_(plan), fusion_(fusion), kernel_(*fusion.kernel) {
    for (const FusedOperand& one : fusion.operands) {
      const plan::Tensor& tensor = plan.tensors[static_cast<std::size_t>(one.tensor)];
      if (!has_longer_rows(tensor)) continue;
      rooms_.push_back(fmt::format("\"{}\": ({})", tensor.name, fmt::join(*room_of(tensor), ", ")));
    }
  }

  std::string text(const std::string& function, const std::string& name) const {
    std::string text = fmt::format("{} = hemiola_rt.Kernel(\n    {}, coordinates, {{\n{}    }}",
                                   name, function, fmt::join(tiles(), ""));
    if (!fusion_.workers.empty()) text += fmt::format(", workers=\"{}\"", fusion_.workers);
    if (kernel_.scheduler.is_persistent)
      text += fmt::format(", tile=\"{}\"", kernel_.dispatch.tile_id);
    text +=
        ",\n    # How it is paired with plans: hemiola_rt.load_plan(\"plan.json\", kernel=THIS "
        "MODULE) takes one of another shape.\n";
    for (const std::string& line : pairing()) text += "    " + line + ",\n";
    if (fusion_.compute > 0) return text + ")\n";
    std::vector<std::string> given;
    for (const FusedExtra& one : fusion_.extras)
      if (one.shape.empty()) given.push_back(in_quotes(one.parameter));
    return text + fmt::format(
                      ")\nEXTRAS = [{}]  # tensors of the kernel that a caller gives with "
                      "each call\n",
                      fmt::join(given, ", "));
  }

 private:
  /// "bias": ("n",): by axis the compute's, or so many elements; behind it what is said of it.
  std::string extra(const FusedExtra& one) const {
    std::vector<std::string> axes;
    for (std::size_t i = 0; i < one.axes.size(); ++i)
      axes.push_back(one.axes[i] < 0
                         ? std::to_string(one.shape[i])
                         : in_quotes(compute().axes[static_cast<std::size_t>(one.axes[i])].name));
    return fmt::format("\"{}\": (\"{}\", ({},), {}, {})", one.parameter, one.name,
                       fmt::join(axes, ", "), one.is_read ? "True" : "False",
                       one.is_added_once ? "True" : "False");
  }
  void means_of_configurations(std::vector<std::string>& means) const {
    for (const auto& [name, meaning] : fusion_.config_meanings)
      if (!meaning.empty()) means.push_back(in_quotes(name) + ": " + meaning);
  }
  std::string extras() const {
    std::vector<std::string> made;
    for (const FusedExtra& one : fusion_.extras)
      if (!one.shape.empty()) made.push_back(extra(one));
    return made.empty() ? "" : fmt::format("extras={{{}}}", fmt::join(made, ", "));
  }
  const plan::Compute& compute() const {
    return plan_.codes.front().computes[static_cast<std::size_t>(fusion_.compute)];
  }

  std::vector<std::string> tiles() const {
    std::vector<std::string> all;
    for (std::size_t i = 0; i < fusion_.axes.size(); ++i) {
      if (fusion_.axes[i].is_derived) continue;
      const TileAxis& axis = kernel_.axes[i];
      // Where it counts longer rows than the tiles are of, it says nothing of tiles.
      const std::string extent = std::to_string(fusion_.axes[i].extent);
      const bool counts_rows =
          !rooms_.empty() && std::ranges::any_of(fusion_.arguments, [&](const FusedArgument& one) {
            return one.parameter == axis.size && one.value != extent;
          });
      const bool is_parameter = kernel_.parameter(axis.size) != nullptr && !counts_rows;
      all.push_back(
          fmt::format("        \"{}\": hemiola_rt.TileAxis(block={}, size={}, grid={}),\n",
                      axis.name, axis.splits_reduction ? "1" : lambda_of(axis.block),
                      is_parameter && !axis.splits_reduction ? in_quotes(axis.size) : "None",
                      fusion_.axes[i].grid));
    }
    return all;
  }

  /// Axes whose extents the kernel was made for (all, where one of them is what rows are as long
  /// as), and those along which tiles read more than their own elements.
  void axes_of_tensor(const FusedOperand& one, std::vector<std::string>& fixed,
                      std::vector<std::string>& gathered) const {
    const plan::Tensor& tensor = plan_.tensors[static_cast<std::size_t>(one.tensor)];
    const auto& axes = compute().operands[static_cast<std::size_t>(one.operand)].axes;
    for (std::size_t i = 0; i < axes.size(); ++i)
      if (axes[i] < 0 || !rooms_.empty())
        fixed.push_back(fmt::format("(\"{}\", {}): {}", tensor.name, i, tensor.shape[i]));
      else if (!one.follows[i])
        gathered.push_back(fmt::format("(\"{}\", {})", tensor.name, i));
  }

  std::vector<std::string> pairing() const {
    std::vector<std::string> tensors, turned, added, axes, derived, means, fixed, gathered, lines;
    for (const FusedOperand& one : fusion_.operands) {
      const plan::Tensor& tensor = plan_.tensors[static_cast<std::size_t>(one.tensor)];
      tensors.push_back(fmt::format("\"{}\": \"{}\"", one.parameter, tensor.name));
      if (one.is_transposed) turned.push_back(in_quotes(one.parameter));
      if (one.is_added_to) added.push_back(in_quotes(one.parameter));
      axes_of_tensor(one, fixed, gathered);
    }
    for (const FusedAxis& axis : fusion_.axes) {
      const bool has_none = axis.compute < 0 || axis.splits_reduction;
      axes.push_back(fmt::format(
          "\"{}\": {}", axis.name,
          has_none ? "None"
                   : in_quotes(compute().axes[static_cast<std::size_t>(axis.compute)].name)));
      if (axis.is_derived) derived.push_back(in_quotes(axis.name));
    }
    for (const FusedArgument& one : fusion_.arguments)
      if (!one.meaning.empty()) means.push_back(in_quotes(one.parameter) + ": " + one.meaning);
    means_of_configurations(means);
    lines.push_back(fmt::format("tensors={{{}}}", fmt::join(tensors, ", ")));
    if (!turned.empty()) lines.push_back(fmt::format("turned=[{}]", fmt::join(turned, ", ")));
    if (!added.empty()) lines.push_back(fmt::format("added=[{}]", fmt::join(added, ", ")));
    lines.push_back(fmt::format("axes={{{}}}", fmt::join(axes, ", ")));
    if (!derived.empty()) lines.push_back(fmt::format("derived=[{}]", fmt::join(derived, ", ")));
    lines.push_back(fmt::format("means={{{}}}", fmt::join(means, ", ")));
    lines.push_back(fmt::format("fixed={{{}}}", fmt::join(fixed, ", ")));
    if (!rooms_.empty()) lines.push_back(fmt::format("rooms={{{}}}", fmt::join(rooms_, ", ")));
    if (!gathered.empty()) lines.push_back(fmt::format("gathered=[{}]", fmt::join(gathered, ", ")));
    if (const std::string made = extras(); !made.empty()) lines.push_back(made);
    if (const std::vector<std::string> made = descriptors(); !made.empty())
      lines.push_back(fmt::format("descriptors={{{}}}", fmt::join(made, ", ")));
    if (fusion_.waits_in_loop())
      lines.push_back(
          fmt::format("loop=(\"{}\", {}, {})",
                      compute().axes[static_cast<std::size_t>(fusion_.loop.compute)].name,
                      lambda_of(fusion_.loop.step), fusion_.loop.reorders ? "True" : "False"));
    if (!fusion_.stores.empty()) lines.push_back(fmt::format("stores=\"{}\"", fusion_.stores));
    lines.push_back(fmt::format("waits={}, signals={}", fusion_.waits() ? "True" : "False",
                                fusion_.signals() ? "True" : "False"));
    return lines;
  }

  /// Operands that are descriptors of the host, with their blocks: elements of a tile, or of a turn
  /// of a loop, along each axis.
  std::vector<std::string> descriptors() const {
    std::vector<std::string> made;
    for (const FusedOperand& one : fusion_.operands) {
      const auto access =
          std::find_if(kernel_.accesses.begin(), kernel_.accesses.end(),
                       [&](const AccessDescription& any) { return any.operand == one.parameter; });
      const bool is_of_host =
          access->mechanism == Mechanism::descriptor &&
          std::all_of(access->axes.begin(), access->axes.end(),
                      [](const AxisIndex& index) { return index.stride.empty(); });
      if (!is_of_host) continue;
      std::vector<std::string> names, blocks;
      for (const AxisIndex& index : access->axes) {
        blocks.push_back(!index.range.empty()   ? index.range
                         : !index.tiles.empty() ? index.tiles.front().block
                         : !index.loops.empty() ? index.loops.front().step
                                                : "1");
        const Formula block(blocks.back());
        for (const std::string& name : block.names())
          if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
      made.push_back(fmt::format("\"{}\": lambda {}**_: ({}{})", one.parameter,
                                 names.empty() ? "" : fmt::format("{}, ", fmt::join(names, ", ")),
                                 fmt::join(blocks, ", "), blocks.size() == 1 ? "," : ""));
    }
    return made;
  }

  const plan::Plan& plan_;
  const Fusion& fusion_;
  const Description& kernel_;
  std::vector<std::string> rooms_;  ///< of tensors in longer rows: "q": (4, 256, 32)
};

}  // namespace

std::string kernel_object(const plan::Plan& plan, const Fusion& fusion, const std::string& function,
                          const std::string& name) {
  return KernelObject(plan, fusion).text(function, name);
}

}  // namespace hemiola::compile
