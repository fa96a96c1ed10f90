// The host of each rank and its streams, kernels, and the dispatch of their workgroups to CUs.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/device/device.h"
#include "sim/device/tracing.h"
#include "sim/device/transport.h"
#include "sim/model/streams.h"
#include "sim/result/launches.h"

namespace hemiola::sim {

template <class Engine, class Spent>
class HostStreams;
class CopyQueues;
class Residency;
class Wavefronts;

class Host {
 public:
  Host(Device& device, Transport& transport, CopyQueues& copy_queues, Residency& residency,
       Tracing& tracing, Wavefronts& wavefronts);

  /// Streams, kernels and workgroups of all ranks; once, before anything else.
  void make_groups(int rank);
  void come_to(HostStep step, int rank, std::int32_t stream, std::int64_t now,
               const LatencyBreakdown& spent);
  void dispatch(std::int32_t run, std::int64_t now);
  program::StreamOptions options_of(const KernelRun& kernel) const;
  /// -1: none has room.
  std::int32_t find_cu(const RankState& rank, const machine::GpuModel& model,
                       const program::StreamOptions& stream, const program::Occupancy& block) const;
  void workgroup_done(std::int32_t group, const LatencyBreakdown& spent, std::int64_t now);
  void kernel_maybe_done(std::int32_t run, const LatencyBreakdown& spent, std::int64_t now);
  bool all_done() const { return ranks_done_.load(std::memory_order_relaxed) >= ranks_to_end_; }
  const LaunchLog& launches() const { return launches_; }

 private:
  friend HostStreams<Host, LatencyBreakdown>;
  static int first_rank(int rank) { return rank; }
  void push_host(HostStep step, std::int64_t at, int rank, std::int32_t stream,
                 const LatencyBreakdown& spent);
  void start_work(int rank, std::int32_t stream, std::int64_t now, const LatencyBreakdown& spent);
  void show_stream(int rank, std::int32_t stream, std::string_view name, std::int64_t begin,
                   std::int64_t end) const {
    tracing_.show_stream(rank, stream, name, begin, end);
  }
  const std::string& name_of_kernel(const KernelRun& kernel) const;
  void start_kernel(std::int32_t run, std::int64_t now);
  void start_workgroup(KernelRun& run, std::int32_t group, std::int32_t cu, std::int64_t now);

  Device& device_;
  Transport& transport_;
  CopyQueues& copy_queues_;
  Residency& residency_;
  Tracing& tracing_;
  Wavefronts& wavefronts_;
  const machine::Machine& machine_;
  const program::Bound& program_;
  const Options& options_;
  std::vector<RankState>& ranks_;
  LaunchLog launches_;
  const int repetitions_;
  const int ranks_to_end_;
  std::atomic<int> ranks_done_ = 0;
};

}  // namespace hemiola::sim
