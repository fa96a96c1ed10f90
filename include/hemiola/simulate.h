// Simulations: which engine, and what comes out.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hemiola/units.h"

namespace hemiola {

/// `line` (the default) and `reference` give the same times and counters, cache line by cache line;
/// `sampled` is `line` in windows, with a bound of its error (docs/sampled.md); `fluid` estimates,
/// with chunks that share bandwidth (docs/line_engine.md, docs/fluid.md).
enum class Engine : std::uint8_t { reference, line, fluid, sampled };
/// How hosts start kernels: one call each, or as a graph.
enum class LaunchMode : std::uint8_t { stream, graph };
std::string name_of(Engine engine);  ///< "reference", "line", "fluid", "sampled"
std::string name_of(LaunchMode launch);
std::optional<Engine> parse_engine(const std::string& name);
std::optional<LaunchMode> parse_launch_mode(const std::string& name);

/// What one direction of one physical link carried.
struct LinkUse {
  std::string from, to;  ///< nodes, by InfraGraph id: "dgx_h100.0.xpu.3"
  int lane = 0;          ///< among parallel links
  std::string link_class;
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;  ///< with headers
  Time busy{};
  std::int64_t max_queue = 0;  ///< requests
};

/// Where a rank's time goes: reason ("launch", "link", "hbm", ...) to time. All of them sum to the
/// time of the run (docs/results.md).
using Attribution = std::map<std::string, Time>;

/// Of a job: a launch in the last repetition, on all of its ranks.
struct LaunchResult {
  std::string name;     ///< in the job
  std::string program;  ///< what it runs
  std::vector<int> ranks;
  Bytes size{};
  Time begin{};  ///< its first rank's, when its stream came to it
  Time end{};    ///< its latest rank's, when its stream could release the next one
  int latest_rank = 0;
  Attribution attribution{};  ///< what the latest rank's end hung on; sums to end - begin

  /// What it takes where it runs alone; 0: nobody has looked (of more than 16 different launches).
  Time alone{};
  Attribution alone_attribution{};  ///< where that goes
  /// Of a launch that takes longer than alone: that by the launches that were under way meanwhile,
  /// the largest share first, in proportion to how long each was.
  struct Cause {
    std::string launch;
    Time overlap{}, share{};
  };
  std::vector<Cause> slowed_by{};
};

/// Of the engine `sampled`: what its time stands on.
struct Sampled {
  double share = 1;  ///< of the bytes that operations move, simulated line by line
  int windows = 0;   ///< that were measured; 0: nothing was left out
  double error = 0;  ///< the time is said to be within this share of that of the line engine
};

/// The keys of `--json` (docs/results.md).
struct Result {
  Bytes size{};            ///< what nccl-tests calls size
  std::int64_t count = 0;  ///< elements, as nccl-tests counts them
  Time time{};
  double algbw_GBps = 0;  ///< GB = 10^9 bytes
  double busbw_GBps = 0;
  /// No time can be below either: wire bytes over the busiest link or cut, the unloaded path of
  /// dependencies.
  Time bandwidth_bound{}, latency_bound{};
  Time bound() const { return bandwidth_bound > latency_bound ? bandwidth_bound : latency_bound; }
  std::string bottleneck;         ///< that link or cut
  Time ideal{};                   ///< the collective's, on the ranks' injection bandwidth; 0: none
  std::string checked;            ///< "full", "partial", "skipped"
  std::int64_t line_hops = 0;     ///< visits of a request to a shared resource that it represents
  std::int64_t visited_hops = 0;  ///< ... that were executed
  int simulated_ranks = 0;        ///< the others behave as one of these does
  Sampled sampled;                ///< other engines leave nothing out
  double wall_s = 0;              ///< of the simulation, seconds on this host
  std::int64_t peak_rss_bytes = 0;
  std::map<std::string, std::int64_t> counters;  ///< "l2.hits", "poll.requests", ...
  std::vector<LinkUse> links;                    ///< those that carried something
  std::vector<Attribution> attribution;          ///< by rank
  std::vector<Time> rank_end;                    ///< by rank
  std::vector<LaunchResult> launches;            ///< of a job, in its order
};

}  // namespace hemiola
