// Streams of ranks in the fluid engine: kernels and their workgroups, which take parts of compute
// units, and the host.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/fluid/run.h"
#include "sim/model/streams.h"
#include "sim/result/launches.h"
#include "sim/result/result.h"

namespace hemiola::sim::fluid {

class Streams {
  friend HostStreams<Streams, Attribution>;

 public:
  explicit Streams(Run& run);

  void start();
  void come_to(HostStep step, std::int32_t rank, std::int32_t stream, std::int64_t now,
               const Attribution& spent);
  /// All repetitions of all ranks are over.
  bool over() const { return ranks_done_ == run_.fold.rank_classes(); }
  std::int32_t repetition(std::int32_t rank) const { return ranks_[index(rank)].repetition; }

  /// An agent has no more primitives.
  void agent_over(std::int32_t agent);
  /// The end of the kernel of an agent waits for something more; that is over.
  void part_begins(const Walker& walker) { ++kernel_of(walker).left; }
  void part_over(const Walker& walker, const Moment& end);
  /// Blocks of products of all kernels are spread over the compute units: so many are on the
  /// fullest (Walker::sharing).
  void share_unit(Walker& walker) const;
  /// With Options::one_host its thread works for `time`, as soon as it may: when it is through.
  std::int64_t by_host(std::int64_t now, std::int64_t time, Attribution& spent);

  /// Times, ends and attributions of all ranks.
  Result result() const;
  void report_waits(Diagnostics& waits) const;

 private:
  struct Kernel {
    std::vector<std::int32_t> agents;
    std::size_t next = 0;
    std::int64_t left = 0;   ///< agents that have not ended, and flags not acknowledged
    std::int64_t began = 0;  ///< start of the kernel
    Moment end;              ///< of the last agent and its stores
    Attribution spent{};
  };
  struct Stream : StreamPlace {
    std::int64_t room_used = 0;            ///< of compute units, by its workgroups
    std::vector<Kernel> kernels;           ///< by item
    std::vector<std::int32_t> copy_agent;  ///< by item, or -1
  };
  struct RankState {
    std::vector<Stream> streams;
    StreamEvents events;
    std::int64_t blocks_of_products = 0;  ///< on its compute units, times kRoomOfUnit
    std::int64_t room = 0;                ///< of compute units, that nobody has taken
    std::vector<std::pair<std::int32_t, std::int32_t>> blocked;  ///< kernels (stream, item)
    std::int32_t streams_done = 0, repetition = 0;
    std::int64_t launched = 0, started = 0, end = -1, warm_end = 0;
    program::Totals totals;  ///< of a job: counts of launches that are over
    Attribution spent{};
  };

  int first_rank(std::int32_t rank) const { return run_.fold.first_rank(rank); }
  void push_host(HostStep step, std::int64_t at, std::int32_t rank, std::int32_t stream,
                 const Attribution& spent);
  void start_work(std::int32_t rank, std::int32_t stream, std::int64_t now,
                  const Attribution& spent);
  void start_kernel(std::int32_t rank, std::int32_t stream, std::int64_t now,
                    const Attribution& spent);
  void dispatch(std::int32_t rank, std::int32_t stream, std::int32_t item, std::int64_t now);
  void begin(Walker& walker);
  bool has_part(std::int32_t rank, std::int32_t stream, const Walker& walker) const;
  void take_room(const Walker& walker, std::int64_t sign);
  void give_room(const Walker& walker);
  void end_kernel(std::int32_t rank, std::int32_t stream, Moment end);
  Kernel& kernel_of(const Walker& walker) {
    return ranks_[index(walker.rank_class)]
        .streams[index(walker.agent.stream)]
        .kernels[index(walker.agent.item)];
  }
  /// To the trace, if there is one.
  void show_stream(std::int32_t rank, std::int32_t stream, std::string_view name,
                   std::int64_t begin, std::int64_t end) const;

  Run& run_;
  const machine::Machine& machine_;  // of the run, as HostStreams wants them
  const program::Bound& program_;
  const Options& options_;
  LaunchLog launches_;
  std::vector<RankState> ranks_;  ///< by class
  int repetitions_ = 1;
  std::int32_t ranks_done_ = 0;
  std::int64_t host_free_ = 0;
};

}  // namespace hemiola::sim::fluid
