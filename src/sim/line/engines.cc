// The line engine: copy engines and NICs. Their events are a stage between CUs and slices; what
// they send are bursts, which take the way of all requests but have sizes of their own.

#include <algorithm>
#include <utility>

#include "sim/line/line.h"

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

bool Line::crosses_network(const machine::Machine& machine, const program::Bound& program) {
  for (int rank = 1; rank < program.ranks(); ++rank)
    if (machine.reach(0, rank) == machine::Reach::network) return true;
  return false;
}

// Which engines the program may use, and a stage for each rank's and each NIC.
void Line::make_engine_stages() {
  copies_ = has_port_channels(device_.program);
  nics_ = crosses_network(device_.machine, device_.program);
  if (!copies_ && !nics_) return;
  for (const int rank : simulated_) {
    const auto stage = static_cast<std::int32_t>(engine_stages_.size());
    engine_stages_.emplace_back();
    for (std::int32_t e = 0; e < device_.layout(rank).engines; ++e)
      stage_of_engine_[index(copy_engines_.first_engine()[index(rank)] + e)] = stage;
  }
  for (const std::int32_t engine : copy_engines_.nic_engine()) {
    if (engine < 0) continue;
    stage_of_engine_[index(engine)] = static_cast<std::int32_t>(engine_stages_.size());
    engine_stages_.emplace_back();
  }
}

// From the host of a rank to an engine it takes at least `from_host`, from there to whoever flushes
// at least `to_host`.
Line::EngineLatencies Line::engine_latencies() const {
  EngineLatencies least{.from_host = INT64_MAX, .to_host = INT64_MAX};
  for (const int rank : simulated_) {
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
void Line::push_engine(std::int32_t stage, const CoreEvent& event) {
  EngineStage& at = engine_stages_[index(stage)];
  if (at.worker != this_worker) {
    mine().to_engines[phase_ % 2][index(at.worker)].push_back({stage, event});
    return;
  }
  if (event.time < engines_from_) Calendar::late();
  at.events.push_back(event);
  if (event.sequence == 0) at.events.back().sequence = ++at.next_sequence;
  std::push_heap(at.events.begin(), at.events.end(), Later{});
  if (!std::exchange(at.busy, true)) mine().engines.push_back(stage);
}

// Stages do not meet each other: it does not matter which comes first.
void Line::run_engines(Worker& worker, std::int64_t end) {
  worker.posted.clear();
  for (std::size_t i = 0; i < worker.engines.size(); ++i) {
    worker.engine_at = worker.engines[i];
    std::vector<CoreEvent>& events = engine_stages_[index(worker.engine_at)].events;
    while (!events.empty() && events.front().time < end) happen(events);
  }
  std::erase_if(worker.engines, [this](std::int32_t stage) {
    EngineStage& at = engine_stages_[index(stage)];
    return at.events.empty() && std::exchange(at.busy, false);
  });
}

// What engines of all workers have told workgroups of this one in the phase before, in the order of
// engines.
void Line::take_posted() {
  std::vector<Posted> all;
  for (const Worker& from : workers_) {
    for (const Posted& posted : from.posted)
      if (stage(rank_of(kPosted, posted.group)).worker == this_worker) all.push_back(posted);
  }
  std::ranges::stable_sort(all, {}, &Posted::stage);
  for (const Posted& posted : all) {
    Gpu& gpu = stage(rank_of(kPosted, posted.group));
    if (gpu.done.is_over(posted.time)) Calendar::late();
    push_event(gpu, posted.time, kPosted, posted.group, posted.kept, 0);
  }
}

// Something of an engine comes to slices.
void Line::to_slices(std::int32_t id, std::int64_t time, std::uint32_t tag) {
  Request& request = device_.request(id);
  set_size(request);
  Gpu& gpu = stage(device_.home(request.place()));
  if (!gpu.slices.is_over(time)) {
    push_far(gpu.worker, gpu.slices, {time, tag, id});
    return;
  }
  if (!gpu.slices_run) Calendar::late();
  // Theirs, of the round that they are at.
  gpu.own.push_back({{time, tag, id}, tag == kLocalBursts ? request.accepted : gpu.own_flags++});
  std::push_heap(gpu.own.begin(), gpu.own.end(), OwnLater{});
}

// The next arrival at slices that walk `taken` from `next` on.
Arrival Line::next_at_slices(Gpu& gpu, const std::vector<Arrival>& taken, std::size_t& next) {
  const auto before = [&](const Own& own, const Arrival& other) {
    const Arrival& mine = own.arrival;
    if (mine.time != other.time) return mine.time < other.time;
    if (mine.tag != other.tag || mine.tag != kLocalBursts) return mine.tag < other.tag;
    return own.order - device_.request(other.id).accepted > INT32_MAX;  // it wraps round
  };
  if (gpu.own.empty() || (next < taken.size() && !before(gpu.own.front(), taken[next])))
    return taken[next++];
  std::pop_heap(gpu.own.begin(), gpu.own.end(), OwnLater{});
  const Arrival arrival = gpu.own.back().arrival;
  gpu.own.pop_back();
  return arrival;
}

void Line::set_size(Request& request) const {
  const bool burst = request.intent == Intent::burst;
  request.size = burst ? kLarge : static_cast<std::uint8_t>(sectors(request.bytes));
  request.local = request.target == request.source;
}

// A flag of a copy engine goes out.
void Line::leave(std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  set_size(request);
  request.stage = Stage::out;
  stage(request.source).io_out.push({now, kFromSlices, id});
}

void Line::burst_at_slice(int rank, std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  Gpu& gpu = stage(rank);
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
  if (device_.options.trace != nullptr) show(request, Reason::l2, now, left);
  request.carried = request.bytes;
  request.accepted = ++device_.gpus[index(rank)].accepted;
  memory_.take_effect(id, now, ready);
  copy_engines_.look_up_burst(id, ready);
}

// A burst has been read or written, or a flag of an engine is there.
void Line::answer_engine(int rank, std::int32_t id, std::int64_t now) {
  Request& request = device_.request(id);
  Gpu& gpu = stage(rank);
  if (request.reads_source) {
    copy_engines_.turn_to_destination(request);
    request.stage = Stage::out;
    if (request.local)
      to_slices(id, now, kLocalBursts);
    else
      gpu.io_out.push({now, kFromSlices, id});
    return;
  }
  if (request.train) now += end_lag(request);  // acknowledgements come together
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

void Line::burst_comes_home(std::int32_t id, std::int64_t time, std::uint32_t tag,
                            std::uint64_t sequence) {
  push_engine(engine_stage_of(device_.detail(device_.request(id)).engine),
              {.time = time, .sequence = sequence, .tag = tag, .kind = kComplete, .a = id});
}

// When the first packet of a burst leaves a server that was busy until `free`. Between packets that
// come slowly it serves others, so it is busy for as long as it serves.
std::int64_t Line::serve_large(std::int64_t& free, std::int64_t service, const Request& request,
                               std::int64_t arrival) {
  if (!request.train) return serve_at(free, service, arrival);
  Detail& train = device_.details[index(request.detail)];
  // What serves at all takes 1 fs, which rounds count on: see choose_rounds().
  const std::int64_t each = std::min(service, std::max<std::int64_t>(1, service / train.together));
  const std::int64_t first = std::max(free, arrival) + each;
  free = first - each + service;
  train.lag = std::max(free, arrival + train.lag + each) - first;
  return first;
}

// Each packet of a train at its own slice.
std::int64_t Line::train_at_slices(int rank, const Request& request, std::int64_t now) {
  Detail& train = device_.details[index(request.detail)];
  const Modulo& slices = device_.layout(rank).slice_of;
  const std::int64_t burst = device_.engines[index(train.engine)].burst;
  const std::int64_t service = device_.model(rank).l2_slice_rate.time_for(burst).fs;
  const auto lines = static_cast<std::int32_t>(burst / device_.lines.size);
  std::int64_t first = 0, last = 0;
  for (std::int32_t p = 0; p < train.together; ++p) {
    std::int64_t& free =
        stage(rank).slice_free[index(device_.slice_of(slices, request.line + p * lines))];
    const std::int64_t left = serve_at(free, service, now + train.lag * p / (train.together - 1));
    if (p == 0) first = left;
    last = std::max(last, left);
  }
  train.lag = last - first;
  return first;
}

// The last packet of a train is where the first one is: how much later.
std::int64_t Line::end_lag(Request& request) {
  const std::int64_t lag = std::exchange(device_.details[index(request.detail)].lag, 0);
  request.spent.charge(Reason::link, lag);
  return lag;
}

// What a port takes for a burst, and a link, which counts it.
std::int64_t Line::large_io_time(int rank, std::int32_t port, const Request& request) {
  if (request.stage == Stage::back_out)  // acknowledgements of a train
    return device_.details[index(request.detail)].together * stage(rank).io[index(port)][0];
  return device_.layout(rank).port_rates[index(port)].time_for(request.bytes).fs;
}

std::int64_t Line::packet_of(const Request& request) const {
  if (request.intent != Intent::burst) return 0;
  return device_.descriptors[index(device_.details[index(request.detail)].descriptor)].packet;
}

std::int64_t Line::large_link_time(std::int32_t link, const Request& request) {
  const std::int32_t together = device_.details[index(request.detail)].together;
  if (request.stage == Stage::back_out) {
    links_[index(link)].requests[0] += static_cast<std::uint32_t>(together);
    return together * (*links_[index(link)].costs)[0];
  }
  Server& server = device_.server(device_.fabric.link_base + link);
  server.requests += together - 1;
  return device_.fabric.service(server, request.bytes, packet_of(request));
}

}  // namespace hemiola::sim
