// Host proxies, copy engines and NICs; bursts on their way (bursts.cc).
//
// A copy engine does one descriptor after the other and writes its flag when all of it is
// acknowledged. A NIC has many messages under way; per pair of ranks they are delivered in order,
// and the NIC at the destination writes the flag behind the last packet.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/device/device.h"
#include "sim/device/transport.h"

namespace hemiola::sim {

class CopyQueues;
class Memory;
class Servers;
class Skips;
class Tracing;

class CopyEngines {
 public:
  CopyEngines(Device& device, Transport& transport, CopyQueues& copy_queues, Memory& memory,
              Servers& servers, Skips& skips, Tracing& tracing)
      : device_(device),
        transport_(transport),
        copy_queues_(copy_queues),
        memory_(memory),
        servers_(servers),
        skips_(skips),
        tracing_(tracing) {}

  void make_engines();
  /// A workgroup's, to the proxy of its rank; then at the proxy.
  void post(std::int32_t wave, const program::Primitive& primitive, std::int64_t now);
  void at_proxy(std::int32_t descriptor, std::int64_t now);
  void posted_done(std::int32_t group, const LatencyBreakdown& spent, std::int64_t now);
  // At an engine: a new descriptor, -1: it goes on; a descriptor is complete.
  void at_engine(std::int32_t engine, std::int32_t descriptor, std::int64_t now);
  void engine_done(std::int32_t engine, std::int32_t descriptor, std::int64_t now);
  std::int32_t engine_for(const Descriptor& descriptor) const;
  // Bursts: at slices, in memory, back at their engine.
  void look_up_burst(std::int32_t id, std::int64_t ready);
  void turn_to_destination(Request& request);
  void pass_empty(Request& request, std::int64_t now);
  void delivered(const Request& request, std::int64_t now);
  std::int64_t train_through_memory(Request& request, std::int64_t now);
  void burst_done(std::int32_t id, std::int64_t now);
  void flag_of_copy(const Descriptor& descriptor, const LatencyBreakdown& spent,
                    program::SemaphoreId id, std::int64_t now);
  const std::vector<std::int32_t>& first_engine() const { return first_engine_; }
  const std::vector<std::int32_t>& nic_engine() const { return nic_engine_; }

 private:
  void engine_start(std::int32_t engine, SendQueue& queue, std::int64_t now);
  void engine_inject(std::int32_t engine, SendQueue& queue, std::int64_t now);
  void inject_burst(std::int32_t engine, SendQueue& queue, std::int64_t together, std::int64_t now);
  void finish(std::int32_t engine, std::int32_t descriptor, std::int64_t time);
  std::uint32_t tag_of_burst(const Descriptor& from, std::int32_t engine, int rank, int to) const;
  std::int32_t make_flag(int source, program::SemaphoreId semaphore, const LatencyBreakdown& spent,
                         SpanId by);
  void find_before(const Descriptor& descriptor);
  std::int64_t packets_together(const EngineRun& engine, const Descriptor& descriptor,
                                std::int64_t offset, std::int64_t now) const;
  std::int64_t begin_train(Request& request, const Server& server, std::int64_t packets,
                           std::int64_t departure);
  void look_up_train(std::int32_t id, std::int64_t ready);

  Device& device_;
  Transport& transport_;
  CopyQueues& copy_queues_;
  Memory& memory_;
  Servers& servers_;
  Skips& skips_;
  Tracing& tracing_;
  std::vector<std::int32_t> first_engine_;  ///< by rank
  std::vector<std::int32_t> nic_engine_;    ///< by node: its engine, or -1
};

}  // namespace hemiola::sim
