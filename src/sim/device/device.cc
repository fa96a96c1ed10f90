// The device: set-up.

#include "sim/device/device.h"

#include <algorithm>
#include <string>
#include <utility>

#include "sim/sampled/sampling.h"

namespace hemiola::sim {
namespace {

std::vector<bool> watched_ranks(const program::Bound& program, const Options& options) {
  std::vector<bool> watched(index(program.ranks()));
  if (options.record == nullptr && options.replay == nullptr) return watched;
  for (const int rank : options.watched) {
    if (rank < 0 || rank >= program.ranks() || watched[index(rank)])
      throw Failure("there is no rank " + std::to_string(rank) + " of " +
                        std::to_string(program.ranks()) + " to watch, or it is named twice",
                    {.file = program.source()});
    watched[index(rank)] = true;
  }
  if (options.watched.empty())
    throw Failure("no rank is recorded or replayed", {.file = program.source()});
  return watched;
}

}  // namespace

LineLayout::LineLayout(const machine::GpuModel& model, std::int64_t first_flag)
    : size(model.line_size.count),
      sector(std::min(model.sector_size.count, size)),
      shift(std::countr_zero(static_cast<std::uint64_t>(size))),
      sector_shift(std::countr_zero(static_cast<std::uint64_t>(sector))),
      first_flag(first_flag),
      flag_spacing(model.sync_flag_spacing.count) {}

Device::Device(const machine::Machine& machine, const program::Bound& program,
               const Options& options)
    : machine(machine),
      program(program),
      options(options),
      watched(watched_ranks(program, options)),
      addresses(program, program::rotation_of(program, machine.model(0).line_size.count)),
      lines(machine.model(0), addresses.end()),
      fabric(machine),
      fold(fold_of(fabric, program, addresses.rotation(), options)),
      barrier_base(static_cast<std::int32_t>(program.semaphores().size())) {
  fabric.add_gpus(program.ranks(), fold.period, fold.link_of,
                  [this](int rank) { return is_simulated(rank); });
  int first_other = -1;  // of a replay: it stands for all of them
  for (int rank = 0; rank < program.ranks(); ++rank) {
    if (first_other < 0 && !is_simulated(rank)) first_other = rank;
    homes.push_back(is_simulated(rank) ? rank % fold.period : first_other);
  }
  if (program.ranks() > kMostRanks)
    throw Failure("an engine takes at most " + std::to_string(kMostRanks) + " ranks, not " +
                  std::to_string(program.ranks()));
  const std::int64_t flags = std::ssize(program.semaphores()) + program.barriers();
  const std::int64_t end = addresses.end() + lines.flag_spacing * flags;
  if (end / lines.size >= INT32_MAX - (1 << 20))  // logs and states of waits are behind
    throw Failure("a simulated GPU's memory holds less than 2^31 lines, not " +
                      std::to_string(end / lines.size),
                  {.file = program.source()}, "run a smaller size");
  for (int rank = 0; rank < fold.period; ++rank) {
    if (is_simulated(rank) || rank == first_other) {
      add_rank(rank);
    } else {  // it does what a profile says
      gpus.emplace_back();
      ranks.emplace_back();
    }
  }
}

Device::~Device() = default;

void Device::add_rank(int rank) {
  const machine::GpuModel& model = machine.model(rank);
  GpuState gpu;
  gpu.l2 = L2(model, lines.size);
  gpu.msc = Tags(model.msc_size.count / lines.size, model.msc_ways);
  for (const program::Semaphore& semaphore : program.semaphores())
    gpu.semaphores.push_back({semaphore.initial, {}});
  gpu.semaphores.resize(gpu.semaphores.size() + index(program.barriers()));
  for (Monitors* of : {&gpu.by_slices, &gpu.by_memory})
    of->used.resize(index(fabric.layout[index(rank)]->slices));
  gpu.by_memory.log = 1;
  uncached = uncached || model.sync_uncached;
  monitors = monitors || model.sync_wait >= machine::WaitPolicy::monitor;
  gpus.push_back(std::move(gpu));
  RankState state;
  state.cus.resize(index(model.cu_count));
  const auto room = [](std::int64_t most) { return most == 0 ? INT64_MAX : most; };
  for (std::size_t c = 0; c < state.cus.size(); ++c) {
    Cu& cu = state.cus[c];
    cu.rank = static_cast<std::int16_t>(rank);
    cu.number = static_cast<std::int16_t>(c);
    cu.l1 = Tags(model.l1_size.count / lines.size, model.l1_ways);
    cu.load_room = cu.load_slots = room(model.cu_max_outstanding);
    cu.store_room = room(model.cu_max_stores);
    cu.issue_interval = std::max<std::int64_t>(1, model.cu_issue_interval.fs);
  }
  for (std::int64_t bytes = 0; bytes <= lines.size && !model.cu_peer_rate.is_ideal();
       bytes += lines.sector)
    state.peer_costs.push_back(model.cu_peer_rate.time_for(bytes).fs);
  ranks.push_back(std::move(state));
}

std::int32_t Device::keep(const LatencyBreakdown& spent) {
  const std::int32_t id = kept.take();
  kept[index(id)] = spent;
  return id;
}

LatencyBreakdown Device::take(std::int32_t id) {
  kept.give_back(id);
  return std::move(kept[index(id)]);
}

RequestSpans& Device::spans_of(const Request& request) {
  const std::size_t at = index(request.detail);
  if (at >= request_spans.size()) request_spans.resize(at + 1);
  return request_spans[at];
}

}  // namespace hemiola::sim
