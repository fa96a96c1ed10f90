// Which schedule overlaps a product with its collective best (docs/explore.md).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hemiola/experiment.h"
#include "hemiola/machine.h"
#include "hemiola/simulate.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola {

/// C[m, n] = A[m, k] B[k, n] over all ranks together, and the collective that feeds or follows it.
/// Of experts, m counts the tokens of all ranks, and n x k is what every rank holds.
struct OverlapOperator {
  std::string kind;  ///< "ag-gemm", "gemm-rs", "gemm-ar", "a2a-gemm", "gemm-a2a"
  std::int64_t m = 0, n = 0, k = 0;
  bool gathers_b = false;  ///< ag-gemm: B (weights) is gathered, not A (activations)
  DataType type = DataType::bfloat16;
  bool local = false;  ///< the sizes are those of the product of one rank
  /// Of experts, how tokens spread over those of each rank: "even", a weight for each as "4/2/1/1",
  /// or "zipf/S".
  std::string load = "even";
};

/// What is tried, and how it is timed. Empty lists: all that the machine has.
struct ExploreOptions {
  LaunchMode launch = LaunchMode::stream;
  int warmup = 1, iterations = 1;  ///< of iterations 0: one cold run
  std::vector<std::int64_t> degrees{2, 4, 8, 16};
  std::vector<std::string> realizations{};  ///< "load-store", "bulk", "copy-engine", "multicast"
  std::vector<std::string> places{};        ///< "own", "co-located"
  std::vector<std::string> transfers{};     ///< "push", "pull"
  std::vector<std::string> copies{};        ///< "in-time", "prelaunched": of copy engines
  int fluid = 60;                           ///< schedules that are simulated at most
  /// So many of the fastest are confirmed by the engine `sampled`. Nothing: three, where that is
  /// little work.
  std::optional<int> top{};
  bool exhaustive = false;      ///< every schedule is simulated
  std::string losses = "best";  ///< whose losses are looked at: "none", "best", "all"
  /// Schedules, or of a suite scenarios, at a time; results do not depend on it.
  int threads = 1;
};

/// The library's collective, then its product.
struct SerialTime {
  std::string program;  ///< of the collective
  Time time{}, collective{}, product{};
  std::optional<Time> confirmed{};  ///< by the engine `sampled`
};

struct ExploredSchedule {
  std::string text;    ///< "1D hetero fused, 8 steps, in place, push by copy engines, ..."
  std::string family;  ///< "1D hetero fused"
  std::int64_t degree = 0;
  std::string program;  ///< with `parameters` a Program
  Settings parameters;
  Time time{};  ///< `confirmed`, or else `fluid`
  Time fluid{};
  std::optional<Time> confirmed{};
  double speedup = 0;        ///< over serial, by the same engine
  Time bound{}, estimate{};  ///< by closed forms
  Bytes buffers{}, extra_traffic{};
  /// Decomposition: pieces alone over the whole alone. Contention: overlapped over alone.
  std::optional<double> dil_product{}, dil_communication{}, cil_product{}, cil_communication{};
  std::map<std::string, Time> losses;  ///< time beyond ideal by cause; empty: nobody has looked
};

struct Exploration {
  std::string machine;
  OverlapOperator op;  ///< with its global sizes
  int ranks = 0;
  SerialTime serial;
  Time ideal{};                             ///< no schedule takes less
  std::vector<ExploredSchedule> schedules;  ///< that were simulated, the fastest first
  std::int64_t space = 0;                   ///< schedules there are, serial among them

  /// The fastest schedule; null where serial is.
  const ExploredSchedule* best() const;

  struct Implementation;  ///< the library's, for reports; null in a suite
  std::shared_ptr<const Implementation> self{};
};

/// Of a suite: a scenario, and what was found of it or why nothing was.
struct ExploredScenario {
  std::string name, model, set;
  OverlapOperator op;  ///< with its global sizes
  int ranks = 0;
  std::optional<Exploration> found{};
  std::string error;  ///< empty where something was found
};

/// Failure: no such operator, sizes that ranks do not divide, nothing that could be tried.
/// Interrupted when `watch` asks for it.
Exploration explore_operator(const Machine& machine, const OverlapOperator& op,
                             const ExploreOptions& options = {}, const Watch& watch = {});

/// `suite`: "overlap", or a YAML file. A scenario of r ranks is explored on the first r of the
/// machine. `database`: a file where results are kept; a call that was ended goes on with it, and
/// one of other results is a Failure. Empty: none.
std::vector<ExploredScenario> explore_suite(const Machine& machine, const std::string& suite,
                                            const ExploreOptions& options = {},
                                            const std::string& database = {},
                                            const Watch& watch = {});
/// The built-in suites.
std::vector<std::string> exploration_suites();

}  // namespace hemiola
