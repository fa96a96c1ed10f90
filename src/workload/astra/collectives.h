// Collectives of the ASTRA-sim model as they run: chunks that wait for a dimension, and the
// messages of those that have it.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "workload/astra/calendar.h"
#include "workload/astra/configuration.h"
#include "workload/astra/fabric.h"
#include "workload/astra/plan.h"
#include "workload/workload.h"

namespace hemiola::workload::astra {

/// Where a rank is among the groups of a family.
struct Place {
  std::uint32_t group = 0, member = 0;
};

/// Who waits for whom in a collective that is not over.
struct Unfinished {
  const std::vector<int>* group = nullptr;
  std::vector<int> absent;  ///< that have not begun it
};

class Collectives {
 public:
  class Listener {
   public:
    virtual ~Listener() = default;
    /// It may start other collectives.
    virtual void over(std::uint32_t rank, std::uint32_t node) = 0;
  };

  Collectives(const Workload& workload, const AstraConfiguration& configuration, bool folded,
              Calendar& calendar, Fabric& fabric, Listener& listener);

  /// The rank begins its next call of this kind. Failure as make_plan().
  void start(std::uint32_t rank, std::uint32_t node, std::int32_t call);

  // Events.
  void message(std::uint32_t instance, std::uint64_t detail);
  void received(std::uint32_t stream) { on_message(stream); }
  void at_endpoint(std::uint32_t stream, std::uint64_t detail);
  void reduced(std::uint32_t stream) { on_prepared(stream); }

  /// Of the rank's last call of this kind.
  Unfinished unfinished(std::uint32_t rank, std::int32_t call) const;
  Place place_of(std::int32_t family, std::uint32_t rank) const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  /// Of trees.
  enum class Step : std::uint8_t {
    begin,
    two_children,
    one_child,
    to_parent,
    from_parent,
    down,
    end
  };

  /// A chunk at a rank.
  struct Stream {
    std::uint32_t instance = 0, rank = 0, member = 0, chunk = 0;
    std::int64_t priority = 0;
    const std::vector<Pass>* passes = nullptr;
    std::int32_t pass = -1;
    bool started = false;
    Step step = Step::begin;
    bool reduced_once = false;                          ///< of trees
    std::int32_t place = 0;                             ///< in the pass
    std::int64_t prepared = 0, sent = 0, received = 0;  ///< messages
    std::int64_t free = 0;                              ///< prepared, beyond those sent
  };
  /// Calls of one kind by one group.
  struct Calls {
    std::vector<std::uint32_t> begun;      ///< by member
    std::vector<std::uint32_t> instances;  ///< from the `first`-th call on
    std::uint32_t first = 0;
  };
  /// A collective of one group.
  struct Instance {
    std::shared_ptr<const Plan> plan;
    Calls* calls = nullptr;  ///< it is one of
    const std::vector<int>* group = nullptr;
    bool whole = false;                      ///< of all ranks: members are ranks
    std::uint32_t members = 0;               ///< that are simulated
    std::vector<std::uint32_t> streams;      ///< by chunk and member; kNone: not begun, or over
    std::vector<std::int32_t> expected;      ///< by stream, pass and source: awaited less arrived
    std::vector<std::int32_t> first_source;  ///< of a pass, among those of a stream
    std::int32_t sources = 0;                ///< of a stream
    std::vector<std::uint32_t> nodes;        ///< by member
    std::vector<std::int64_t> chunks_left;   ///< by member
    std::int64_t streams_left = 0;
  };
  /// What a rank has for one dimension: the chunks that have it, then those that wait.
  struct Queue {
    std::vector<std::uint32_t> streams;
    std::int64_t running = 0;
  };

  std::uint32_t join(std::int32_t call, const Place& place);
  std::uint32_t make_instance(Calls& calls, std::int32_t call, std::uint32_t group);
  void add_stream(std::uint32_t instance, std::uint32_t rank, std::uint32_t member,
                  std::uint32_t chunk, std::int64_t priority, const std::vector<Pass>& passes);
  std::int64_t next_priority(std::uint32_t rank);
  Queue& queue_of(std::uint32_t rank, std::int32_t dimension) {
    return queues_[rank * dimensions_ + index(dimension)];
  }
  const Pass& pass_of(const Stream& stream) const { return (*stream.passes)[index(stream.pass)]; }
  void advance(std::uint32_t stream);
  void finish(std::uint32_t stream);
  void insert(Queue& queue, std::uint32_t stream);
  void start_waiting(std::uint32_t rank, std::int32_t dimension);

  // What a chunk does in a pass.
  void begin_pass(std::uint32_t stream);
  void on_message(std::uint32_t stream);
  void on_prepared(std::uint32_t stream);
  void prepare(std::uint32_t stream);
  bool send_next(std::uint32_t stream);
  void end_if_over(std::uint32_t stream);
  void to_endpoint(std::uint32_t stream, std::int64_t bytes, bool reduce);

  void begin_tree(std::uint32_t stream);
  void on_tree_message(std::uint32_t stream);
  void on_tree_prepared(std::uint32_t stream);
  void send_to_children(std::uint32_t stream);

  void send(std::uint32_t stream, std::int32_t place, std::int64_t bytes, std::int32_t source);
  void await(std::uint32_t stream, std::int32_t source);

  const Workload& workload_;
  const AstraConfiguration& configuration_;
  bool folded_;
  Calendar& calendar_;
  Fabric& fabric_;
  Listener& listener_;
  std::size_t dimensions_;
  mutable std::vector<std::unordered_map<int, Place>> places_;  ///< by family and rank, when asked
  std::map<std::pair<std::int32_t, std::size_t>, std::shared_ptr<const Plan>> plans_;
  std::map<std::pair<std::int32_t, std::uint32_t>, Calls> calls_;  ///< by call and group
  Pool<Instance> instances_;
  Pool<Stream> streams_;
  std::vector<Queue> queues_;                             ///< by rank and dimension
  std::vector<std::int64_t> priorities_;                  ///< by rank: of the next collective
  std::vector<std::array<std::int64_t, 4>> chunks_done_;  ///< by rank and kind: trees take turns
};

}  // namespace hemiola::workload::astra
