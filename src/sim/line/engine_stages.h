// Copy engines and NICs. Their events are a stage between CUs and slices; what they send are
// bursts, which take the way of all requests but have sizes of their own.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/device/device.h"
#include "sim/line/stages.h"

namespace hemiola::sim {

class CopyEngines;
class Links;
class Memory;
class Tracing;

class EngineStages {
 public:
  EngineStages(Device& device, CopyEngines& copy_engines, Links& links, Memory& memory,
               Stages& stages, Tracing& tracing)
      : device_(device),
        copy_engines_(copy_engines),
        links_(links),
        memory_(memory),
        stages_(stages),
        tracing_(tracing) {}

  static bool crosses_network(const machine::Machine& machine, const program::Bound& program);
  /// Which engines the program may use, and a stage for each rank's and each NIC.
  void make();
  /// From the host of a rank to an engine it takes at least `from_host`, from there to whoever
  /// flushes at least `to_host`, fs.
  struct Latencies {
    std::int64_t from_host, to_host;
  };
  Latencies latencies() const;
  std::int32_t stage_of(std::int32_t engine) const {
    return stages_.stage_of_engine[index(engine)];
  }
  void push_engine(std::int32_t stage, const CoreEvent& event);
  void take_posted();
  void to_slices(std::int32_t id, std::int64_t time, std::uint32_t tag);
  /// The next arrival at slices that walk `taken` from `next` on.
  Arrival next_at_slices(GpuStages& gpu, const std::vector<Arrival>& taken, std::size_t& next);
  void set_size(Request& request) const;
  void burst_at_slice(int rank, std::int32_t id, std::int64_t now);
  /// A burst has been read or written, or a flag of an engine is there.
  void answer_engine(int rank, std::int32_t id, std::int64_t now);
  void burst_comes_home(std::int32_t id, std::int64_t time, std::uint32_t tag,
                        std::uint64_t sequence);

 private:
  std::int64_t train_at_slices(int rank, const Request& request, std::int64_t now);

  Device& device_;
  CopyEngines& copy_engines_;
  Links& links_;
  Memory& memory_;
  Stages& stages_;
  Tracing& tracing_;
};

}  // namespace hemiola::sim
