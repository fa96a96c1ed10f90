// Bursts of engines on their way: at slices, in memory, at their destination.

#include <algorithm>
#include <utility>

#include "sim/device/copy_engines.h"
#include "sim/device/memory.h"
#include "sim/device/skips.h"

namespace hemiola::sim {

// A burst has read its source and goes to its destination.
void CopyEngines::turn_to_destination(Request& request) {
  request.reads_source = false;
  Detail& burst = device_.detail(request);
  std::swap(request.line, burst.destination);
  std::swap(request.slice, burst.destination_slice);
}

// A burst covers several lines; one access to memory fetches those that miss.
void CopyEngines::look_up_burst(std::int32_t id, std::int64_t ready) {
  Request& request = device_.request(id);
  if (request.train) return look_up_train(id, ready);
  const int rank = request.place();
  GpuState& gpu = device_.gpu(rank);
  std::int64_t missing = gpu.l2.exists() ? 0 : request.bytes;
  BurstLookUps found;
  const std::int64_t lines = (request.bytes + device_.lines.size - 1) / device_.lines.size;
  for (std::int32_t l = 0; l < lines && gpu.l2.exists(); ++l) {
    const std::int32_t line = request.line + l;
    const Tags::Outcome outcome =
        gpu.l2.access(line, device_.slice_of(rank, line), !request.reads_source);
    ++(outcome.hit ? device_.counters().l2_hits : device_.counters().l2_misses);
    found.add({1, outcome.hit ? 1 : 0, outcome.evicted_dirty ? 1 : 0});
    if (outcome.evicted_dirty)
      transport_.to_memory(memory_.make_write_back(rank, outcome.victim), ready);
    if (!outcome.hit && request.reads_source) missing += device_.lines.size;
  }
  if (device_.sampling != nullptr) {
    device_.sampling->trains.saw(request.reads_source, found);
    device_.sampling->windows.see_packet();
  }
  if (missing == 0) {
    transport_.answer_at(id, ready);
    return;
  }
  request.carried = static_cast<std::int32_t>(missing);
  transport_.to_memory(id, ready);
}

// A message without data has nothing to read or to write, but takes its place in the order. It is
// at its port at once, behind all that comes there at the same time (its order tag at slices is
// a higher one).
void CopyEngines::pass_empty(Request& request, std::int64_t now) {
  request.accepted = ++device_.gpu(request.place()).accepted;
  if (!request.reads_source) delivered(request, now);
}

// A packet of a message has reached the memory of its destination. Flags follow in the order of the
// flow.
void CopyEngines::delivered(const Request& request, std::int64_t now) {
  const Detail& packet = device_.detail(request);
  const Descriptor& descriptor = device_.descriptors[index(packet.descriptor)];
  if (!descriptor.message) return;
  Flow& flow = device_.gpu(request.target).flows[pair_key(request.source, request.target)];
  Flow::Message& message = flow.messages[descriptor.number];
  if (packet.packets >= 0) {
    message.packets = packet.packets;
    message.semaphores = descriptor.semaphores;
    message.span = descriptor.flow.span;
  }
  message.came += packet.together;
  flow.came = std::max(flow.came, now + packet.lag);
  while (!flow.messages.empty() && flow.messages.begin()->first == flow.next) {
    const Flow::Message& first = flow.messages.begin()->second;
    if (first.came != first.packets) return;
    for (const program::SemaphoreId semaphore : first.semaphores) {
      const std::int32_t flag_id =
          make_flag(semaphore.rank, semaphore, Memory::until_accepted(request, now), first.span);
      Request& flag = device_.request(flag_id);
      flag.spent.charge(Reason::link, flow.came - now);
      flag.spent.charge(Reason::nic, 1);
      flag.stage = Stage::in;
      transport_.push(flow.came + 1, kLegEnd, flag_id, 0, kFlagsOfNics);
    }
    flow.messages.erase(flow.messages.begin());
    ++flow.next;
  }
}

// --- Trains: packets of an engine that go together between the windows of a sampled run. A request
// stands for all of them. Its time is that of the first packet; Detail::lag is by how much the last
// one is behind. Servers that it visits are busy for all of them.

// How many packets the engine sends next as one request, `offset` bytes into the descriptor.
std::int64_t CopyEngines::packets_together(const EngineRun& engine, const Descriptor& descriptor,
                                           std::int64_t offset, std::int64_t now) const {
  if (device_.sampling == nullptr || !device_.sampling->windows.skips(now) ||
      !device_.fabric.arbiters.empty())
    return 1;
  if (!descriptor.legs.empty() || descriptor.src.run > 0 || descriptor.dst.run > 0) return 1;
  if (engine.packet == 0 || engine.burst % engine.packet != 0) return 1;
  const std::int64_t left = (descriptor.bytes - offset + engine.burst - 1) / engine.burst;
  return std::clamp<std::int64_t>(
      Trains::length(descriptor.bytes, engine.burst, engine.outstanding_limit), 1,
      std::max<std::int64_t>(1, left));
}

// It has been served by its engine at `departure`: when the first packet had been.
std::int64_t CopyEngines::begin_train(Request& request, const Server& server, std::int64_t packets,
                                      std::int64_t departure) {
  Detail& train = device_.detail(request);
  const Descriptor& descriptor = device_.descriptors[index(train.descriptor)];
  train.together = static_cast<std::int32_t>(packets);
  request.train = packets > 1;
  if (!request.train) return departure;
  train.lag = server.memo_time - server.memo_time / packets;
  request.spent.take_back(device_.engines[index(train.engine)].reason, departure - train.lag);
  constexpr std::int64_t kInGpus = 6;  // slices and ports, there and back
  const std::int64_t links =
      request.target == request.source ? 0 : std::ssize(device_.fabric.path(request.route).links);
  device_.sampling->trains.send(packets, request.bytes, descriptor.bytes, kInGpus + 2 * links);
  return departure - train.lag;
}

// Lines that are passed over are where they would be in caches as far as somebody may look for them
// when lines are simulated again.
void CopyEngines::look_up_train(std::int32_t id, std::int64_t ready) {
  Request& request = device_.request(id);
  const int rank = request.place();
  const bool read = request.reads_source;
  const std::int64_t from = std::int64_t{request.line} << device_.lines.shift;
  if (device_.sampling->windows.warms(ready))
    skips_.touch_lines(rank, from, from + request.bytes, !read, -1);
  const bool cached = device_.gpu(rank).l2.exists();
  const std::int64_t lines = (request.bytes + device_.lines.size - 1) / device_.lines.size;
  const BurstLookUps found =
      cached ? device_.sampling->trains.pass(read, lines) : BurstLookUps{.lines = lines};
  const std::int64_t missing = !cached ? request.bytes
                               : read  ? (lines - found.hits) * device_.lines.size
                                       : 0;
  if (missing == 0) {
    transport_.answer_at(id, ready);
    return;
  }
  request.carried = static_cast<std::int32_t>(missing);
  transport_.to_memory(id, ready);
}

// Each packet at its own channel.
std::int64_t CopyEngines::train_through_memory(Request& request, std::int64_t now) {
  Detail& train = device_.detail(request);
  const std::int32_t line = request.line, carried = request.carried;
  const auto lines = static_cast<std::int32_t>(
      std::max<std::int64_t>(1, device_.engines[index(train.engine)].burst / device_.lines.size));
  const LatencyBreakdown spent = request.spent;
  request.train = false;
  request.carried = std::max(1, carried / train.together);
  LatencyBreakdown of_first;
  std::int64_t first = 0, last = 0;
  for (std::int32_t p = 0; p < train.together; ++p) {
    request.spent = spent;
    request.line = line + p * lines;
    const std::int64_t time =
        memory_.through_memory(request, now + train.lag * p / (train.together - 1));
    if (p == 0) {
      first = time;
      of_first = request.spent;
    }
    last = std::max(last, time);
  }
  request.spent = of_first;
  request.train = true;
  request.line = line;
  request.carried = carried;
  train.lag = last - first;
  return first;
}

}  // namespace hemiola::sim
