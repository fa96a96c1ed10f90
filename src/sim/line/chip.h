// What is on the chip of a GPU: slices, memory and the crossbar.
#pragma once

#include <cstdint>

#include "sim/device/device.h"
#include "sim/line/stages.h"

namespace hemiola::sim {

class EngineStages;
class Memory;
class Sync;
class Tracing;

class Chip {
 public:
  Chip(Device& device, EngineStages& engine_stages, Memory& memory, Stages& stages, Sync& sync,
       Tracing& tracing)
      : device_(device),
        engine_stages_(engine_stages),
        memory_(memory),
        stages_(stages),
        sync_(sync),
        tracing_(tracing) {}

  // Stages of a round.
  void run_slices(int rank, std::int64_t round);
  void run_memory(int rank, std::int64_t round);
  void run_cu_in(int rank, std::int64_t round);
  void answer_at(std::int32_t id, std::int64_t time);

 private:
  bool look_up(int rank, std::int32_t id, Request& request, std::int64_t now, std::int64_t& ready,
               Counters& counters);
  void write_back(int rank, std::int32_t line, std::int64_t now);
  void answer(int rank, std::int32_t id, Request& request, std::int64_t now);
  static void forget_fills(GpuStages& gpu, std::int64_t before);
  // polls.cc
  bool is_alone(Wave& wave, std::int32_t first) const;
  bool poll_again(int rank, std::int32_t id, std::int64_t now);

  Device& device_;
  EngineStages& engine_stages_;
  Memory& memory_;
  Stages& stages_;
  Sync& sync_;
  Tracing& tracing_;
};

}  // namespace hemiola::sim
