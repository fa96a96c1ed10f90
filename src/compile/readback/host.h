// What the host's part of a fused file asks hemiola_rt for, rank by rank: memory, streams with what
// they are given, signals, and the tables of its kernels. Private to readback/.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compile/readback/walk.h"
#include "core/data_type.h"

namespace hemiola::compile::readback {

/// A file for more is refused.
constexpr std::int64_t kMostRanks = 1024;

struct Tensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< as it is allocated: dense, the last axis fastest
  DataType type = DataType::float32;
  bool is_symmetric = false;
  bool operator==(const Tensor&) const = default;
};

/// Elements of a rank's tensor: offset + all sums of (count, stride).
struct Region {
  std::int32_t tensor = 0;
  int rank = 0;
  std::int64_t offset = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;
  std::int32_t store = -1;  ///< of a tile's output: WorkObject::stores that it goes to instead
  std::int64_t elements() const;
};

/// A tensor of the host, or a view of it.
struct View : Object {
  Region region;
};

struct Namespace : Object {
  std::map<std::string, Value, std::less<>> names;
};

struct SignalsObject : Object {
  std::int64_t first = 0, steps = 1;
  std::vector<std::int64_t> shape;
};

struct SignalObject : Object {
  std::int64_t slot = 0, steps = 1;
};

struct StreamObject : Object {
  std::int32_t stream = 0;
};

struct EventObject : Object {
  std::int32_t event = 0;
};

struct GroupObject : Object {
  std::vector<int> ranks;
};

struct AxisObject : Object {
  Value block;
  std::string size;  ///< empty: no parameter
  std::int64_t grid = 0;
};

/// hemiola_rt.Kernel
struct KernelObject : Object {
  const Function* function = nullptr;
  Value coordinates;
  std::vector<std::pair<std::string, std::shared_ptr<AxisObject>>> tiles;
  std::string workers, tile, stores;  ///< empty: none
  Value descriptors;
  std::vector<std::string> turned;  ///< operands that lie transposed
};

/// A call of a signal's step that tiles wait for.
struct Need {
  std::int64_t slot = 0, steps = 1, step = 0;
  auto operator<=>(const Need&) const = default;
};

struct WorkObject;

/// What a stream is given.
struct HostOp {
  enum class Kind : std::uint8_t {
    copy,         ///< regions: target, source
    reduce,       ///< regions: target, sources
    to_all,       ///< regions: target, which stands for that of all of `group`; source
    sum_of_all,   ///< regions: target; source, likewise
    zero,         ///< regions: target
    collective,   ///< regions: target, source; of `group`
    signal,       ///< `slot`, `step`, to rank `to`
    wait_signal,  ///< `slot`, `step`
    launch,       ///< `work` with `tensors`
    record,       ///< a place that others wait for: `event`
    wait,         ///< for `event`
    barrier       ///< among all ranks; the `event`-th of a call
  } kind = Kind::copy;
  std::vector<Region> regions{};
  std::int64_t slot = 0, step = 0;
  int to = 0;
  std::string name{};
  std::vector<int> group{};
  std::shared_ptr<WorkObject> work{};
  std::vector<std::pair<std::string, Value>> tensors{};
  std::int32_t event = 0;
  const Node* node = nullptr;
};

/// hemiola_rt.Work: what one rank's kernel is told.
struct WorkObject : Object {
  struct Wave {
    std::map<std::string, std::pair<std::int64_t, std::int64_t>> box;
    std::vector<Need> after;
    std::int64_t part = -1;
    const Node* node = nullptr;
    std::int32_t store = -1;  ///< of WorkObject::stores
  };
  struct Turns {
    std::int64_t first = 0, count = 0;
    std::vector<Need> after;
    const Node* node = nullptr;
  };
  /// What its programs move, each a share, before the tiles of wave `before`.
  struct Move {
    HostOp op;
    std::vector<Need> after;
    std::vector<std::int64_t> told;  ///< in fours: rank, signal, its steps, one more than the step
    std::int64_t before = 0;
  };
  static constexpr std::int64_t kMoveColumns = 13;
  /// Tiles that go into a peer's memory: there, and where the kernel takes them to be.
  struct Store {
    Region target, source;
    /// Of a part of the source.
    Region there(const Region& here) const {
      Region made = here;
      made.tensor = target.tensor;
      made.rank = target.rank;
      made.offset += target.offset - source.offset;
      made.store = -1;
      return made;
    }
  };
  std::shared_ptr<KernelObject> kernel;
  std::vector<std::pair<std::string, std::int64_t>> extents;  ///< in the order of Kernel::tiles
  std::vector<std::pair<std::string, Value>> values;          ///< parameters
  std::map<std::string, std::int64_t> options;                ///< num_warps, num_stages
  std::vector<Wave> waves;
  std::vector<Turns> turns;
  std::optional<std::pair<std::int64_t, std::int64_t>> loop;  ///< elements, and those of a turn
  std::map<std::int64_t, std::vector<std::int64_t>> parts;    ///< ranks that are told
  std::vector<Move> moves;
  std::vector<Store> stores;
  std::vector<Need> awaited;  ///< by the movement that comes next

  // Since ready(): the tables, and where the kernel's own programs lie.
  std::vector<std::int64_t> rows, turn_rows, needs, part_rows, tells;
  std::vector<std::int64_t> store_rows;               ///< by place; -1: own memory
  std::vector<std::int64_t> move_rows, told, before;  ///< of addresses there are none in the rows
  std::int64_t tiles = 0;
  std::array<std::int64_t, 3> grid{1, 1, 1};
  std::vector<std::vector<std::int64_t>> coordinates;  ///< by tile of the kernel, by axis
  std::vector<std::int64_t> blocks;                    ///< elements of a tile, by axis
};

/// Workgroups that copy and add up on a stream; 0: copy engines, and PyTorch.
struct Movers {
  std::int64_t workgroups = 0;
  bool bulk = false;
};

/// All that one rank asks for.
struct RankRecord {
  std::vector<Tensor> tensors;
  std::vector<std::vector<HostOp>> streams{1};  ///< the first one is the caller's
  std::vector<Movers> movers{1};                ///< by stream
  std::vector<std::string> slots;               ///< names of the signals
  std::vector<std::int64_t> steps;              ///< by slot
  std::vector<std::pair<std::string, Region>> inputs, outputs;
  std::int32_t events = 0, barriers = 0;
};

/// Compute units that a persistent kernel has beside those that move data; 1 at least.
std::int64_t processors_beside(const RankRecord& record, std::int64_t processors);

/// Follows setup(), inputs() and run() of the file for one rank. Failure: what is not read back.
RankRecord record_rank(Walker& walker, int rank, int ranks);

/// `signals[rank, part]`, and `tensor[begin:end, ...]`. Failure (a wrong program): there is none.
Value signal_of(const Walker& walker, const SignalsObject& signals, const std::vector<Index>& at,
                const Node& node);
Value view_of(const Walker& walker, const View& view, const std::vector<Index>& at,
              const Node& node);

/// What a kernel is given for a tensor that `pointer` points to: where it takes a descriptor of the
/// host, one of the tensor as it lies in memory (hemiola_rt.Work.described()). Failure: it cannot
/// be.
Value described(Walker& walker, const HostOp& launch, const View& view, const std::string& name,
                Value pointer);

/// "torch.half"; nothing: a type that is not read back.
std::optional<DataType> type_of(std::string_view name);
/// `count` numbers from `first` on around a ring of `size`, as (first, count) of one or two runs.
Value around(std::int64_t first, std::int64_t count, std::int64_t size);

/// (signal, step) of a list. Failure: it is none.
std::vector<Need> needs_in(const Walker& walker, const Value* after, const Node& node);
/// Two views, a peer's and of the own output: the number of their WorkObject::Store. Failure: they
/// lie differently.
std::int32_t store_of(const Walker& walker, WorkObject& work, const Value& to, int rank,
                      const Node& node);

/// Makes the tables of Work.ready(). Failure (a wrong program): waves are not whole tiles, or not
/// every tile once.
void make_tables(Walker& walker, Surroundings& host, WorkObject& work, int rank,
                 const SignalsObject* done, const Node& node);

}  // namespace hemiola::compile::readback
