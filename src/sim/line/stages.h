// The stages of a run, which a round visits one after the other, and who does them: plain data, and
// what all of them need to hand arrivals on.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/device/device.h"
#include "sim/device/transport.h"
#include "sim/line/arrivals.h"
#include "sim/model/receive_buffers.h"
#include "sim/support/calendar.h"
#include "sim/support/line_map.h"
#include "sim/support/prefetch.h"
#include "sim/support/worker.h"

namespace hemiola::sim {

/// Something that happens at one rank's host or wavefronts, or at an engine.
struct CoreEvent {
  std::int64_t time = 0;
  std::uint64_t sequence = 0;
  std::uint32_t tag = 0;
  EventKind kind = kWave;
  std::int32_t a = 0, b = 0;

  struct Later {
    bool operator()(const CoreEvent& x, const CoreEvent& y) const {
      if (x.time != y.time) return x.time > y.time;
      if (x.tag != y.tag) return x.tag > y.tag;
      return x.sequence > y.sequence;
    }
  };
};

/// Sizes of requests in sectors, from 0 (no payload) to a line.
constexpr std::size_t kMostSectors = 8;
constexpr std::uint8_t kLarge = kMostSectors + 1;              ///< a burst: any number of bytes
using SizeCosts = std::array<std::int64_t, kMostSectors + 1>;  ///< fs, by sectors

/// A link, as far as requests at it need it.
struct alignas(64) LinkState {
  std::int64_t free = 0;                                   ///< fs: previous departure
  std::int64_t max_wait = 0;                               ///< fs
  const SizeCosts* costs = nullptr;                        ///< of its class
  std::array<std::uint32_t, kMostSectors + 1> requests{};  ///< by sectors
  std::int32_t calendar = -1;                              ///< -1: one input feeds it
};

/// A rank's copy engines, or a NIC.
struct EngineStage {
  std::vector<CoreEvent> events;  ///< heap
  std::uint64_t next_sequence = 0;
  int worker = 0;
  bool busy = false;  ///< in RoundWorker::engines
};

/// A switch of multicast groups.
struct SwitchStage {
  Calendar answers;  ///< of members
  machine::NodeId node = 0;
  int worker = 0;
};

/// Who does the stages of some ranks, and links at which inputs meet. Nothing of one worker is
/// touched by another in a phase of a round: what goes there waits in `out` for the next phase.
struct alignas(128) RoundWorker {
  /// Something for a stage of another worker; `merge`: its number, where it is that of a link.
  struct Parcel {
    Calendar* calendar = nullptr;
    std::int32_t merge = -1;
    Arrival arrival;
  };
  /// An event for an engine stage of another worker.
  struct EngineParcel {
    std::int32_t stage = 0;
    CoreEvent event;
  };
  /// An engine has done what a workgroup has posted.
  struct Posted {
    std::int32_t stage = 0;
    std::int64_t time = 0;
    std::int32_t group = 0, kept = 0;
  };

  std::vector<int> ranks;
  /// Its words of Stages::busy_merges, by level of links.
  std::vector<std::pair<std::size_t, std::size_t>> words;
  /// By phase (the present one and the one before take turns), then by worker that gets them.
  std::array<std::vector<std::vector<Parcel>>, 2> out;
  std::array<std::vector<std::vector<EngineParcel>>, 2> to_engines;
  std::vector<std::int32_t> engines;          ///< its engine stages that have events
  std::int32_t engine_at = -1;                ///< the one at work
  std::vector<Posted> posted;                 ///< by the round's engines, for any rank
  std::vector<Arrival> done, taken, scratch;  ///< of the stage at hand: memory that is kept
  std::vector<std::vector<Arrival>> by_port;
  SpareRounds spare;      ///< of its stages
  std::int64_t next = 0;  ///< its next round
};

/// The stages of a GPU, in the order in which a round visits them; servers and what they cost.
struct GpuStages {
  /// A line that is on its way into an L2.
  struct Fill {
    std::int64_t time = -1;              ///< when it is there; -1: not known yet
    std::int32_t first = -1, last = -1;  ///< requests that wait for it, linked by next_pending
  };
  /// What slices, or those who answer for them, send to the same slices in the round at hand.
  struct Own {
    Arrival arrival;
    std::uint32_t order = 0;  ///< among equal ones
  };
  struct OwnLater {
    bool operator()(const Own& x, const Own& y) const {
      if (x.arrival.time != y.arrival.time) return x.arrival.time > y.arrival.time;
      if (x.arrival.tag != y.arrival.tag) return x.arrival.tag > y.arrival.tag;
      return y.order - x.order > INT32_MAX;  // it wraps round
    }
  };

  Calendar done;  ///< completions at its CUs
  Calendar slices;
  Calendar memory;  ///< memory-side cache and HBM
  Calendar cu_in;
  Calendar io_out;
  Calendar ingress;  ///< replay: what comes in at its ports
  std::array<Calendar*, 6> calendars() {
    return {&done, &slices, &memory, &cu_in, &io_out, &ingress};
  }
  std::vector<CoreEvent> events;  ///< heap
  std::uint64_t next_sequence = 0;
  std::uint64_t bursts_home = 0;  ///< that have come back to its ports
  int worker = 0;
  std::vector<Own> own;         ///< heap, of its slices
  std::uint32_t own_flags = 0;  ///< that have been there
  bool slices_run = false;      ///< their round is at hand
  LineMap<Fill> fills;
  std::vector<std::pair<std::int64_t, std::int32_t>> filled;  ///< times and lines of fills
  std::vector<std::int64_t> cu_out_free, cu_in_free, slice_free, io_out_free, io_in_free;
  SizeCosts cu_out_costs{}, cu_in_costs{}, slice{}, operand{};
  std::vector<SizeCosts> io;                                    ///< by port
  std::int64_t flag_cost = 0, noc = 0, io_latency = 0, l2 = 0;  ///< fs
  std::int64_t partition = 0;                                   ///< fs more to another partition
  std::vector<std::uint8_t> partition_of_cu, partition_of_slice;
  std::uint32_t home_cu_in = 0, home_slices = 0, home_port = 0;  ///< first tags of completions

  void push(std::int64_t time, EventKind kind, std::int32_t a, std::int32_t b, std::uint32_t tag) {
    events.push_back({time, next_sequence++, tag, kind, a, b});
    std::push_heap(events.begin(), events.end(), CoreEvent::Later{});
  }
  /// Between its CU and its slice, or the partition of the CU.
  std::int64_t way(const Request& request) const {
    const bool near = request.near || partition_of_cu[index(request.cu)] ==
                                          partition_of_slice[index(request.slice)];
    return near ? noc : noc + partition;
  }
};

/// First in, first out: when it leaves a server that was busy until `free`.
inline std::int64_t serve_at(std::int64_t& free, std::int64_t service, std::int64_t arrival) {
  free = std::max(free, arrival) + service;
  return free;
}

struct Stages {
  explicit Stages(Device& device);

  GpuStages& of(std::int32_t rank) { return gpus[index(gpu_of[index(rank)])]; }
  RoundWorker& mine() { return workers[index(this_worker)]; }
  bool has_engines() const { return copies || nics; }
  void push_merge(std::int32_t merge, Arrival arrival) {
    const int worker = worker_of_word[index(merge >> 6)];
    if (worker != this_worker) {
      mine().out[phase % 2][index(worker)].push_back({&merges[index(merge)], merge, arrival});
      return;
    }
    merges[index(merge)].push(arrival);
    busy_merges[index(merge >> 6)] |= std::uint64_t{1} << (merge & 63);
  }
  /// To a stage that may be another worker's.
  void push_far(int worker, Calendar& calendar, Arrival arrival) {
    if (worker != this_worker)
      mine().out[phase % 2][index(worker)].push_back({&calendar, -1, arrival});
    else
      calendar.push(arrival);
  }
  /// For a trace, a recording or a replay.
  bool is_watching() const {
    const Options& options = device.options;
    return options.trace != nullptr || options.record != nullptr || options.replay != nullptr;
  }
  /// For one of these, or for queues.
  bool looks_closely() const { return is_watching() || !device.fabric.arbiters.empty(); }
  /// Where requests wait to be chosen, or for credits; nullptr: first come, first served.
  Arbiter* queue_of(std::int32_t server) {
    const std::int32_t arbiter = device.server(server).arbiter;
    return arbiter < 0 ? nullptr : &device.fabric.arbiters[index(arbiter)];
  }
  Arbiter* link_queue(std::int32_t link) { return queue_of(device.fabric.link_base + link); }
  std::size_t sectors(std::int32_t bytes) const {
    return index(bytes >> device.lines.sector_shift);
  }

  // What comes to a stage in a round, in the order in which it accepts. False: nothing.
  bool take_by_tag(Calendar& calendar, std::int64_t round, std::vector<Arrival>& taken);
  bool take_with_answers(Calendar& calendar, std::int64_t round, std::uint32_t first,
                         std::uint32_t last, std::vector<Arrival>& taken);
  void prefetch(const std::vector<Arrival>& arrivals, std::size_t i) const {
    if (i < arrivals.size()) prefetch_line(&device.request(arrivals[i].id));
  }
  void prefetch_whole(const std::vector<Arrival>& arrivals, std::size_t i) const {
    prefetch(arrivals, i);
    if (i < arrivals.size()) prefetch_line(&device.request(arrivals[i].id).hops);
  }
  void prefetch_detail(const std::vector<Arrival>& arrivals, std::size_t i) const {
    if (i >= arrivals.size()) return;
    const Request& request = device.request(arrivals[i].id);
    if (request.takes) prefetch_line(&device.details[index(request.detail)]);
  }
  void prefetch_first(const std::vector<Arrival>& arrivals, bool whole = false) const {
    for (std::size_t i = 0; i < std::min(kAhead, arrivals.size()); ++i)
      whole ? prefetch_whole(arrivals, i) : prefetch(arrivals, i);
  }

  Device& device;
  std::vector<int> simulated;        ///< ranks, of one period, that are not others of a replay
  std::vector<GpuStages> gpus;       ///< of those
  std::vector<std::int32_t> gpu_of;  ///< by rank
  // Of programs that use copy engines or NICs.
  bool copies = false, nics = false;
  std::vector<EngineStage> engines;           ///< of each rank's, of each NIC
  std::vector<std::int32_t> stage_of_engine;  ///< by engine
  std::int64_t engine_offset = 0;             ///< fs, of these stages
  std::int64_t engines_from = INT64_MIN;      ///< fs: end of their last round
  std::vector<SwitchStage> switches;
  /// Links at which several inputs meet, by worker and level; both begin at multiples of 64.
  std::vector<Calendar> merges;
  std::vector<std::uint64_t> busy_merges;    ///< a bit for each: something is to come there
  std::vector<std::int16_t> worker_of_word;  ///< of those
  /// By calendar: its link, if that has a queue; or -1; or -2 - s: that of finite_switches[s].
  std::vector<std::int32_t> queued;
  std::vector<FiniteSwitch> finite_switches;
  std::vector<LinkState> links;
  std::vector<SizeCosts> link_costs;  ///< by link class
  std::vector<RoundWorker> workers;
  std::uint64_t phase = 1;
  int shift = 0;                                   ///< rounds last 2^shift fs
  std::int64_t latest_offset = 0, last_round = 0;  ///< fs: of all stages
};

}  // namespace hemiola::sim
