// Semaphores of the fluid engine: flags on their way to them, and agents that wait for them.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sim/fluid/streams.h"

namespace hemiola::sim::fluid {

class Flags {
 public:
  Flags(Run& run, Streams& streams);

  /// A flag of rank `from` leaves after `at`; `members` of a class do so. `agent`: a workgroup
  /// whose kernel ends when it is acknowledged, or -1.
  void send(std::int32_t agent, int from, program::SemaphoreId id, std::int64_t increment,
            std::int64_t members, const Moment& at);
  /// The NIC at the destination writes it, behind data that are there at `at`.
  void write(program::SemaphoreId id, std::int64_t members, const Moment& at);
  void depart(std::int32_t signal, std::int64_t now);
  /// Its flow over links is over.
  void crossed(std::int32_t signal, const Attribution& spent, std::int64_t now);
  void arrive(std::int32_t signal, std::int64_t now);

  /// Whether an agent's wait is over; else it sleeps until it is.
  bool wait(std::int32_t agent);
  /// What the wait of an agent lacks, in words; empty: nothing.
  std::string missing(const Walker& walker) const;

 private:
  struct Signal {
    std::int32_t agent = -1;
    std::int32_t from = 0;
    program::SemaphoreId id{};
    std::int64_t increment = 1;
    std::int64_t members = 1;
    Attribution spent{};
  };
  struct SemaphoreState {
    std::int64_t value = 0;
    std::vector<std::pair<std::int32_t, std::uint32_t>> waiting;  ///< agents, and which wait
  };
  /// Of an agent.
  struct Wait {
    std::int64_t began = 0;
    std::uint32_t number = 0;
    std::vector<bool> seen;  ///< by semaphore of the present primitive
  };

  void add_to(std::int32_t semaphore, std::int64_t increment, std::int64_t now,
              const Attribution& spent);
  bool look(const Walker& walker, const program::Primitive& primitive);
  void seen(Walker& walker, std::int64_t now, const Attribution& cause);
  std::int32_t semaphore_class(program::SemaphoreId id) const;
  std::int64_t semaphores_in(program::SemaphoreId id) const;

  Run& run_;
  Streams& streams_;
  std::vector<SemaphoreState> semaphores_;  ///< by class
  std::vector<Wait> waits_;                 ///< by agent
  Pool<Signal, kFew> signals_;
};

}  // namespace hemiola::sim::fluid
