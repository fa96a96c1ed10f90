// A kernel and a plan as one: which operand is which tensor, what every parameter of the kernel is,
// which tiles wait for which transfers, and which transfers wait for which tiles. Nothing here is
// text of Python yet: fused_kernel.h edits the kernel, torch.h writes the file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/describe/describe.h"
#include "compile/fuse/grids.h"
#include "compile/fuse/tasks.h"
#include "compile/python/formula.h"
#include "plan/area.h"
#include "plan/plan.h"

namespace hemiola::compile {

/// An axis along which the kernel's programs divide the work.
struct FusedAxis {
  std::string name;           ///< of the kernel: "M"
  std::int32_t compute = -1;  ///< axis of the plan's compute; -1: the plan has none (one element)
  std::int64_t extent = 1;    ///< elements; of split-K: parts
  bool splits_reduction = false;
  int grid = 0;             ///< axis of the kernel's own grid that its tiles lie along
  bool is_derived = false;  ///< the others tell where a tile lies along it: the group of a head
};

/// An operand of the kernel that is a tensor of the plan.
struct FusedOperand {
  std::string parameter;
  std::int32_t tensor = 0;     ///< of the plan
  std::int32_t operand = 0;    ///< of the plan's compute
  bool is_transposed = false;  ///< the kernel wants the last two axes of its memory the other way
  bool arrives = false;        ///< transfers write what tiles read of it
  bool leaves = false;         ///< transfers wait for what tiles write of it
  bool is_added_to = false;    ///< the kernel adds to what is there: it begins as zeros
  /// By axis of the tensor: whether a tile, or a turn of the fused loop, touches no more along it
  /// than its own elements. Where it does (a loop over rows that other tiles have, a neighbour's
  /// elements, an index that is loaded), it waits for all that arrives along the axis.
  std::vector<bool> follows{};
};

/// One way to call the kernel: values of its tl.constexpr parameters.
struct FusedConfig {
  std::string name;                           ///< "BLOCK_M=128, BLOCK_N=128, 4 warps"
  std::map<std::string, std::string> values;  ///< by parameter: Python
  std::string warps, stages;                  ///< empty: Triton's default
  std::vector<std::int64_t> tiles;            ///< elements of a tile, by fused axis
  /// Elements of a tile, of a turn of a loop, by axis of the plan's compute; 0: the text does not
  /// say.
  std::vector<std::int64_t> compute_tiles;
  std::int64_t turn = 0;  ///< elements of a turn of the fused loop

  /// Whether attention looks at keys up to a query's own only; nothing: no parameter says it.
  std::optional<bool> is_causal() const;
};

/// A loop of the kernel along which chunks arrive while it runs: keys and values of attention, the
/// depth of a product.
struct FusedLoop {
  int loop = -1;              ///< LoopDescription::id; -1: there is none
  std::int32_t compute = -1;  ///< axis of the plan's compute
  std::int64_t extent = 0;    ///< elements
  std::string step;           ///< elements of a turn: Python, in the kernel's parameters
  bool reorders = false;      ///< turns come in the order of arrival, else in the kernel's own
};

/// Turns of the fused loop that wait for the same transfers.
struct FusedPiece {
  std::int64_t begin = 0, end = 0;  ///< elements
  std::vector<Point> needs;
  std::int64_t arrives = 0;
};

/// A parameter that has the same value in all calls and configurations.
struct FusedArgument {
  std::string parameter;
  std::string value;  ///< Python
  /// What it is of any plan, as a tuple of Python: ("extent", "m") of an axis of the compute,
  /// ("shape", "a", 0), ("stride", "a", 0), ("turned", "a", 0), ("span", "a", 0) of a tensor; None:
  /// it was solved from strides. Empty: the plan does not say it.
  std::string meaning{};
};

/// Tiles that wait for the same transfers and that the same transfers wait for.
struct FusedWave {
  plan::Rect box;              ///< elements, by fused axis
  std::vector<Point> needs;    ///< of each stream of transfers the last that the tiles need
  std::int32_t part = -1;      ///< of FusedRank::parts; -1: nobody waits for these tiles
  std::int64_t arrives = 0;    ///< step (plan/waves.h) at which all needs are there
  std::int64_t is_wanted = 0;  ///< step at which the first transfer could take them
  std::int32_t launch = 0;     ///< of the grid: its tiles come after those of earlier ones
  std::int32_t place = 0;      ///< of its box among those of all launches, in their order
  std::int32_t apart = -1;     ///< of Grids::apart: what its tiles make is all in there
};

/// Tiles that are complete together for somebody.
struct FusedPart {
  std::vector<int> told;  ///< ranks that wait for it, the own one first, then from it on
};

struct FusedRank {
  std::vector<FusedWave> waves;    ///< in the order in which the kernel takes them
  std::vector<FusedPiece> pieces;  ///< of the fused loop, likewise
  std::vector<FusedPart> parts;
  std::vector<Point> in_front{};  ///< transfers that the launch waits for (wait_in_front())
  std::int32_t first_part = 0;    ///< parts of the grids before have the numbers below
};

/// A tensor of the kernel that the plan does not have.
struct FusedExtra {
  std::string parameter;
  std::string name;  ///< in the file, beside the plan's tensors
  bool is_read = false, is_written = false;
  /// Dense; empty: the text does not say it, and the caller gives the tensor with each call.
  std::vector<std::int64_t> shape{};
  std::vector<std::int32_t> axes{};  ///< by axis of it the compute's that it follows; -1: none
  /// Added to a summand of all ranks: what the first rank has is, others have zeros.
  bool is_added_once = false;
};

/// A grid of the kernel: one launch of it on every rank.
struct Fusion {
  const Description* kernel = nullptr;
  std::int32_t compute = 0;  ///< of every rank's code in Grids::plan: the grid's number
  std::vector<FusedAxis> axes;
  FusedLoop loop;
  std::vector<FusedOperand> operands;
  std::vector<FusedArgument> arguments;
  std::map<std::string, std::string> config_meanings;  ///< of sizes that configurations have
  std::vector<FusedExtra> extras;
  std::vector<FusedConfig> configs;
  std::vector<std::string> dropped;  ///< configurations that do not fit, each with the reason
  std::string stores;                ///< operand whose tiles go to peers; empty: none do
  std::string workers;  ///< of a persistent kernel: the parameter that says how many there are
  std::vector<FusedRank> ranks;
  std::map<Point, std::vector<PartWait>> part_waits;  ///< by transfer
  bool others_wait = false, others_signal = false;    ///< grids with the same text do

  bool waits() const;  ///< any tile for any transfer, before its loop
  bool waits_in_loop() const;
  bool signals() const;  ///< any transfer for any tile
};
using Fusions = std::vector<Fusion>;

struct FuseRequest {
  std::string plan_file;  ///< what messages about the plan begin with
  ParameterValues constants;
  /// In place of those of the kernel's autotuner; empty: those.
  std::vector<Configuration> configurations{};
};

/// `kernel` is understood. Failure with the place in the kernel or at `plan_file` where they do not
/// fit together: tensors that the kernel does not touch, axes that cannot be paired, parameters
/// without a value, tiles that straddle chunks (with the sizes that fit). One for each grid.
Fusions fuse(const Description& kernel, const Grids& grids, const FuseRequest& request);

/// The shape of the dense tensor that has a tensor's elements first along each axis: rows as long
/// as its own, or longer. Nothing: strides that no such tensor has.
std::optional<std::vector<std::int64_t>> room_of(const plan::Tensor& tensor);
/// Whether it has such rows, and they are longer.
bool has_longer_rows(const plan::Tensor& tensor);

/// `grids` with rows of tensors as long as the kernel takes them for, where it has one parameter
/// for the rows of several: queries of a rank in rows of all keys. Failure: as fuse().
Grids with_room(Grids grids, const Description& kernel, const FuseRequest& request);

/// Of several grids: one text, with configurations that fit all (fusion_grids.cc). Failure: there
/// is none, or axes lie along the kernel's grid in different ways.
void share_text(Fusions& fusions);
/// Numbers for parts of all grids of a rank together.
void number_parts(Fusions& fusions, int ranks);

/// Where chunks end.
struct ChunkEnds {
  std::vector<std::vector<std::int64_t>> axes;  ///< by fused axis
  std::vector<std::int64_t> loop;               ///< along the fused loop
};
/// Which tiles of every rank wait for what, and who waits for them (fuse/waves.cc). A loop along
/// which chunks do not arrive one by one, for all tiles alike, is none of the fusion any more,
/// unless `keeps_loop`: then all of it is a piece.
ChunkEnds find_waves(const Grids& grids, Fusion& fusion, bool keeps_loop);

/// Chooses `grid` of axes whose coordinate comes from several program ids, and which axes are
/// derived from others: the first way, with as few of these as can be, in which every tile is taken
/// once. Along derived axes nothing is cut.
void choose_space(Fusion& fusion);

/// That programs take every tile of every wave exactly once in each configuration: the order of
/// the kernel followed with numbers (fuse/order.cc). Failure with the wave and the tile.
void prove_order(const Fusion& fusion);

/// That no tile waits for what later tiles of its kernel, or of kernels behind it, are needed for,
/// however few programs take them (fuse/progress.cc). Failure (exit code 4) with the rank and the
/// wave.
void prove_progress(const plan::Plan& plan, const Fusions& fusions, const std::string& plan_file);

/// Programs that wait may hold all compute units. So what needs some (a copy within a GPU, a sum, a
/// library's collective) and is needed for tiles anywhere, is done before its own rank's kernel
/// begins: the launch waits for it, and tiles no more. movers: copies and sums have workgroups of
/// their own, which kernels leave room for. Failure (exit code 4): it waits for tiles of that
/// kernel.
void wait_in_front(const plan::Plan& plan, Fusions& fusions, bool movers,
                   const std::string& plan_file);

}  // namespace hemiola::compile
