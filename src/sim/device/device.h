// What the parts of a device share: machine and program, requests under way, and how far GPUs,
// ranks, kernels, workgroups and wavefronts are. It makes requests and finds things; what happens
// to them is the parts' own.
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "machine/machine.h"
#include "sim/alike/fold.h"
#include "sim/device/gpu_state.h"
#include "sim/device/rank_state.h"
#include "sim/device/workgroup.h"
#include "sim/model/addresses.h"
#include "sim/model/engines.h"
#include "sim/model/fabric.h"
#include "sim/model/request.h"
#include "sim/result/options.h"
#include "sim/result/trace.h"
#include "sim/support/pool.h"
#include "sim/support/worker.h"

namespace hemiola::sim {

/// Lines and sectors of every GPU's memory: powers of two, in bytes.
struct LineLayout {
  LineLayout(const machine::GpuModel& model, std::int64_t first_flag);

  std::int32_t of(std::int64_t address) const {
    return static_cast<std::int32_t>(address >> shift);
  }
  /// What addresses [from, to) take, in whole sectors: bytes.
  std::int64_t in_sectors(std::int64_t from, std::int64_t to) const {
    return (((to + sector - 1) >> sector_shift) - (from >> sector_shift)) << sector_shift;
  }
  std::int32_t flag(std::int32_t semaphore) const {
    return of(first_flag + flag_spacing * static_cast<std::int64_t>(semaphore));
  }

  std::int64_t size, sector;
  int shift, sector_shift;
  std::int64_t first_flag;  ///< its address, behind all buffers
  std::int64_t flag_spacing;
};

struct Sampling;

struct Device {
  /// What is given outlives this.
  Device(const machine::Machine& machine, const program::Bound& program, const Options& options);
  ~Device();

  Request& request(std::int32_t id) { return requests[index(id)]; }
  const Request& request(std::int32_t id) const { return requests[index(id)]; }
  Detail& detail(const Request& request) { return details[index(request.detail)]; }
  Wave& wave(std::int32_t id) { return waves[index(id)]; }
  const Wave& wave(std::int32_t id) const { return waves[index(id)]; }
  Workgroup& group(std::int32_t id) { return groups[index(id)]; }
  const Workgroup& group(std::int32_t id) const { return groups[index(id)]; }
  KernelRun& kernel(std::int32_t run) { return kernels[index(run)]; }
  const KernelRun& kernel(std::int32_t run) const { return kernels[index(run)]; }
  RankState& rank(std::int32_t number) { return ranks[index(number)]; }
  const RankState& rank(std::int32_t number) const { return ranks[index(number)]; }
  /// What stands for a rank's GPU.
  GpuState& gpu(std::int32_t rank) { return gpus[index(home(rank))]; }
  const GpuState& gpu(std::int32_t rank) const { return gpus[index(home(rank))]; }
  std::int32_t home(std::int32_t rank) const { return homes[index(rank)]; }
  /// The code of a workgroup, and what one of its primitives is of.
  const program::Kernel& code_of(const Workgroup& group) const {
    return program.kernels()[index(kernel(group.kernel).kernel)];
  }
  const program::Op& op_of(const Workgroup& group, const program::Primitive& primitive) const {
    return program.bodies()[index(group.body)].ops[index(primitive.op)];
  }
  /// Not of a replay's others (Options::replay).
  bool is_simulated(int rank) const { return options.replay == nullptr || is_watched(rank); }
  bool is_watched(int rank) const { return watched[index(rank)]; }
  const machine::GpuModel& model(int rank) const { return machine.model(rank); }
  const GpuLayout& layout(int rank) const { return *fabric.layout[index(rank)]; }
  Server& server(std::int32_t number) { return fabric.servers[index(number)]; }
  Tally& tally() { return tallies.mine(); }
  Counters& counters() { return tally().counters; }

  /// A request like this one, that has spent nothing.
  std::int32_t allocate(const RequestData& like, Tally& tally) {
    const std::int32_t id = requests.take_as_left();
    request(id).data() = like;
    if (!like.polling) ++tally.active;
    return id;
  }
  std::int32_t allocate(bool polling) {
    RequestData like;
    like.polling = polling;
    return allocate(like, tally());
  }
  [[gnu::always_inline]] void give_back(std::int32_t id, Request& request, Tally& tally) {
    if (!request.polling) --tally.active;
    if (request.detail >= 0) details.give_back(request.detail);
    request.spent.clear();  // others may share what it holds
    requests.give_back(id);
  }
  void release(std::int32_t id) { give_back(id, request(id), tally()); }
  Detail& add_detail(Request& request) {
    request.takes = true;
    request.detail = details.take();
    if (tracing()) spans_of(request) = {};
    return detail(request);
  }
  std::int32_t keep(const LatencyBreakdown& spent);  ///< for an event; take() gives it back
  LatencyBreakdown take(std::int32_t id);

  bool tracing() const { return options.trace != nullptr; }
  RequestSpans& spans_of(const Request& request);

  /// Its remainder spreads consecutive numbers over places and keeps strides of powers of two
  /// apart. Works on rank-relative addresses, so that all GPUs map alike.
  static constexpr std::uint64_t mixed(std::uint64_t x) {
    return x ^ (x >> 7) ^ (x >> 14) ^ (x >> 21);
  }
  static std::int32_t slice_of(const Modulo& slices, std::int32_t line) {
    const auto number = static_cast<std::uint32_t>(line);
    return static_cast<std::int32_t>(slices(static_cast<std::uint32_t>(mixed(number))));
  }
  std::int32_t slice_of(int rank, std::int32_t line) const {
    return slice_of(layout(rank).slice_of, line);
  }

  const machine::Machine& machine;
  const program::Bound& program;
  const Options& options;
  std::vector<bool> watched;  ///< by rank: of a recording or a replay
  Addresses addresses;
  LineLayout lines;
  Fabric fabric;
  Fold fold;
  std::vector<std::int32_t> homes;     ///< by rank: the one that stands for it
  std::unique_ptr<Sampling> sampling;  ///< null: everything is simulated
  std::int32_t barrier_base = 0;       ///< semaphores of device barriers
  bool uncached = false;               ///< flags of some rank
  bool monitors = false;               ///< waits of some rank
  Pool<Request> requests;
  Pool<Detail> details;
  std::vector<RequestSpans> request_spans;  ///< of a trace: by detail
  Pool<LatencyBreakdown> kept;              ///< attributions that events carry
  std::vector<GpuState> gpus;
  std::vector<RankState> ranks;
  std::vector<KernelRun> kernels;
  std::vector<Workgroup> groups;
  std::vector<Wave> waves;
  std::vector<EngineRun> engines;
  Pool<Descriptor> descriptors;
  Tallies tallies;

 private:
  void add_rank(int rank);
};

}  // namespace hemiola::sim
