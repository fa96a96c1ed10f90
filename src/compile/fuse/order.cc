// The order of a kernel's tiles followed with numbers: every tile once, in all and in each wave.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <set>

#include "compile/fuse/fusion.h"

namespace hemiola::compile {
namespace {

constexpr std::int64_t kMostTiles = 1 << 22;
constexpr std::size_t kMostDerived = 8;

class OrderProver {
 public:
  explicit OrderProver(const Fusion& fusion) : fusion_(fusion), kernel_(*fusion.kernel) {
    for (const TileAxis& axis : kernel_.axes) formulas_.emplace_back(axis.formula);
  }

  void prove() {
    for (std::size_t i = 0; i < kernel_.axes.size(); ++i) {
      if (formulas_[i].is_known() || fusion_.axes[i].is_derived) continue;
      throw Failure(
          fmt::format("the tiles of axis {} are numbered in a way that is not followed: {}",
                      kernel_.axes[i].name, kernel_.axes[i].formula),
          location(i));
    }
    for (const FusedConfig& config : fusion_.configs) {
      std::vector<std::int64_t> all;
      for (const FusedAxis& axis : fusion_.axes) all.push_back(axis.extent);
      follow(config, all, "all tiles");
      std::set<std::vector<std::int64_t>> done{all};
      for (const FusedRank& rank : fusion_.ranks) {
        for (const FusedWave& wave : rank.waves) {
          std::vector<std::int64_t> extents;
          for (std::size_t i = 0; i < fusion_.axes.size(); ++i)
            extents.push_back(wave.box.end[i] - wave.box.begin[i]);
          if (can_be_local(extents) && done.insert(extents).second)
            follow(config, extents, "the tiles of a chunk");
        }
      }
    }
  }

 private:
  [[noreturn]] void refuse_formula(std::size_t axis, const Names& names) const {
    std::vector<std::string> missing;
    for (const std::string& name : formulas_[axis].names())
      if (!names.contains(name)) missing.push_back(name);
    throw Failure(fmt::format("where tiles lie along {} cannot be computed{}{}: {}",
                              kernel_.axes[axis].name, missing.empty() ? "" : " without ",
                              fmt::join(missing, ", "), kernel_.axes[axis].formula),
                  location(axis), "--constexpr NAME=VALUE gives what is missing");
  }

  SourceLocation location(std::size_t axis) const {
    return kernel_.axes[axis].assigned.value_or(kernel_.definition).where();
  }

  /// Whether the kernel's own order can be had for so many elements: their number is a parameter.
  bool can_be_local(const std::vector<std::int64_t>& extents) const {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const std::string& size = kernel_.axes[i].size;
      const bool is_parameter = std::ranges::any_of(
          kernel_.parameters, [&](const KernelParameter& one) { return one.name == size; });
      if (extents[i] != fusion_.axes[i].extent && !is_parameter) return false;
    }
    return true;
  }

  void follow(const FusedConfig& config, const std::vector<std::int64_t>& extents,
              const std::string& what) const {
    Names names;
    for (const FusedArgument& argument : fusion_.arguments)
      if (const auto value = number_in(argument.value)) names[argument.parameter] = *value;
    for (const auto& [name, value] : config.values)
      if (const auto number = number_in(value)) names[name] = *number;
    std::vector<std::int64_t> tiles;
    std::int64_t grid[3] = {1, 1, 1};
    std::int64_t count = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
      const TileAxis& axis = kernel_.axes[i];
      if (names.contains(axis.size) && !axis.splits_reduction) names[axis.size] = extents[i];
      const bool is_derived = fusion_.axes[i].is_derived;
      tiles.push_back(is_derived ? 1 : (extents[i] + config.tiles[i] - 1) / config.tiles[i]);
      count *= tiles.back();
      grid[fusion_.axes[i].grid] *= tiles.back();
    }
    if (count > kMostTiles)
      throw Failure(fmt::format("the kernel has {} tiles, more than {}", count, kMostTiles), {},
                    "larger blocks: --constexpr " + kernel_.axes.front().block + "=...");
    for (int axis = 0; axis < 3; ++axis)
      names[fmt::format("tl.num_programs({})", axis)] = grid[axis];
    std::vector<std::int64_t> values;
    std::vector<char> seen(static_cast<std::size_t>(count), 0);
    for (std::int64_t id = 0; id < count; ++id) {
      names["tl.program_id(0)"] = id % grid[0];
      names["tl.program_id(1)"] = id / grid[0] % grid[1];
      names["tl.program_id(2)"] = id / grid[0] / grid[1];
      if (kernel_.scheduler.is_persistent) names[kernel_.dispatch.tile_id] = id;
      std::int64_t place = 0;
      for (std::size_t i = 0; i < tiles.size(); ++i) {
        if (fusion_.axes[i].is_derived) continue;
        const std::optional<std::int64_t> at = formulas_[i].value(names);
        if (!at) refuse_formula(i, names);
        if (*at < 0 || *at >= tiles[i])
          throw Failure(
              fmt::format("configuration '{}': of {} ({} of them) number {} would be tile "
                          "{} of axis {}, which has {}",
                          config.name, what, count, id, *at, kernel_.axes[i].name, tiles[i]),
              location(i));
        place = place * tiles[i] + *at;
      }
      char& is_seen = seen[static_cast<std::size_t>(place)];
      if (is_seen != 0)
        throw Failure(fmt::format("configuration '{}': of {} two are the same", config.name, what),
                      location(0));
      is_seen = 1;
    }
  }

  const Fusion& fusion_;
  const Description& kernel_;
  std::vector<Formula> formulas_;
};

/// Tries the ways in which axes lie along the grid.
bool choose_grid(Fusion& fusion) {
  std::vector<std::size_t> place(fusion.axes.size(), 0);
  const auto choices = [&](std::size_t axis) {
    const std::vector<int>& of = fusion.kernel->axes[axis].program_axes;
    const bool is_one = fusion.kernel->scheduler.is_persistent || fusion.axes[axis].is_derived;
    return is_one || of.empty() ? std::vector<int>{0} : of;
  };
  while (true) {
    for (std::size_t i = 0; i < place.size(); ++i) fusion.axes[i].grid = choices(i)[place[i]];
    try {
      prove_order(fusion);
      return true;
    } catch (const Failure&) {  // another way, if there is one
    }
    std::size_t next = 0;
    while (next < place.size() && ++place[next] == choices(next).size()) place[next++] = 0;
    if (next == place.size()) return false;
  }
}

bool is_cut(const Fusion& fusion, std::size_t axis) {
  return std::ranges::any_of(fusion.ranks, [&](const FusedRank& rank) {
    return std::ranges::any_of(rank.waves, [&](const FusedWave& wave) {
      return wave.box.end[axis] - wave.box.begin[axis] != fusion.axes[axis].extent;
    });
  });
}

}  // namespace

void choose_space(Fusion& fusion) {
  std::vector<std::size_t> free;  // axes that may be derived
  for (std::size_t i = 0; i < fusion.axes.size(); ++i)
    if (!is_cut(fusion, i) && !fusion.axes[i].splits_reduction) free.push_back(i);
  if (free.size() > kMostDerived) free.resize(kMostDerived);
  const auto derive = [&](std::size_t set) {
    for (FusedAxis& axis : fusion.axes) axis.is_derived = false;
    for (std::size_t i = 0; i < free.size(); ++i)
      fusion.axes[free[i]].is_derived = (set >> i & 1U) != 0;
  };
  for (std::size_t count = 0; count < free.size() + 1 && count < fusion.axes.size(); ++count) {
    for (std::size_t set = 0; set < std::size_t{1} << free.size(); ++set) {
      if (static_cast<std::size_t>(std::popcount(set)) != count) continue;
      derive(set);
      if (choose_grid(fusion)) return;
    }
  }
  derive(0);  // prove_order() says what is wrong
}

void prove_order(const Fusion& fusion) {
  OrderProver(fusion).prove();
}

}  // namespace hemiola::compile
