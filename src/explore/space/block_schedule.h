// How a block may flow: the schedules of a chain, and what they take without losses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explore/space/block.h"
#include "explore/space/schedule.h"

namespace hemiola::explore {

/// Steps of rows, or of whole sequences, each of which goes through the block by itself.
struct BlockSchedule {
  std::int64_t degree = 1;
  /// The own rows go through the first product before those of others, and through the second one
  /// behind them: they fill the time in which the first step arrives and the last one leaves.
  bool hetero = false;
  bool gather_pulls = false, scatter_pulls = false;
  std::string realization = "load-store";
  int workgroups = 0;                             ///< that communicate, per rank; 0: copy engines
  Tile first{}, last{}, own_first{}, own_last{};  ///< of the products

  bool operator==(const BlockSchedule&) const = default;
  /// "hetero, 8 steps, push and push by copy engines, tiles 256x128, 128x128"
  std::string text() const;
};

/// Of template_of(): sizes and lowering included.
study::Settings parameters_of(const Block& block, const BlockSchedule& schedule);

/// Whether a block can go in so many steps.
bool divides(const Block& block, std::int64_t degree);

/// All of them, in a fixed order: degrees that divide, uniform and hetero, movers and directions,
/// the two best tiles of each product. Failure where nothing is left: --degrees where no degree
/// divides, else --realization.
std::vector<BlockSchedule> space_of(const Block& block, const machine::Machine& machine,
                                    const SpaceLimits& limits);

/// A chain without contention: nothing but data stands between transfers and products. Steps of
/// `group` go together where rows are mixed: what is in between waits for all of them. In any unit
/// of time.
struct ChainPipeline {
  std::int64_t groups = 1, group = 1;  ///< steps in all: groups x group
  double gather = 0, scatter = 0;      ///< of each step
  double first = 0, middle = 0, last = 0;
  double own_first = 0, own_last = 0;  ///< before all steps, behind all steps
  double time() const;
};

}  // namespace hemiola::explore
