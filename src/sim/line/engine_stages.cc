#include "sim/line/engine_stages.h"

#include <algorithm>
#include <utility>

#include "sim/device/copy_engines.h"
#include "sim/device/memory.h"
#include "sim/device/tracing.h"
#include "sim/line/links.h"
#include "sim/line/stages.h"

namespace hemiola::sim {
namespace {

using program::Channel;

/// Order tag at ports: behind what CUs and slices send.
constexpr std::uint32_t kLastAtPort = 1U << 26;

bool has_port_channels(const program::Bound& program) {
  for (const program::Body& body : program.bodies()) {
    for (const program::Op& op : body.ops)
      if (op.channel == Channel::port) return true;
  }
  return false;
}

}  // namespace

bool EngineStages::crosses_network(const machine::Machine& machine, const program::Bound& program) {
  for (int rank = 1; rank < program.ranks(); ++rank)
    if (machine.reach(0, rank) == machine::Reach::network) return true;
  return false;
}

void EngineStages::make() {
  stages_.copies = has_port_channels(device_.program);
  stages_.nics = crosses_network(device_.machine, device_.program);
  if (!stages_.copies && !stages_.nics) return;
  for (const int rank : stages_.simulated) {
    const auto stage = static_cast<std::int32_t>(stages_.engines.size());
    stages_.engines.emplace_back();
    for (std::int32_t e = 0; e < device_.layout(rank).engines; ++e)
      stages_.stage_of_engine[index(copy_engines_.first_engine()[index(rank)] + e)] = stage;
  }
  for (const std::int32_t engine : copy_engines_.nic_engine()) {
    if (engine < 0) continue;
    stages_.stage_of_engine[index(engine)] = static_cast<std::int32_t>(stages_.engines.size());
    stages_.engines.emplace_back();
  }
}

// From the host of a rank to an engine it takes at least `from_host`, from there to whoever flushes
// at least `to_host`.
EngineStages::Latencies EngineStages::latencies() const {
  Latencies least{.from_host = INT64_MAX, .to_host = INT64_MAX};
  for (const int rank : stages_.simulated) {
    const machine::GpuModel& model = device_.model(rank);
    least.from_host =
        std::min({least.from_host, std::max<std::int64_t>(1, model.proxy_request_time.fs),
                  std::max<std::int64_t>(1, model.proxy_network_time.fs)});
  }
  for (const EngineRun& engine : device_.engines) {
    if (!engine.pipelined) least.to_host = std::min(least.to_host, engine.start_latency);
    least.to_host = std::min(least.to_host, engine.end_latency);
  }
  return least;
}

// Its sequence among events of one time and tag is that of coming, if it has none.
void EngineStages::push_engine(std::int32_t stage, const CoreEvent& event) {
  EngineStage& at = stages_.engines[index(stage)];
  if (at.worker != this_worker) {
    stages_.mine().to_engines[stages_.phase % 2][index(at.worker)].push_back({stage, event});
    return;
  }
  if (event.time < stages_.engines_from) Calendar::late();
  at.events.push_back(event);
  if (event.sequence == 0) at.events.back().sequence = ++at.next_sequence;
  std::push_heap(at.events.begin(), at.events.end(), CoreEvent::Later{});
  if (!std::exchange(at.busy, true)) stages_.mine().engines.push_back(stage);
}

// What engines of all workers have told workgroups of this one in the phase before, in the order of
// engines.
void EngineStages::take_posted() {
  std::vector<RoundWorker::Posted> all;
  for (const RoundWorker& from : stages_.workers) {
    for (const RoundWorker::Posted& posted : from.posted)
      if (stages_.of(device_.group(posted.group).rank).worker == this_worker) all.push_back(posted);
  }
  std::ranges::stable_sort(all, {}, &RoundWorker::Posted::stage);
  for (const RoundWorker::Posted& posted : all) {
    GpuStages& gpu = stages_.of(device_.group(posted.group).rank);
    if (gpu.done.is_over(posted.time)) Calendar::late();
    gpu.push(posted.time, kPosted, posted.group, posted.kept, 0);
  }
}

// Something of an engine comes to slices.
void EngineStages::to_slices(std::int32_t id, std::int64_t time, std::uint32_t tag) {
  Request& request = device_.request(id);
  set_size(request);
  GpuStages& gpu = stages_.of(device_.home(request.place()));
  if (!gpu.slices.is_over(time)) {
    stages_.push_far(gpu.worker, gpu.slices, {time, tag, id});
    return;
  }
  if (!gpu.slices_run) Calendar::late();
  // Theirs, of the round that they are at.
  gpu.own.push_back({{time, tag, id}, tag == kLocalBursts ? request.accepted : gpu.own_flags++});
  std::push_heap(gpu.own.begin(), gpu.own.end(), GpuStages::OwnLater{});
}

Arrival EngineStages::next_at_slices(GpuStages& gpu, const std::vector<Arrival>& taken,
                                     std::size_t& next) {
  const auto before = [&](const GpuStages::Own& own, const Arrival& other) {
    const Arrival& mine = own.arrival;
    if (mine.time != other.time) return mine.time < other.time;
    if (mine.tag != other.tag || mine.tag != kLocalBursts) return mine.tag < other.tag;
    return own.order - device_.request(other.id).accepted > INT32_MAX;  // it wraps round
  };
  if (gpu.own.empty() || (next < taken.size() && !before(gpu.own.front(), taken[next])))
    return taken[next++];
  std::pop_heap(gpu.own.begin(), gpu.own.end(), GpuStages::OwnLater{});
  const Arrival arrival = gpu.own.back().arrival;
  gpu.own.pop_back();
  return arrival;
}

void EngineStages::set_size(Request& request) const {
  const bool burst = request.intent == Intent::burst;
  request.size = burst ? kLarge : static_cast<std::uint8_t>(stages_.sectors(request.bytes));
  request.local = request.target == request.source;
}

void EngineStages::burst_at_slice(int rank, std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  GpuStages& gpu = stages_.of(rank);
  if (request.line < 0) {  // it takes no time: see CopyEngines::pass_empty()
    copy_engines_.pass_empty(request, now);
    request.stage = request.reads_source ? Stage::out : Stage::back_out;
    if (request.reads_source) copy_engines_.turn_to_destination(request);
    gpu.io_out.push({now, kLastAtPort, id});
    return;
  }
  ++device_.counters().hops;
  const machine::GpuModel& model = device_.model(rank);
  const std::int64_t service = model.l2_slice_rate.time_for(request.bytes).fs;
  std::int64_t& free = gpu.slice_free[index(request.slice)];
  const std::int64_t left =
      request.train ? train_at_slices(rank, request, now) : serve_at(free, service, now);
  const std::int64_t ready = left + gpu.l2;
  request.spent.charge(Reason::l2, ready - now);
  if (device_.options.trace != nullptr) tracing_.show_request(request, Reason::l2, now, left);
  request.carried = request.bytes;
  request.accepted = ++device_.gpus[index(rank)].accepted;
  memory_.take_effect(id, now, ready);
  copy_engines_.look_up_burst(id, ready);
}

void EngineStages::answer_engine(int rank, std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  GpuStages& gpu = stages_.of(rank);
  if (request.reads_source) {
    copy_engines_.turn_to_destination(request);
    request.stage = Stage::out;
    if (request.local)
      to_slices(id, now, kLocalBursts);
    else
      gpu.io_out.push({now, kFromSlices, id});
    return;
  }
  if (request.train) now += links_.end_lag(request);  // acknowledgements come together
  request.stage = Stage::back_out;
  if (!request.local) {
    gpu.io_out.push({now, kFromSlices, id});
  } else if (request.intent == Intent::burst) {
    constexpr std::uint64_t kAfterOthers = std::uint64_t{1} << 62;
    burst_comes_home(id, now, gpu.home_slices, kAfterOthers | request.accepted);
  } else {
    device_.release(id);  // nobody waits for it
  }
}

void EngineStages::burst_comes_home(std::int32_t id, std::int64_t time, std::uint32_t tag,
                                    std::uint64_t sequence) {
  push_engine(stage_of(device_.detail(device_.request(id)).engine),
              {.time = time, .sequence = sequence, .tag = tag, .kind = kComplete, .a = id});
}

// Each packet of a train at its own slice.
std::int64_t EngineStages::train_at_slices(int rank, const Request& request, std::int64_t now) {
  Detail& train = device_.details[index(request.detail)];
  const Modulo& slices = device_.layout(rank).slice_of;
  const std::int64_t burst = device_.engines[index(train.engine)].burst;
  const std::int64_t service = device_.model(rank).l2_slice_rate.time_for(burst).fs;
  const auto lines = static_cast<std::int32_t>(burst / device_.lines.size);
  std::int64_t first = 0, last = 0;
  for (std::int32_t p = 0; p < train.together; ++p) {
    std::int64_t& free =
        stages_.of(rank).slice_free[index(device_.slice_of(slices, request.line + p * lines))];
    const std::int64_t left = serve_at(free, service, now + train.lag * p / (train.together - 1));
    if (p == 0) first = left;
    last = std::max(last, left);
  }
  train.lag = last - first;
  return first;
}

}  // namespace hemiola::sim
