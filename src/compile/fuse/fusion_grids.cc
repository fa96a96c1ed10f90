// Grids that are launches of one text: what the text does for any of them it does for all.
#include <fmt/format.h>

#include <algorithm>

#include "compile/fuse/fusion.h"

namespace hemiola::compile {
namespace {

/// Axes that lie along the grid in the same way, or are found from others, and configurations that
/// fit the chunks of all.
void check_grids(const Fusions& fusions) {
  const Fusion& first = fusions.front();
  for (const Fusion& one : fusions) {
    for (std::size_t i = 0; i < one.axes.size(); ++i) {
      if (one.axes[i].grid == first.axes[i].grid &&
          one.axes[i].is_derived == first.axes[i].is_derived)
        continue;
      throw Failure(fmt::format("axis {} of kernel '{}' lies along its grid in other ways for one "
                                "compute of the plan than for another",
                                one.axes[i].name, one.kernel->kernel),
                    one.kernel->definition.where());
    }
  }
}

/// Configurations that fit all grids: those of one text are asked for by their number.
void keep_common_configurations(Fusions& fusions) {
  const auto is_everywhere = [&](const FusedConfig& config) {
    return std::ranges::all_of(fusions, [&](const Fusion& one) {
      return std::ranges::any_of(one.configs, [&](const FusedConfig& other) {
        return other.name == config.name && other.warps == config.warps &&
               other.stages == config.stages;
      });
    });
  };
  std::vector<std::vector<bool>> keep;
  for (const Fusion& one : fusions) {
    std::vector<bool>& of_one = keep.emplace_back();
    for (const FusedConfig& config : one.configs) of_one.push_back(is_everywhere(config));
  }
  for (std::size_t i = 0; i < fusions.size(); ++i) {
    std::vector<FusedConfig> kept;
    for (std::size_t j = 0; j < keep[i].size(); ++j) {
      if (keep[i][j])
        kept.push_back(fusions[i].configs[j]);
      else
        fusions.front().dropped.push_back(fusions[i].configs[j].name +
                                          ": does not fit the chunks of all launches");
    }
    fusions[i].configs = std::move(kept);
  }
  if (!fusions.front().configs.empty()) return;
  throw Failure(fmt::format("no configuration of kernel '{}' fits the chunks of all launches: {}",
                            fusions.front().kernel->kernel, fusions.front().dropped.front()),
                fusions.front().kernel->definition.where(),
                "--constexpr NAME=VALUE gives all launches the same blocks");
}

}  // namespace

void share_text(Fusions& fusions) {
  if (fusions.size() == 1) return;
  check_grids(fusions);
  keep_common_configurations(fusions);
  bool waits = false, signals = false;
  for (const Fusion& one : fusions) {
    waits = waits || one.waits();
    signals = signals || one.signals();
  }
  for (Fusion& one : fusions) {
    one.others_wait = waits;
    one.others_signal = signals;
    for (FusedOperand& operand : one.operands) {
      for (const Fusion& other : fusions) {
        for (const FusedOperand& same : other.operands) {
          if (same.parameter != operand.parameter) continue;
          operand.arrives |= same.arrives;
          operand.leaves |= same.leaves;
        }
      }
    }
  }
}

void number_parts(Fusions& fusions, int ranks) {
  std::vector<std::int32_t> next(static_cast<std::size_t>(ranks), 0);
  for (Fusion& one : fusions) {
    for (std::size_t rank = 0; rank < next.size(); ++rank) one.ranks[rank].first_part = next[rank];
    for (auto& [transfer, parts] : one.part_waits)
      for (PartWait& part : parts) part.part += next[static_cast<std::size_t>(part.rank)];
    for (std::size_t rank = 0; rank < next.size(); ++rank)
      next[rank] += static_cast<std::int32_t>(one.ranks[rank].parts.size());
  }
}

}  // namespace hemiola::compile
