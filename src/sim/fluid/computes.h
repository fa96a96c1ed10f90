// Computes of the fluid engine: on the matrix units of a device, steps of products whose operands
// are loaded ahead, and tiles, whose steps are one flow.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/fluid/tile_reuse.h"
#include "sim/fluid/traffic.h"
#include "sim/model/power_budget.h"

namespace hemiola::sim::fluid {

/// Matrix units of devices, by class of ranks, and their power.
class MatrixUnits {
 public:
  explicit MatrixUnits(Run& run);

  /// The unit of its CU takes what comes in its order; when it is through with it.
  std::int64_t use(const Walker& walker, std::int64_t time, std::int64_t now);
  /// Steps whose operands a workgroup has a place for.
  std::int64_t stages(const Walker& walker) const;
  /// When the power limit lets a step through that takes `time`.
  std::int64_t step_through(const Walker& walker, std::int64_t time, std::int64_t sustained,
                            std::int64_t now);
  /// The same of a tile that begins and would take `time`. Until tile_over() it goes on.
  std::int64_t tile_through(Walker& walker, std::int64_t time, std::int64_t sustained,
                            std::int64_t now);
  void tile_over(const Walker& walker, std::int64_t until);
  /// What tiles share of all units of a class of ranks: fs per second.
  std::int32_t resource(std::int32_t rank) const { return devices_[index(rank)].resource; }

 private:
  struct Device {
    std::vector<std::int64_t> free;  ///< by CU
    PowerBudget power;
    std::int64_t tiles = 0;  ///< of products, under way
    std::int32_t resource = 0;
  };
  const Run& run_;
  std::vector<Device> devices_;  ///< by class of ranks
};

/// Computes, one step after the other.
class Computes {
 public:
  Computes(Run& run, Traffic& traffic, MatrixUnits& units);

  /// True if the agent goes on; else it is called again, or computed() says so.
  bool compute(std::int32_t agent);
  void post_operand(std::int32_t agent);
  void operand_loaded(std::int32_t agent, std::int32_t step, const Attribution& spent,
                      std::int64_t now);
  /// The oldest step is over: whether its agent goes on, which waited for that.
  bool computed(std::int32_t agent, std::int64_t now);
  /// Whether steps of an agent are under way.
  bool busy(std::int32_t agent) const { return !products_[index(agent)].steps.empty(); }

 private:
  struct Step {
    std::int64_t time = 0, sustained = 0;
    Moment ready;  ///< its operands are there, and it is posted; then: it is computed
    std::int32_t flows = 0;
    bool posted = false, started = false;
  };
  struct Product {
    std::deque<Step> steps;
    std::int32_t first = 0;  ///< number of the first of them
    Step& open();            ///< the one that operands are posted for
  };
  void start(std::int32_t agent, std::int64_t now);

  Run& run_;
  Traffic& traffic_;
  MatrixUnits& units_;
  std::vector<Product> products_;  ///< by agent
};

/// Tiles: all steps are one flow of operands, which its compute unit lets through no faster than it
/// computes (docs/fluid.md, "Tiles").
class Tiles {
 public:
  Tiles(Run& run, const Streams& streams, Traffic& traffic, MatrixUnits& units);

  /// True if the agent goes on; else it is called again.
  bool tile(std::int32_t agent);
  /// Its operands have come.
  void loaded(Walker& walker, std::int64_t now);

 private:
  bool begin_tile(std::int32_t agent);
  void end_run(Walker& walker) const;
  Moved moved_by(const Walker& walker) const;
  LoadLatency demands_of(const Walker& walker, const Moved& moved);

  Run& run_;
  const Streams& streams_;
  Traffic& traffic_;
  MatrixUnits& units_;
  TileReuse reuse_;
};

}  // namespace hemiola::sim::fluid
