// The walk that finds the lower bounds of a program. Private to bound/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/semantics/primitive.h"
#include "sim/alike/classes.h"
#include "sim/alike/fold.h"
#include "sim/bound/lower_bound.h"
#include "sim/bound/parts.h"
#include "sim/bound/traffic.h"
#include "sim/result/options.h"
#include "sim/result/result.h"

namespace hemiola::sim {

/// Walks all workgroups once, each as two agents (the wavefront that synchronises, and the others),
/// and counts traffic and unloaded time.
class BoundWalk {
 public:
  /// The ranks of a fold, at whose addresses all find what is theirs. `alike`: so are the ways of
  /// those that they stand for; else the shortest counts.
  BoundWalk(const machine::Machine& machine, const program::Bound& program, const Options& options,
            const Addresses& addresses, int period, bool alike);
  /// The first of each class of workgroups and queues, which is dispatched before the others. Not
  /// of programs that say in their addresses who waits for what (packets).
  BoundWalk(const machine::Machine& machine, const program::Bound& program, const Options& options,
            const Addresses& addresses, const Classes& classes);
  LowerBound run();

 private:
  using Agent = WalkedAgent;
  std::int64_t start_of(int rank) const;

  // --- lower_bound.cc. Jobs: streams run item after item. (Those of a program alone are all taken
  // to begin at the start, which is a lower bound, too.)

  /// A stream of a rank of a job.
  struct Host {
    int rank = 0;
    const program::Stream* items = nullptr;
    std::size_t item = 0;
    std::int64_t start = 0, time = 0;
    std::size_t first = 0, last = 0;  ///< agents under way
    bool done = false;
  };
  void start_hosts();
  bool advance(Host& host);

  /// False: it has to wait.
  bool start(Host& host, const program::StreamItem& item);
  void add_rank(int rank);
  void add_classes();
  void add_queue(int rank, const program::StreamItem& item, std::int64_t start);
  void add_workgroup(int rank, const program::Kernel& kernel, std::size_t w, std::int32_t frame,
                     std::int64_t start);

  /// Of what stands for it: in a fold the semaphore of rank modulo period, or of its class.
  Signals& signals_of(program::SemaphoreId id);
  /// Of the workgroups for which an agent stands, those that use each semaphore of a class.
  std::int64_t users(const Agent& agent, program::SemaphoreId id) const;
  void arrive(const Agent& agent, program::SemaphoreId id, std::int64_t value, std::int64_t at);

  // Interprets primitives until one has to wait; true if any was done.
  bool advance(Agent& agent);
  // Tiles that differ in their place only take equally long once two of them have: then all but the
  // last are passed over.
  void pass_tiles(Agent& agent);
  // A descriptor is known to be done before the end if somebody waited for its signal, for that of
  // a later one of the same workgroup to the same rank (they are done in order), or flushed.
  void count_posts();

  // --- bound/walk.cc: primitives
  void overhead(Agent& agent, bool all);
  bool interpret(Agent& agent);
  bool join(Agent& agent);

  // Of the wavefront that posts.
  void interpret_post(Agent& agent);

  // Whether the wait can end, and when its last flag can have arrived.
  bool reached(const Agent& agent, const program::Primitive& p, std::int64_t& seen);

  // A copy queue: one copy after the other, its flags behind it.
  bool interpret_copy(Agent& agent);
  void release(Agent& agent, bool system_scope);

  void flag(const Agent& agent, program::SemaphoreId id, std::int64_t value, std::int64_t at);
  void post(Agent& agent);
  bool move(Agent& agent);

  /// Memory that packets of a flag are found in: FIFOs of like connections are one.
  std::tuple<int, std::int32_t, std::int64_t> space(int rank, const program::Span& span) const;
  std::int64_t offset_of(const program::Span& span) const { return addresses_.offset_of(span); }
  static std::int64_t memory(const program::Span& span, std::int64_t bytes) {
    return program::memory_size(bytes, span.access);
  }

  void account(const Agent& agent, const program::Span& span, std::int64_t bytes, bool load);
  /// For all members of its class.
  void carry(const Agent& agent, int from, int to, std::int64_t payload, std::int64_t requests) {
    traffic_.add(from, to, payload * agent.members(), requests * agent.members());
  }

  const machine::Machine& machine_;
  const program::Bound& program_;
  const Options& options_;
  const Addresses& addresses_;
  const int period_;                  ///< ranks that are walked: the others behave as these do
  const Classes* classes_ = nullptr;  ///< ... or classes, of all ranks
  LinkTraffic traffic_;
  Latencies latencies_;
  std::vector<Agent> agents_;
  std::vector<Host> hosts_;              ///< of a job
  std::size_t first_open_ = 0;           ///< agents before are over and forgotten
  std::vector<program::Totals> totals_;  ///< by rank
  std::map<std::pair<int, std::int32_t>, std::int64_t> events_;  ///< by rank: recorded when
  std::int64_t moved_bytes_ = 0, posted_bytes_ = 0;
  LineMap<Signals> signals_;
  std::vector<Post> posts_;
  std::map<std::pair<int, std::int32_t>, BarrierRounds> rounds_;
  std::map<std::tuple<int, std::int32_t, std::int64_t>, PacketArrivals> packets_;
};

}  // namespace hemiola::sim
