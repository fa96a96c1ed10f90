#include "sim/device/host.h"

#include <algorithm>
#include <utility>

#include "sim/device/copy_queues.h"
#include "sim/device/residency.h"
#include "sim/device/tracing.h"
#include "sim/device/wavefronts.h"
#include "sim/model/host_streams.h"
#include "sim/result/host_calls.h"

namespace hemiola::sim {
Host::Host(Device& device, Transport& transport, CopyQueues& copy_queues, Residency& residency,
           Tracing& tracing, Wavefronts& wavefronts)
    : device_(device),
      transport_(transport),
      copy_queues_(copy_queues),
      residency_(residency),
      tracing_(tracing),
      wavefronts_(wavefronts),
      machine_(device.machine),
      program_(device.program),
      options_(device.options),
      ranks_(device.ranks),
      launches_(device.program),
      repetitions_(device.options.iterations > 0 ? device.options.warmup + device.options.iterations
                                                 : 1),
      ranks_to_end_(device.options.replay == nullptr
                        ? device.fold.period
                        : static_cast<int>(device.options.watched.size())) {}

// --- Streams. A repetition of the program starts all streams of a rank together (a graph launch).

void Host::make_groups(int rank) {
  RankState& state = device_.rank(rank);
  const program::RankCode& code = device_.program.code(rank);
  const std::int64_t wavefront = device_.model(rank).cu_wavefront_size;
  std::int32_t number = 0;
  state.streams.resize(code.streams.size());
  for (std::size_t s = 0; s < code.streams.size(); ++s) {
    for (const program::StreamItem& item : code.streams[s]) {
      state.streams[s].runs.push_back(-1);
      state.streams[s].queues.push_back(-1);
      if (item.kind == program::StreamItem::Kind::engine) {
        state.streams[s].queues.back() =
            copy_queues_.make_queue(rank, static_cast<std::int32_t>(s), item);
      }
      if (item.kind != program::StreamItem::Kind::kernel) continue;
      const program::Kernel& kernel = device_.program.kernels()[index(item.index)];
      const auto run = static_cast<std::int32_t>(device_.kernels.size());
      state.streams[s].runs.back() = run;
      device_.kernels.emplace_back();
      device_.kernels.back().rank = rank;
      device_.kernels.back().stream = static_cast<std::int32_t>(s);
      device_.kernels.back().kernel = item.index;
      device_.kernels.back().frame = item.frame;
      for (std::size_t w = 0; w < kernel.bodies.size(); ++w) {
        device_.kernels.back().groups.push_back(static_cast<std::int32_t>(device_.groups.size()));
        device_.groups.emplace_back();
        Workgroup& group = device_.groups.back();
        if (device_.program.linked() == nullptr)
          group.cursor = std::make_unique<program::Cursor>(device_.program, rank, kernel.bodies[w]);
        group.rank = rank;
        group.kernel = run;
        group.index = number++;
        group.body = kernel.bodies[w];
        group.threads = kernel.threads_in(w);
        group.occupancy = program::occupancy_of(kernel, w, device_.model(rank));
        group.first_wave = static_cast<std::int32_t>(device_.waves.size());
        group.waves = static_cast<std::int32_t>((group.threads + wavefront - 1) / wavefront);
        group.movers = group.waves - (kernel.posts_apart && group.waves > 1 ? 1 : 0);
        for (std::int32_t i = 0; i < group.waves; ++i) {
          device_.waves.emplace_back();
          device_.waves.back().workgroup = static_cast<std::int32_t>(device_.groups.size()) - 1;
          device_.waves.back().index = i;
        }
      }
    }
  }
}

void Host::come_to(HostStep step, int rank, std::int32_t stream, std::int64_t now,
                   const LatencyBreakdown& spent) {
  HostStreams<Host, LatencyBreakdown>(*this, true).come_to(step, rank, stream, now, spent);
}

void Host::start_work(int rank, std::int32_t stream, std::int64_t now,
                      const LatencyBreakdown& spent) {
  const StreamRun& run = device_.rank(rank).streams[index(stream)];
  if (run.queues[run.item] >= 0) return copy_queues_.start_queue(run.queues[run.item], now, spent);
  KernelRun& kernel = device_.kernel(run.runs[run.item]);
  kernel.spent = spent;
  kernel.next = kernel.done = 0;
  kernel.ended = false;
  start_kernel(run.runs[run.item], now);
}

void Host::push_host(HostStep step, std::int64_t at, int rank, std::int32_t stream,
                     const LatencyBreakdown& spent) {
  const auto tag = step == HostStep::repetition ? ~0U >> 4 : static_cast<std::uint32_t>(stream);
  transport_.push(at, step == HostStep::finished ? kStreamNext : kKernelStart, rank,
                  device_.keep(spent), tag);
}

// --- Kernels and dispatch.

void Host::start_kernel(std::int32_t run, std::int64_t now) {
  KernelRun& kernel = device_.kernel(run);
  kernel.began = now;
  kernel.launch = ++device_.rank(kernel.rank).launches;
  for (const std::int32_t id : kernel.groups) {
    Workgroup& group = device_.group(id);
    begin_walk(group.cursor, device_.program, device_.rank(group.rank), group.rank, group.body,
               kernel.frame);
    group.window.clear();
    group.first = 0;
    group.ended = false;
    group.finished = 0;
    group.stores.clear();
    group.first_epoch = 0;
    group.fetched = false;
    group.code_pieces = 0;
    group.first_step = 0;
    for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
      Wave& wave = device_.wave(w);
      wave.position = 0;
      wave.last_op = -1;
      wave.epoch = 0;
      wave.own_stores = 0;
      wave.step = 0;
      wave.product_step = 0;
      wave.waiting = Waiting::running;
    }
  }
  if (kernel.groups.empty()) {
    kernel_maybe_done(run, kernel.spent, now);
    return;
  }
  dispatch(run, now);
}

// Blocks go to CUs one per dispatch interval, the parts of a block together.
void Host::dispatch(std::int32_t run, std::int64_t now) {
  KernelRun& kernel = device_.kernel(run);
  RankState& state = device_.rank(kernel.rank);
  kernel.dispatching = false;
  const machine::GpuModel& model = device_.model(kernel.rank);
  const program::Kernel& code = device_.program.kernels()[index(kernel.kernel)];
  const auto parts = static_cast<std::int32_t>(code.parts_from(index(kernel.next)));
  const std::int32_t cu = find_cu(state, model, options_of(kernel),
                                  program::occupancy_of_block(code, index(kernel.next), model));
  if (cu < 0) {
    state.blocked_kernels.push_back(run);
    if (device_.monitors) residency_.make_room(kernel.rank, now);
    return;
  }
  state.next_cu = (cu + 1) % static_cast<std::int32_t>(model.cu_count);
  for (std::int32_t part = 0; part < parts; ++part)
    start_workgroup(kernel, kernel.groups[index(kernel.next++)], cu, now);
  if (kernel.next < static_cast<std::int32_t>(kernel.groups.size())) {
    const std::int64_t interval = std::max<std::int64_t>(1, model.dispatch_interval.fs);
    kernel.spent.charge(Reason::dispatch, interval);
    kernel.dispatching = true;
    transport_.push(now + interval, kDispatch, run);
  } else if (!device_.program.code(kernel.rank).options.empty()) {
    // Those of lower priority have left it the room that there is.
    for (std::size_t left = state.blocked_kernels.size(); left > 0; --left)
      residency_.give_room(kernel.rank, kernel.spent, false, now);
  }
}

program::StreamOptions Host::options_of(const KernelRun& kernel) const {
  return device_.program.code(kernel.rank).option(index(kernel.stream));
}

std::int32_t Host::find_cu(const RankState& state, const machine::GpuModel& model,
                           const program::StreamOptions& stream,
                           const program::Occupancy& block) const {
  const auto count = static_cast<std::int32_t>(model.cu_count);
  const auto used = [&](std::int32_t cu) -> const program::Occupancy& {
    return state.cus[index(cu)].used;
  };
  const std::int32_t last =
      stream.units > 0 ? std::min(count, stream.first_unit + stream.units) : count;
  return program::find_unit(stream.first_unit, last, state.next_cu, used, block, model);
}

void Host::start_workgroup(KernelRun& run, std::int32_t id, std::int32_t cu, std::int64_t now) {
  Workgroup& group = device_.group(id);
  group.cu = cu;
  group.began = now;
  Cu& place = device_.rank(run.rank).cus[index(cu)];
  place.used += group.occupancy;
  if (place.launch != run.launch) place.l1.clear();  // others may have stored since
  place.launch = run.launch;
  const machine::GpuModel& model = device_.model(run.rank);
  const bool is_product = device_.program.kernels()[index(run.kernel)].largest_tile > 0;
  const std::int64_t latency =
      std::max<std::int64_t>(1, model.dispatch_latency.fs + (is_product ? model.gemm_setup.fs : 0));
  LatencyBreakdown spent = run.spent;
  spent.charge(Reason::dispatch, latency);
  for (std::int32_t w = 0; w < group.waves; ++w) {
    Wave& wave = device_.wave(group.first_wave + w);
    wave.spent = spent;
    // Workgroups of a rank, then wavefronts. After completions.
    wave.tag = kFirstWaveTag + static_cast<std::uint32_t>((group.index & 0x3fff) << 6 | (w & 63));
  }
  wavefronts_.push_waves(now + latency, group.first_wave, group.waves);
}

void Host::workgroup_done(std::int32_t id, const LatencyBreakdown& spent, std::int64_t now) {
  const Workgroup& group = device_.group(id);
  RankState& state = device_.rank(group.rank);
  state.cus[index(group.cu)].used -= group.occupancy;
  KernelRun& run = device_.kernel(group.kernel);
  ++run.done;
  end_walk(device_.group(id).cursor, device_.program, state);
  if (device_.tracing())
    device_.options.trace->workgroup(group.rank, run.stream, group.index, {group.began}, {now});
  residency_.give_room(group.rank, spent, false, now);
  kernel_maybe_done(group.kernel, spent, now);
}

// A job's kernels have the names of their launches.
const std::string& Host::name_of_kernel(const KernelRun& kernel) const {
  const program::Linked* linked = device_.program.linked();
  if (linked == nullptr) return device_.program.kernels()[index(kernel.kernel)].name;
  return linked->launches[index(device_.program.frame(kernel.frame).launch)].name;
}

// The end of a kernel is a release: all its stores are acknowledged.
void Host::kernel_maybe_done(std::int32_t run, const LatencyBreakdown& spent, std::int64_t now) {
  KernelRun& kernel = device_.kernel(run);
  const bool running =
      kernel.done < static_cast<std::int32_t>(kernel.groups.size()) || kernel.stores > 0;
  // An acknowledgement may let the last wavefront end, which then is the end of the kernel.
  if (running || std::exchange(kernel.ended, true)) return;
  const std::int64_t latency =
      std::max<std::int64_t>(1, device_.model(kernel.rank).launch_end_latency.fs);
  tracing_.show_stream(kernel.rank, kernel.stream, name_of_kernel(kernel), kernel.began, now);
  tracing_.show_stream(kernel.rank, kernel.stream, "end", now, now + latency);
  LatencyBreakdown later = spent;
  later.charge(Reason::launch, latency);
  transport_.push(now + latency, kStreamNext, kernel.rank, device_.keep(later),
                  static_cast<std::uint32_t>(kernel.stream));
}

}  // namespace hemiola::sim
