// The space of schedules: which templates, in how many steps, moved by what hardware.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "explore/space/operator.h"
#include "hemiola/parts/schedule_rule.h"
#include "machine/machine.h"
#include "study/laboratory/settings.h"

namespace hemiola::explore {

/// A tile of a product's kernel, in elements.
using Tile = machine::MatrixTile;

/// One point of the space.
/// Workgroups that add up what copy engines brought beside a persistent kernel.
constexpr int kBesideEngines = 16;
/// Workgroups that let a switch add up and send what a persistent kernel makes.
constexpr int kBesideSwitch = 16;

struct Schedule {
  Family family;
  std::int64_t degree = 1;  ///< steps
  bool copies = false;      ///< products work on copies that lie beside each other
  bool pulls = false;       ///< receivers load; else senders store, or their engines copy
  std::string realization = "load-store";
  int workgroups = 0;        ///< that communicate, per rank; 0: copy engines
  bool prelaunch = false;    ///< commands of copy engines are in their queues before
  std::int64_t streams = 1;  ///< of unfused products
  Tile tile{}, own_tile{};   ///< of the products, of that of the own block
  /// Ranks of a group (a node): a block goes to one rank of every other group, which spreads it
  /// among its own. 0: it goes to every rank by itself.
  std::int64_t inner = 0;
  study::Settings more;  ///< what else its template takes: "split", "4"

  bool operator==(const Schedule&) const = default;
  /// "1D hetero fused, 8 steps, in place, push by copy engines, tiles 256x128"
  std::string text() const;
};

/// What one rank has of every other: the sizes of the product of one block, as the templates cut
/// them, and what of it one rank sends to one other.
struct Blocks {
  std::int64_t rows = 0, columns = 0, depth = 0;
  Bytes bytes{};
};
Blocks blocks_of(const Operator& op);

/// Transfers that follow each other, each with its product: shards go to one peer after the other.
std::int64_t steps_of(const Operator& op, const Schedule& schedule);

/// The program that a schedule is (not of serial).
std::string template_of(const Operator& op, const Schedule& schedule);
/// All its parameters, sizes and lowering included.
study::Settings parameters_of(const Operator& op, const Schedule& schedule,
                              const machine::Machine& machine);

/// Words of SpaceLimits. All realizations but bulk are tried where nothing is said.
inline const std::vector<std::string> kRealizations{"load-store", "bulk", "copy-engine",
                                                    "multicast"};
inline const std::vector<std::string> kPlaces{"own", "co-located"};
inline const std::vector<std::string> kTransfers{"push", "pull"};
/// How copy engines get their commands: a host's when it is time, or long before.
inline const std::vector<std::string> kCopies{"in-time", "prelaunched"};

/// What is tried; empty lists: all that the machine has.
struct SpaceLimits {
  std::vector<std::int64_t> degrees{2, 4, 8, 16};
  std::vector<std::string> realizations;  ///< out of kRealizations
  std::vector<std::string> places;        ///< out of kPlaces
  std::vector<std::string> transfers;     ///< out of kTransfers
  std::vector<std::string> copies{};      ///< out of kCopies
};

/// Ranks of a node, where there are several nodes of as many each: they reach each other by loads
/// and stores, and others over a network. Else 0.
std::int64_t ranks_of_node(const machine::Machine& machine);
/// Whether all GPUs have copy engines; where not, no schedule by default asks for them.
bool has_copy_engines(const machine::Machine& machine);
/// Whether a switch adds up what all GPUs have, and sends to all of them.
bool multicasts_to_all(const machine::Machine& machine);

/// Every schedule but serial, in a fixed order. Degrees that do not divide what they should are
/// left out. Failure at --realization for what the machine does not have, and where nothing is
/// left.
std::vector<Schedule> space_of(const Operator& op, const machine::Machine& machine,
                               const SpaceLimits& limits);

/// The two best tiles of a product by the device's model of products, the best first: the second
/// gets a chance where the first one's waves do not suit those beside it. `rows` of the shape lie
/// together: no tile goes beyond them.
std::vector<Tile> best_tiles(const machine::GpuModel& model, const machine::GemmShape& shape,
                             std::int64_t rows);

/// A product that a schedule launches, so often.
struct Launch {
  machine::GemmShape shape;  ///< rows of all blocks together, padded to whole tiles of each
  Tile tile{};
  std::int64_t count = 1;
  bool own = false;  ///< of the own block alone: needs no data of others
};

/// The products of a schedule on one rank, those of the own block first.
std::vector<Launch> launches_of(const Operator& op, const Schedule& schedule);

}  // namespace hemiola::explore
