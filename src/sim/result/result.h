// What a simulation found.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "core/units.h"
#include "sim/result/profile_kind.h"

namespace hemiola::sim {

/// Where a nanosecond goes. Every interval of a rank's critical path has exactly one reason.
enum class Reason : std::uint8_t {
  // On the way of a request: first, up to `issue` (see LatencyBreakdown).
  noc,
  l2,
  msc,
  hbm,
  io,       ///< between on-chip network and wire
  link,     ///< queueing, serialisation, propagation and credits of links
  switch_,  ///< switches, in-network reduction included
  issue,    ///< instructions, issue slots and the limit on outstanding requests of a CU
  // Of messages, or at the issuer.
  nic,
  launch,    ///< host call to kernel start, kernel end to stream release
  dispatch,  ///< workgroup waiting for a CU, start of a workgroup
  compute,   ///< reductions and matrix work
  barrier,   ///< workgroup and device barriers beyond their last arrival
  l1,
  dma,
  proxy,     ///< host proxy and its FIFO
  poll,      ///< flag has arrived, its poller has not seen it yet
  fence,     ///< fixed cost of release fences
  software,  ///< of libraries, fitted to measurements: code of large kernels, gaps between calls
  peer,      ///< of a replay: what an emulated rank does comes as its row says, not earlier
  skew,      ///< later start of a rank (--skew)
  finished,  ///< after the rank's last operation
  count
};
constexpr std::size_t kReasons = static_cast<std::size_t>(Reason::count);
std::string_view name_of(Reason reason);  ///< the key of attribution in JSON: "launch", ...

using Attribution = std::array<std::int64_t, kReasons>;  ///< femtoseconds by reason

/// Of a replay: how long a rank has waited for one thing that another one does.
struct PeerWait {
  int rank = 0, peer = 0;
  ProfileKind kind = ProfileKind::add;  ///< of its rows
  std::string buffer;                   ///< of the profile; "": answers
  std::int64_t offset = -1;             ///< of a flag; -1: anywhere in the buffer
  std::string name;                     ///< of a flag, in the program
  Time time{};
  std::int64_t waits = 0;  ///< that it ended
};

struct LinkUse {
  std::string from, to;  ///< node names; lanes of one pair are separate entries
  int lane = 0;
  std::string link_class;
  std::int64_t payload_bytes = 0;
  std::int64_t wire_bytes = 0;
  std::int64_t requests = 0;
  Time busy{};
  std::int64_t max_queue = 0;
};

/// A program's lower bound on its machine: no engine's time is below it.
struct LowerBound {
  Time bandwidth{};              ///< wire bytes over the busiest link or cut
  std::string bottleneck;        ///< which
  Time latency{};                ///< unloaded dependency path
  std::int64_t moved_bytes = 0;  ///< what operations load, store and copy, once; about
  /// ... and what they post to engines; of so many ranks, which stand for all.
  std::int64_t posted_bytes = 0;
  int ranks = 1;
  /// Of so many ranks, what an engine counts as moved.
  std::int64_t moved_by(int of_ranks) const {
    return (moved_bytes + posted_bytes) / ranks * of_ranks;
  }
  Time time() const { return bandwidth > latency ? bandwidth : latency; }
};

/// Of a job: a launch in the last repetition, on all of its ranks.
struct LaunchResult {
  std::string name;     ///< in the job
  std::string program;  ///< what it runs
  std::vector<int> ranks;
  Bytes size{};
  Time begin{};  ///< its first rank's, when its stream came to it
  Time end{};    ///< its latest rank's, when its stream could release the next one
  int latest = 0;
  /// What the latest rank's end hung on; sums to end - begin. Reason::skew is what another rank
  /// came later than the first.
  Attribution attribution{};

  // Filled by a study that ran the launch alone, too (study/laboratory/job_run.h).
  Time alone{};                     ///< what it takes then; 0: nobody has looked
  Attribution alone_attribution{};  ///< where that goes
  /// Of a launch that takes longer than alone: that by the launches that were under way meanwhile,
  /// the largest share first. They have it in proportion to how long each was.
  struct Cause {
    std::string launch;
    Time overlap{}, share{};
  };
  std::vector<Cause> slowed_by;
};

/// Of the engine `sampled`: what its time stands on.
struct Sampled {
  double share = 1;  ///< of the bytes that operations move, simulated line by line
  int windows = 0;   ///< that were measured
  double error =
      0;  ///< the time is within this share of that of the line engine, in 95 of 100 runs
};

/// One result per size.
struct Result {
  Bytes size{};
  std::int64_t count = 0;  ///< elements, as nccl-tests counts them
  Time time{};
  double algbw_GBps = 0;
  double busbw_GBps = 0;
  LowerBound bound;
  Time ideal{};  ///< the collective's ideal on the ranks' injection bandwidth; 0 if none
  std::string checked = "skipped";  ///< "full", "partial", "skipped"
  std::int64_t line_hops = 0;
  std::int64_t visited_hops = 0;
  int simulated_ranks = 0;        ///< the others behave as one of these does (folding)
  std::string unfolded_because;   ///< why all are; empty where they are not
  std::string reference_because;  ///< what the line engine left to the reference; empty: nothing
  double wall_s = 0;
  std::int64_t peak_rss_bytes = 0;
  std::map<std::string, std::int64_t> counters;  ///< "l2.hits", "poll.requests", ...
  std::vector<LinkUse> links;                    ///< those that carried something, in link order
  std::vector<Attribution> attribution;          ///< by rank; each sums to time
  std::vector<Time> rank_end;                    ///< by rank
  std::vector<LaunchResult> launches;            ///< of a job, in its order
  /// Replay: what Reason::peer of replayed ranks is made of, the longest of each rank first.
  std::vector<PeerWait> peer_waits;
  Sampled sampled;           ///< of other engines: all of it was simulated
  std::string answers;       ///< replay: "recorded", "live" or "relative" (Answers)
  std::string live_because;  ///< why answers are live that the profile has; empty: it has none
  /// What sets this result apart in a table of several: --set values, the built-in that won. Filled
  /// by the command line.
  std::map<std::string, std::string> settings;
};

/// The rank that ends last (the lowest of several): the one whose attribution explains the time.
/// The result must have at least one rank.
std::size_t latest_rank(const Result& result);

}  // namespace hemiola::sim
