// Cores: streams, kernels, dispatch to CUs.

#include <algorithm>
#include <utility>

#include "sim/device/cores.h"
#include "sim/model/host_streams.h"
#include "sim/result/host_calls.h"

namespace hemiola::sim {
// --- Streams. A repetition of the program starts all streams of a rank together (a graph launch).

void Cores::make_groups(int rank) {
  RankState& state = ranks_[index(rank)];
  const program::RankCode& code = program_.code(rank);
  const std::int64_t wavefront = machine_.model(rank).cu_wavefront_size;
  std::int32_t number = 0;
  state.streams.resize(code.streams.size());
  for (std::size_t s = 0; s < code.streams.size(); ++s) {
    for (const program::StreamItem& item : code.streams[s]) {
      state.streams[s].runs.push_back(-1);
      state.streams[s].queues.push_back(-1);
      if (item.kind == program::StreamItem::Kind::engine) {
        state.streams[s].queues.back() = static_cast<std::int32_t>(queues_.size());
        make_queue(rank, static_cast<std::int32_t>(s), item);
      }
      if (item.kind != program::StreamItem::Kind::kernel) continue;
      const program::Kernel& kernel = program_.kernels()[index(item.index)];
      const auto run = static_cast<std::int32_t>(kernels_.size());
      state.streams[s].runs.back() = run;
      kernels_.emplace_back();
      kernels_.back().rank = rank;
      kernels_.back().stream = static_cast<std::int32_t>(s);
      kernels_.back().kernel = item.index;
      kernels_.back().frame = item.frame;
      for (std::size_t w = 0; w < kernel.bodies.size(); ++w) {
        kernels_.back().groups.push_back(static_cast<std::int32_t>(groups_.size()));
        groups_.emplace_back();
        Workgroup& group = groups_.back();
        if (program_.linked() == nullptr)
          group.cursor = std::make_unique<program::Cursor>(program_, rank, kernel.bodies[w]);
        group.rank = rank;
        group.kernel = run;
        group.index = number++;
        group.body = kernel.bodies[w];
        group.threads = kernel.threads_in(w);
        group.occupancy = program::occupancy_of(kernel, w, machine_.model(rank));
        group.first_wave = static_cast<std::int32_t>(waves_.size());
        group.waves = static_cast<std::int32_t>((group.threads + wavefront - 1) / wavefront);
        group.movers = group.waves - (kernel.posts_apart && group.waves > 1 ? 1 : 0);
        for (std::int32_t i = 0; i < group.waves; ++i) {
          waves_.emplace_back();
          waves_.back().workgroup = static_cast<std::int32_t>(groups_.size()) - 1;
          waves_.back().index = i;
        }
      }
    }
  }
}

void Cores::come_to(HostStep step, int rank, std::int32_t stream, std::int64_t now,
                    const LatencyBreakdown& spent) {
  HostStreams<Cores, LatencyBreakdown>(*this, true).come_to(step, rank, stream, now, spent);
}

void Cores::start_work(int rank, std::int32_t stream, std::int64_t now,
                       const LatencyBreakdown& spent) {
  const StreamRun& run = ranks_[index(rank)].streams[index(stream)];
  if (run.queues[run.item] >= 0) return start_queue(run.queues[run.item], now, spent);
  KernelRun& kernel = kernels_[index(run.runs[run.item])];
  kernel.spent = spent;
  kernel.next = kernel.done = 0;
  kernel.ended = false;
  start_kernel(run.runs[run.item], now);
}

void Cores::push_host(HostStep step, std::int64_t at, int rank, std::int32_t stream,
                      const LatencyBreakdown& spent) {
  const auto tag = step == HostStep::repetition ? ~0U >> 4 : static_cast<std::uint32_t>(stream);
  push(at, step == HostStep::finished ? kStreamNext : kKernelStart, rank, keep(spent), tag);
}

// --- Kernels and dispatch.

void Cores::start_kernel(std::int32_t run, std::int64_t now) {
  KernelRun& kernel = kernels_[index(run)];
  kernel.began = now;
  kernel.launch = ++ranks_[index(kernel.rank)].launches;
  for (const std::int32_t id : kernel.groups) {
    Workgroup& group = groups_[index(id)];
    begin_walk(group.cursor, program_, ranks_[index(group.rank)], group.rank, group.body,
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
      Wave& wave = waves_[index(w)];
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
void Cores::dispatch(std::int32_t run, std::int64_t now) {
  KernelRun& kernel = kernels_[index(run)];
  RankState& state = ranks_[index(kernel.rank)];
  kernel.dispatching = false;
  const machine::GpuModel& model = machine_.model(kernel.rank);
  const program::Kernel& code = program_.kernels()[index(kernel.kernel)];
  const auto parts = static_cast<std::int32_t>(code.parts_from(index(kernel.next)));
  const std::int32_t cu = find_cu(state, model, options_of(kernel),
                                  program::occupancy_of_block(code, index(kernel.next), model));
  if (cu < 0) {
    state.blocked_kernels.push_back(run);
    if (monitors_) make_room(kernel.rank, now);
    return;
  }
  state.next_cu = (cu + 1) % static_cast<std::int32_t>(model.cu_count);
  for (std::int32_t part = 0; part < parts; ++part)
    start_workgroup(kernel, kernel.groups[index(kernel.next++)], cu, now);
  if (kernel.next < static_cast<std::int32_t>(kernel.groups.size())) {
    const std::int64_t interval = std::max<std::int64_t>(1, model.dispatch_interval.fs);
    kernel.spent.charge(Reason::dispatch, interval);
    kernel.dispatching = true;
    push(now + interval, kDispatch, run);
  } else if (!program_.code(kernel.rank).options.empty()) {
    // Those of lower priority have left it the room that there is.
    for (std::size_t left = state.blocked_kernels.size(); left > 0; --left)
      give_room(kernel.rank, kernel.spent, false, now);
  }
}

program::StreamOptions Cores::options_of(const KernelRun& kernel) const {
  return program_.code(kernel.rank).option(index(kernel.stream));
}

std::int32_t Cores::find_cu(const RankState& state, const machine::GpuModel& model,
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

void Cores::start_workgroup(KernelRun& run, std::int32_t id, std::int32_t cu, std::int64_t now) {
  Workgroup& group = groups_[index(id)];
  group.cu = cu;
  group.began = now;
  Cu& place = ranks_[index(run.rank)].cus[index(cu)];
  place.used += group.occupancy;
  if (place.launch != run.launch) place.l1.clear();  // others may have stored since
  place.launch = run.launch;
  const machine::GpuModel& model = machine_.model(run.rank);
  const bool is_product = program_.kernels()[index(run.kernel)].largest_tile > 0;
  const std::int64_t latency =
      std::max<std::int64_t>(1, model.dispatch_latency.fs + (is_product ? model.gemm_setup.fs : 0));
  LatencyBreakdown spent = run.spent;
  spent.charge(Reason::dispatch, latency);
  for (std::int32_t w = 0; w < group.waves; ++w) {
    Wave& wave = waves_[index(group.first_wave + w)];
    wave.spent = spent;
    // Workgroups of a rank, then wavefronts. After completions.
    wave.tag = kFirstWaveTag + static_cast<std::uint32_t>((group.index & 0x3fff) << 6 | (w & 63));
  }
  push_waves(now + latency, group.first_wave, group.waves);
}

void Cores::workgroup_done(std::int32_t id, const LatencyBreakdown& spent, std::int64_t now) {
  const Workgroup& group = groups_[index(id)];
  RankState& state = ranks_[index(group.rank)];
  state.cus[index(group.cu)].used -= group.occupancy;
  KernelRun& run = kernels_[index(group.kernel)];
  ++run.done;
  end_walk(groups_[index(id)].cursor, program_, state);
  if (tracing())
    options_.trace->workgroup(group.rank, run.stream, group.index, {group.began}, {now});
  give_room(group.rank, spent, false, now);
  kernel_maybe_done(group.kernel, spent, now);
}

// A job's kernels have the names of their launches.
const std::string& Cores::name_of_kernel(const KernelRun& kernel) const {
  const program::Linked* linked = program_.linked();
  if (linked == nullptr) return program_.kernels()[index(kernel.kernel)].name;
  return linked->launches[index(program_.frame(kernel.frame).launch)].name;
}

// The end of a kernel is a release: all its stores are acknowledged.
void Cores::kernel_maybe_done(std::int32_t run, const LatencyBreakdown& spent, std::int64_t now) {
  KernelRun& kernel = kernels_[index(run)];
  const bool running =
      kernel.done < static_cast<std::int32_t>(kernel.groups.size()) || kernel.stores > 0;
  // An acknowledgement may let the last wavefront end, which then is the end of the kernel.
  if (running || std::exchange(kernel.ended, true)) return;
  const std::int64_t latency =
      std::max<std::int64_t>(1, machine_.model(kernel.rank).launch_end_latency.fs);
  show_stream(kernel.rank, kernel.stream, name_of_kernel(kernel), kernel.began, now);
  show_stream(kernel.rank, kernel.stream, "end", now, now + latency);
  LatencyBreakdown later = spent;
  later.charge(Reason::launch, latency);
  push(now + latency, kStreamNext, kernel.rank, keep(later),
       static_cast<std::uint32_t>(kernel.stream));
}

}  // namespace hemiola::sim
