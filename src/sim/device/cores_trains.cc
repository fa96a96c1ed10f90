// Cores: trains, packets of an engine that go together between the windows of a sampled run.
//
// A request stands for all of them. Its time is that of the first packet; Detail::lag is by how
// much the last one is behind. Servers that it visits are busy for all of them.

#include <algorithm>

#include "sim/device/cores.h"

namespace hemiola::sim {

// How many packets the engine sends next as one request, `offset` bytes into the descriptor.
std::int64_t Cores::packets_together(const EngineRun& engine, const Descriptor& descriptor,
                                     std::int64_t offset, std::int64_t now) const {
  if (sampling_ == nullptr || !sampling_->skips(now) || !fabric_.arbiters.empty()) return 1;
  if (!descriptor.legs.empty() || descriptor.src.run > 0 || descriptor.dst.run > 0) return 1;
  if (engine.packet == 0 || engine.burst % engine.packet != 0) return 1;
  const std::int64_t left = (descriptor.bytes - offset + engine.burst - 1) / engine.burst;
  return std::clamp<std::int64_t>(
      Trains::length(descriptor.bytes, engine.burst, engine.outstanding_limit), 1,
      std::max<std::int64_t>(1, left));
}

// It has been served by its engine at `departure`: when the first packet had been.
std::int64_t Cores::begin_train(Request& request, const Server& server, std::int64_t packets,
                                std::int64_t departure) {
  Detail& train = detail(request);
  const Descriptor& descriptor = descriptors_[index(train.descriptor)];
  train.together = static_cast<std::int32_t>(packets);
  request.train = packets > 1;
  if (!request.train) return departure;
  train.lag = server.memo_time - server.memo_time / packets;
  request.spent.take_back(engines_[index(train.engine)].reason, departure - train.lag);
  constexpr std::int64_t kInGpus = 6;  // slices and ports, there and back
  const std::int64_t links =
      request.target == request.source ? 0 : std::ssize(fabric_.path(request.route).links);
  sampling_->trains().send(packets, request.bytes, descriptor.bytes, kInGpus + 2 * links);
  return departure - train.lag;
}

// Lines that are passed over are where they would be in caches as far as somebody may look for them
// when lines are simulated again.
void Cores::look_up_train(std::int32_t id, std::int64_t ready) {
  Request& request = requests_[index(id)];
  const int rank = request.place();
  const bool read = request.reads_source;
  const std::int64_t from = std::int64_t{request.line} << line_shift_;
  if (sampling_->warms(ready)) touch_lines(rank, from, from + request.bytes, !read, -1);
  const bool cached = gpu(rank).l2.exists();
  const std::int64_t lines = (request.bytes + line_size_ - 1) / line_size_;
  const BurstLookUps found =
      cached ? sampling_->trains().pass(read, lines) : BurstLookUps{.lines = lines};
  const std::int64_t missing = !cached ? request.bytes
                               : read  ? (lines - found.hits) * line_size_
                                       : 0;
  if (missing == 0) {
    answer_at(id, ready);
    return;
  }
  request.carried = static_cast<std::int32_t>(missing);
  to_memory(id, ready);
}

// Each packet at its own channel.
std::int64_t Cores::train_through_memory(Request& request, std::int64_t now) {
  Detail& train = detail(request);
  const std::int32_t line = request.line, carried = request.carried;
  const auto lines = static_cast<std::int32_t>(
      std::max<std::int64_t>(1, engines_[index(train.engine)].burst / line_size_));
  const LatencyBreakdown spent = request.spent;
  request.train = false;
  request.carried = std::max(1, carried / train.together);
  LatencyBreakdown of_first;
  std::int64_t first = 0, last = 0;
  for (std::int32_t p = 0; p < train.together; ++p) {
    request.spent = spent;
    request.line = line + p * lines;
    const std::int64_t time = through_memory(request, now + train.lag * p / (train.together - 1));
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
