#include "compile/fuse/fusion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "compile/fuse/bind.h"

namespace hemiola::compile {
namespace {

class Fuser {
 public:
  Fuser(const Description& kernel, const Grids& grids, const FuseRequest& request)
      : kernel_(kernel), grids_(grids), plan_(grids.plan), request_(request) {}

  /// That the kernel is understood, and of the operator of a grid.
  void check(std::int32_t grid) {
    made_.compute = grid;
    check_kernel();
    check_family();
  }

  Fusion fuse(std::int32_t grid, bool keeps_loop) {
    made_.kernel = &kernel_;
    made_.compute = grid;
    pairing_ = Pairer(kernel_, plan_, compute(), request_).pair();
    for (std::size_t i = 0; i < pairing_.pairs.size(); ++i) {
      const OperandPair& pair = pairing_.pairs[i];
      made_.operands.push_back(
          {.parameter = pair.kernel->name,
           .tensor = compute().operands[static_cast<std::size_t>(pair.operand)].tensor,
           .operand = pair.operand,
           .is_transposed = pairing_.is_transposed[i],
           .is_added_to =
               pair.kernel->is_added_to ||
               (merges(pairing_, compute()) && pair.kernel->is_written && pair.kernel->is_read)});
    }
    axes();
    find_loop();
    find_followed(plan_, pairing_, made_);
    find_extras(plan_, request_, pairing_, made_);
    ends_ = find_waves(grids_, made_, keeps_loop);
    configurations();
    arguments();
    choose_space(made_);
    prove_order(made_);
    return std::move(made_);
  }

 private:
  const plan::Compute& compute() const {
    return plan_.codes.front().computes[static_cast<std::size_t>(made_.compute)];
  }

  [[noreturn]] void refuse(const std::string& what, const Span& where,
                           const std::string& hint = {}) const {
    throw Failure(what, where.where(), hint);
  }

  void check_kernel() const {
    if (!kernel_.is_understood) {
      if (kernel_.unknown.empty())
        refuse("kernel '" + kernel_.kernel + "' is not understood", kernel_.definition,
               "'hemiola compile KERNEL.py --describe' shows what was found");
      const Unknown& first = kernel_.unknown.front();
      refuse("kernel '" + kernel_.kernel + "' is not understood: " + first.what, first.span,
             first.hint);
    }
    for (const TileAxis& axis : kernel_.axes) {
      if (axis.is_problem || (!axis.can_be_cut && !axis.splits_reduction))
        refuse(
            fmt::format("axis {} of kernel '{}' cannot be cut into chunks{}", axis.name,
                        kernel_.kernel,
                        axis.is_problem ? ": its tiles are whole problems, found at run time"
                                        : ": " + axis.why_not),
            axis.assigned.value_or(kernel_.definition),
            axis.is_problem ? "" : "'# @sy.pid_map " + axis.name + "=VARIABLE' says where it is");
    }
  }

  /// Two operators may have operands of like shapes.
  void check_family() const {
    const plan::Compute& one = compute();
    const bool is_product = one.kernel == "gemm", is_attention = one.kernel == "attention";
    // Of a grouped product whose tiles are known before the launch: check_kernel().
    const bool multiplies =
        kernel_.family == Family::product || kernel_.family == Family::grouped_product;
    const bool fits =
        (!is_product || multiplies) && (!is_attention || kernel_.family == Family::attention);
    if (!is_product && !is_attention && grids_.are_of_launches)
      throw Failure(
          fmt::format("compute '{}' of plan '{}' is a '{}', and kernel '{}' a {}", one.name,
                      plan_.name, one.kernel, kernel_.kernel,
                      kernel_.family == Family::product ? "product" : "kernel of its own"),
          {.file = request_.plan_file}, "launches of one kernel are computes of one operator");
    if (!fits)
      refuse(fmt::format("kernel '{}' is no {}, which compute '{}' of plan '{}' is", kernel_.kernel,
                         is_product ? "product" : "attention", one.name, plan_.name),
             kernel_.definition, "'hemiola compile KERNEL.py --describe' shows what it is");
  }

  void axes() {
    for (const TileAxis& axis : kernel_.axes) {
      FusedAxis made{.name = axis.name, .splits_reduction = axis.splits_reduction};
      const auto found = pairing_.compute_axis.find(axis.name);
      if (found != pairing_.compute_axis.end()) {
        made.compute = found->second;
        if (!axis.splits_reduction)
          made.extent = compute().axes[static_cast<std::size_t>(found->second)].extent;
      } else if (const auto size = pairing_.sizes.find(axis.size); size != pairing_.sizes.end()) {
        made.extent = size->second;
      }
      made_.axes.push_back(made);
    }
    for (std::int32_t i = 0; i < std::ssize(compute().axes); ++i) {
      const plan::ComputeAxis& axis = compute().axes[static_cast<std::size_t>(i)];
      const bool is_there = std::ranges::any_of(pairing_.compute_axis,
                                                [&](const auto& one) { return one.second == i; });
      const auto tiled = std::ranges::find_if(made_.axes, [&](const FusedAxis& one) {
        return one.compute == i && !one.splits_reduction;
      });
      if (is_there && axis.reduced && tiled != made_.axes.end() && !merges(pairing_, compute()))
        refuse(fmt::format("the kernel's tiles along {} are of one sum in compute '{}' (axis '{}')",
                           tiled->name, compute().name, axis.name),
               kernel_.definition);
      if (!is_there && axis.extent > 1)
        refuse(fmt::format("axis '{}' of compute '{}' is none of kernel '{}'", axis.name,
                           compute().name, kernel_.kernel),
               kernel_.definition);
    }
  }

  /// The loop along which chunks could arrive: over an axis of the compute that tiles do not cut.
  void find_loop() {
    for (const LoopDescription& loop : kernel_.loops) {
      const auto axis = pairing_.compute_axis.find(loop.axis);
      const bool is_tiled = std::ranges::any_of(made_.axes, [&](const FusedAxis& one) {
        return axis != pairing_.compute_axis.end() && one.compute == axis->second;
      });
      if (axis == pairing_.compute_axis.end() || is_tiled || loop.is_persistent || loop.in_helper ||
          loop.begin != "0" || loop.variable.empty())
        continue;
      std::string step;
      for (const AccessDescription& access : kernel_.accesses) {
        for (const AxisIndex& index : access.axes) {
          for (const AxisIndex::LoopPart& part : index.loops)
            if (part.loop == loop.id && part.begin.empty()) step = part.step;
        }
      }
      if (step.empty()) continue;
      // Attention sums over all keys in any order; a loop that ends earlier for some tiles does
      // not.
      const bool is_whole = pairing_.sizes.contains(loop.end);
      made_.loop = {.loop = loop.id,
                    .compute = axis->second,
                    .extent = compute().axes[static_cast<std::size_t>(axis->second)].extent,
                    .step = step,
                    .reorders = kernel_.family == Family::attention && is_whole};
      return;
    }
  }

  /// The largest power of two up to what the plan says that chunks are whole tiles of.
  std::string block_for(std::int32_t axis, std::size_t fused) const {
    std::int64_t block = compute().axes[static_cast<std::size_t>(axis)].tile;
    block = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(block)));
    if (fused < ends_.axes.size()) {
      const auto fits = [&] {
        return std::ranges::all_of(ends_.axes[fused], [&](std::int64_t cut) {
          return cut % block == 0 || is_end(fused, cut);
        });
      };
      while (block > 1 && !fits()) block /= 2;
    }
    return std::to_string(block);
  }
  /// Likewise of a loop.
  std::string turn_for(std::int32_t axis) const {
    const plan::ComputeAxis& along = compute().axes[static_cast<std::size_t>(axis)];
    auto block = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(along.tile)));
    const auto fits = [&] {
      return std::ranges::all_of(
          ends_.loop, [&](std::int64_t end) { return end % block == 0 || end == along.extent; });
    };
    while (block > 1 && axis == made_.loop.compute && !fits()) block /= 2;
    return std::to_string(block);
  }
  bool is_end(std::size_t fused, std::int64_t cut) const { return cut == made_.axes[fused].extent; }

  /// What a tl.constexpr parameter is where nobody says it.
  std::string inferred(const std::string& name) const {
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      if (kernel_.axes[i].block == name && made_.axes[i].compute >= 0)
        return block_for(made_.axes[i].compute,
                         made_.axes[i].splits_reduction ? ends_.axes.size() : i);
    }
    for (const AccessDescription& access : kernel_.accesses) {
      for (const AxisIndex& index : access.axes) {
        if (index.range != name) continue;
        for (const AxisIndex::LoopPart& part : index.loops) {
          const LoopDescription* loop = kernel_.loop(part.loop);
          const auto axis = loop == nullptr ? pairing_.compute_axis.end()
                                            : pairing_.compute_axis.find(loop->axis);
          if (axis != pairing_.compute_axis.end()) return turn_for(axis->second);
        }
        if (const auto whole = extent_of(access, index))
          return std::to_string(std::bit_ceil(static_cast<std::uint64_t>(*whole)));
      }
    }
    if (name == kernel_.scheduler.group_size) return "8";
    return {};
  }

  /// Elements of the tensor's axis that an index runs along.
  std::optional<std::int64_t> extent_of(const AccessDescription& access,
                                        const AxisIndex& index) const {
    for (const OperandPair& pair : pairing_.pairs) {
      if (pair.kernel->name != access.operand) continue;
      const auto at = static_cast<std::size_t>(&index - access.axes.data());
      const auto found = std::ranges::find(pair.kernel_axis, at);
      if (found == pair.kernel_axis.end()) return 1;
      const plan::Tensor& tensor = plan_.tensors[static_cast<std::size_t>(
          compute().operands[static_cast<std::size_t>(pair.operand)].tensor)];
      return tensor.shape[static_cast<std::size_t>(found - pair.kernel_axis.begin())];
    }
    return std::nullopt;
  }

  void configurations() {
    if (kernel_.scheduler.is_persistent) {
      if (kernel_.parameter(kernel_.scheduler.workers) == nullptr &&
          !kernel_.scheduler.workers.starts_with("tl.num_programs"))
        refuse("how many programs the persistent kernel has is '" + kernel_.scheduler.workers +
                   "', which is no parameter",
               kernel_.definition);
      if (kernel_.parameter(kernel_.scheduler.workers) != nullptr)
        made_.workers = kernel_.scheduler.workers;
    }
    std::vector<Configuration> tried =
        request_.configurations.empty() ? kernel_.tuning.configurations : request_.configurations;
    if (tried.empty()) tried.emplace_back();
    std::set<std::string> known;
    for (const Configuration& one : tried) {
      FusedConfig config{.name = {}, .values = {}, .warps = one.warps, .stages = one.stages};
      std::string why;
      if (!fill(one, config, why) || !fits(config, why)) {
        made_.dropped.push_back(config.name + ": " + why);
        continue;
      }
      if (known.insert(config.name + one.warps + ' ' + one.stages).second)
        made_.configs.push_back(std::move(config));
    }
    if (made_.configs.empty())
      refuse(fmt::format("no configuration of kernel '{}' fits the chunks of plan '{}': {}",
                         kernel_.kernel, plan_.name, made_.dropped.front()),
             kernel_.definition, sizes_that_fit());
  }

  /// Values of all tl.constexpr parameters. False: one has none; `why` says which.
  bool fill(const Configuration& one, FusedConfig& config, std::string& why) {
    Names names = pairing_.sizes;
    const auto take = [&](const std::string& name, const std::string& value) {
      config.values[name] = value;
      if (const auto number = number_in(value)) names[name] = *number;
    };
    for (const auto& [name, value] : one.constants)
      if (kernel_.parameter(name) != nullptr) take(name, value);
    for (const auto& [name, value] : request_.constants)
      if (kernel_.parameter(name) != nullptr &&
          kernel_.parameter(name)->use == KernelParameter::Use::constant)
        take(name, value);
    std::vector<const KernelParameter*> open;
    for (const KernelParameter& one_parameter : kernel_.parameters) {
      if (one_parameter.use != KernelParameter::Use::constant ||
          config.values.contains(one_parameter.name) || one_parameter.name == made_.workers)
        continue;
      const std::string& name = one_parameter.name;
      const auto size = pairing_.sizes.find(name);
      if (size != pairing_.sizes.end())
        take(name, std::to_string(size->second));
      else if (const std::string block = inferred(name); !block.empty())
        take(name, block);
      else
        open.push_back(&one_parameter);
    }
    for (const KernelParameter* left : open) {
      const auto rule = kernel_.tuning.heuristics.find(left->name);
      const std::optional<std::int64_t> value = rule == kernel_.tuning.heuristics.end()
                                                    ? std::nullopt
                                                    : Formula(rule->second).value(names);
      if (value)
        take(left->name, std::to_string(*value));
      else if (!left->default_value.empty())
        take(left->name, left->default_value);
      else
        throw Failure(
            fmt::format("parameter '{}' of kernel '{}' has no value", left->name, kernel_.kernel),
            left->span.where(), "--constexpr " + left->name + "=VALUE");
    }
    for (const auto& [name, value] : config.values) {
      const bool is_block = one.constants.contains(name) || one.constants.empty();
      if (is_block && !pairing_.sizes.contains(name))
        config.name += fmt::format("{}{}={}", config.name.empty() ? "" : ", ", name, value);
    }
    if (!config.warps.empty()) config.name += ", " + config.warps + " warps";
    if (!config.stages.empty()) config.name += ", " + config.stages + " stages";
    if (made_.loop.loop >= 0) {
      config.turn = number_in(made_.loop.step, names).value_or(0);
      if (config.turn < 1) {
        why = fmt::format("a turn of the loop has '{}' elements", made_.loop.step);
        return false;
      }
    }
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      const std::optional<std::int64_t> block = number_in(kernel_.axes[i].block, names);
      if (!block || *block < 1) {
        why = fmt::format("a tile has {} elements along {}",
                          block ? std::to_string(*block) : "'" + kernel_.axes[i].block + "'",
                          kernel_.axes[i].name);
        return false;
      }
      why = broken_turn(kernel_, i, *block, names);
      if (!why.empty()) return false;
      config.tiles.push_back(made_.axes[i].splits_reduction ? 1 : *block);
      if (made_.axes[i].splits_reduction && !split(i, *block, names, why)) return false;
    }
    config.compute_tiles = compute_tiles(config, names);
    return true;
  }

  std::vector<std::int64_t> compute_tiles(const FusedConfig& config, const Names& names) const {
    std::vector<std::int64_t> tiles(compute().axes.size(), 0);
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      if (made_.axes[i].compute >= 0)
        tiles[static_cast<std::size_t>(made_.axes[i].compute)] =
            made_.axes[i].splits_reduction ? number_in(kernel_.axes[i].block, names).value_or(0)
                                           : config.tiles[i];
    }
    for (const AccessDescription& access : kernel_.accesses) {
      for (const AxisIndex& index : access.axes) {
        for (const AxisIndex::LoopPart& part : index.loops) {
          const LoopDescription* loop = kernel_.loop(part.loop);
          const auto axis = loop == nullptr ? pairing_.compute_axis.end()
                                            : pairing_.compute_axis.find(loop->axis);
          if (axis == pairing_.compute_axis.end()) continue;
          std::int64_t& tile = tiles[static_cast<std::size_t>(axis->second)];
          if (tile == 0) tile = number_in(part.step, names).value_or(0);
        }
      }
    }
    return tiles;
  }

  /// How many parts the reduction has: the step of its loop over the elements of a tile.
  bool split(std::size_t axis, std::int64_t block, const Names& names, std::string& why) {
    for (const AccessDescription& access : kernel_.accesses) {
      for (const AxisIndex& index : access.axes) {
        const bool is_it = std::ranges::any_of(
            index.tiles, [&](const auto& part) { return part.axis == static_cast<int>(axis); });
        if (!is_it || index.loops.empty()) continue;
        const std::optional<std::int64_t> step = number_in(index.loops.front().step, names);
        if (!step || *step % block != 0) continue;
        const std::int64_t parts = *step / block;
        if (made_.axes[axis].extent != 1 && made_.axes[axis].extent != parts) {
          why = fmt::format("{} has {} parts, in other configurations {}", made_.axes[axis].name,
                            parts, made_.axes[axis].extent);
          return false;
        }
        made_.axes[axis].extent = parts;
        for (FusedRank& rank : made_.ranks)
          for (FusedWave& wave : rank.waves) wave.box.end[axis] = parts;
        return true;
      }
    }
    why = "in how many parts " + made_.axes[axis].name + " is split is not in the text";
    return false;
  }

  /// Whether all chunks are whole tiles.
  bool fits(const FusedConfig& config, std::string& why) const {
    if (const std::string mask = missing_mask(compute(), config); !mask.empty())
      refuse(mask, kernel_.definition, "--constexpr gives the kernel its mask");
    for (std::size_t i = 0; i < ends_.axes.size(); ++i) {
      if (made_.axes[i].splits_reduction) continue;
      for (const std::int64_t cut : ends_.axes[i]) {
        if (cut % config.tiles[i] == 0 || is_end(i, cut)) continue;
        why = fmt::format("tiles of {} elements along {} straddle chunks, one of which ends at {}",
                          config.tiles[i], made_.axes[i].name, cut);
        return false;
      }
    }
    for (const std::int64_t end : ends_.loop) {
      if (made_.loop.loop < 0 || end % config.turn == 0 || end == made_.loop.extent) continue;
      why = fmt::format(
          "turns of {} elements of the loop over {} straddle chunks, one of which ends "
          "at {}",
          config.turn, kernel_.loop(made_.loop.loop)->axis, end);
      return false;
    }
    return true;
  }

  std::string sizes_that_fit() const {
    std::vector<std::string> fitting;
    for (std::size_t i = 0; i < ends_.axes.size(); ++i) {
      std::int64_t common = 0;
      for (const std::int64_t cut : ends_.axes[i])
        if (!is_end(i, cut)) common = std::gcd(common, cut);
      if (common == 0) continue;
      std::vector<std::int64_t> sizes;
      for (std::int64_t size = 16; size <= std::min<std::int64_t>(common, 512); size *= 2)
        if (common % size == 0) sizes.push_back(size);
      fitting.push_back(fmt::format("{}: {}", kernel_.axes[i].block,
                                    sizes.empty() ? fmt::format("divisors of {}", common)
                                                  : fmt::format("{}", fmt::join(sizes, ", "))));
    }
    return fitting.empty() ? ""
                           : "blocks that fit are " + fmt::format("{}", fmt::join(fitting, "; "));
  }

  void arguments() {
    for (const auto& [name, value] : made_.configs.front().values)
      if (pairing_.sizes.contains(name) && !request_.constants.contains(name))
        made_.config_sizes.push_back(name);
    for (const KernelParameter& one : kernel_.parameters) {
      const auto is_in = [&](const auto& list) {
        return std::ranges::any_of(
            list, [&](const auto& tensor) { return tensor.parameter == one.name; });
      };
      if (is_in(made_.operands) || one.use == KernelParameter::Use::constant ||
          one.name == made_.workers)
        continue;
      const auto given = request_.constants.find(one.name);
      const auto size = pairing_.sizes.find(one.name);
      if (given != request_.constants.end())
        made_.arguments.push_back({one.name, given->second});
      else if (size != pairing_.sizes.end())
        made_.arguments.push_back({one.name, std::to_string(size->second)});
      else if (one.default_value.empty() && !is_in(made_.extras))
        refuse(fmt::format("parameter '{}' of kernel '{}' has no value", one.name, kernel_.kernel),
               one.span, "--constexpr " + one.name + "=VALUE");
    }
  }

  const Description& kernel_;
  const Grids& grids_;
  const plan::Plan& plan_;
  const FuseRequest& request_;
  Fusion made_;
  Pairing pairing_;
  ChunkEnds ends_;
};

}  // namespace

bool Fusion::waits() const {
  return others_wait || std::ranges::any_of(ranks, [](const FusedRank& rank) {
           return std::ranges::any_of(rank.waves,
                                      [](const FusedWave& wave) { return !wave.needs.empty(); });
         });
}
bool Fusion::waits_in_loop() const {
  return loop.loop >= 0;
}
bool Fusion::signals() const {
  return others_signal ||
         std::ranges::any_of(ranks, [](const FusedRank& rank) { return !rank.parts.empty(); });
}

Fusions fuse(const Description& kernel, const Grids& grids, const FuseRequest& request) {
  for (std::int32_t grid = 0; grid < grids.count(); ++grid)
    Fuser(kernel, grids, request).check(grid);
  const auto all = [&](bool keeps_loop) {
    Fusions made;
    for (std::int32_t grid = 0; grid < grids.count(); ++grid)
      made.push_back(Fuser(kernel, grids, request).fuse(grid, keeps_loop));
    return made;
  };
  Fusions made = all(false);
  const auto waits_in_loop = [](const Fusion& one) { return one.waits_in_loop(); };
  const bool any = std::ranges::any_of(made, waits_in_loop);
  if (any && !std::ranges::all_of(made, waits_in_loop)) made = all(true);
  share_text(made);
  number_parts(made, grids.plan.ranks);
  prove_progress(grids.plan, made, request.plan_file);
  return made;
}

}  // namespace hemiola::compile
