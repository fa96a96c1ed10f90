// Host proxies, copy engines and NICs of the fluid engine: a flow for each descriptor, or for as
// much of a message as a NIC sends at once.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "sim/fluid/flags.h"
#include "sim/model/engines.h"

namespace hemiola::sim::fluid {

class Engines {
 public:
  Engines(Run& run, Streams& streams, Flags& flags);

  /// A workgroup posts its present primitive.
  void post(Walker& walker);
  /// Whether all that it has posted is done; else it waits for descriptor_done().
  bool flush(Walker& walker) const;
  /// A queue of copies hands over its present submission, and waits for descriptor_done().
  void queue_copy(std::int32_t agent);

  /// Events, and the end of a flow.
  void to_engine(std::int32_t descriptor, std::int64_t now);
  void begin_transfer(std::int32_t engine, std::int64_t now);
  void transferred(std::int32_t engine, std::int32_t descriptor, const Attribution& spent,
                   std::int64_t now);
  /// Whoever goes on now, or -1.
  std::int32_t descriptor_done(std::int32_t descriptor, std::int64_t now);

 private:
  struct Descriptor {
    std::int32_t agent = 0;
    std::int32_t rank = 0, from = 0, to = 0;
    std::int64_t bytes = 0, members = 1;
    std::int64_t began = 0;
    bool remote = false, queue = false;
    std::vector<CopyLeg> legs;  ///< of a queue; one command after the other
    std::size_t leg = 0;        ///< the first of the present command
    std::int64_t run = 0;       ///< bytes of a row
    std::int64_t start = -1;    ///< latency before the first byte; -1: the engine's own
    // A message: how many of them a NIC has of it; bytes that left it, that arrived, of its flow.
    std::int64_t per_nic = 1, injected = 0, arrived = 0, part = 0;
    std::size_t pair = 0;  ///< ... and its queue pair
    std::vector<program::SemaphoreId> semaphores;
    Attribution spent{};
  };
  /// Of a message, as much as a NIC sends at once.
  struct Part {
    std::int32_t descriptor = 0;
    std::int64_t bytes = 0;
  };
  /// Messages of a NIC to one rank, which arrive one after the other.
  struct QueuePair {
    int to = 0;
    bool under_way = false;      ///< a flow is
    bool waits = false;          ///< its window is full
    std::deque<Part> behind{};   ///< parts that left the NIC and wait for that flow
    std::int64_t in_flight = 0;  ///< bytes of both
  };
  struct Engine {
    std::int32_t rank_class = 0;
    std::deque<std::int32_t> queue;
    bool active = false, nic = false;
    // A NIC: its own port is free again at `free`, while parts may still be on their way.
    std::vector<QueuePair> pairs{};
    std::int64_t free = 0;
    std::int64_t burst = 0, packet = 0, outstanding = 0, start = 0, end = 0, row = 0;
    Rate rate{};
    Reason reason = Reason::dma;
    Attribution spent{};
  };
  /// Descriptors of a workgroup.
  struct Posted {
    std::int64_t all = 0, done = 0;
  };

  std::int32_t make_descriptor(Walker& walker, bool queue);
  std::int32_t engine_for(const Descriptor& descriptor);
  void start_transfer(std::int32_t engine, std::int64_t now);
  void send_messages(std::int32_t nic, std::int64_t now);
  std::deque<std::int32_t>::iterator next_message(Engine& nic) const;
  std::int64_t bytes_of(const Descriptor& message) const;
  std::int64_t next_part(const Engine& nic, const Descriptor& message) const;
  void start_transfer_flow(std::int32_t engine, std::int32_t descriptor, const Attribution& spent);
  void part_arrived(std::int32_t nic, const Descriptor& message, const Attribution& spent,
                    std::int64_t now);
  std::int64_t part_of_engine(const Engine& engine) const;
  std::int64_t rate_limit(const Engine& engine, std::int64_t run, std::int64_t back) const;

  Run& run_;
  Streams& streams_;
  Flags& flags_;
  Pool<Descriptor, kFew> descriptors_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> engine_of_;
  std::deque<Engine> engines_;
  std::vector<Posted> posted_;            ///< by agent
  std::vector<std::int64_t> proxy_free_;  ///< by class of ranks
};

}  // namespace hemiola::sim::fluid
