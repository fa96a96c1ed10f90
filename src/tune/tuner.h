// The search: for a kernel and a template of plans, the fused kernel that the simulator finds
// fastest.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "compile/fused/fused_file.h"
#include "explore/trials/plan_trial.h"
#include "study/laboratory/experiment.h"
#include "study/support/parts.h"
#include "tune/space.h"

namespace hemiola::tune {

class Database;

/// How points are chosen.
enum class Method : std::uint8_t {
  descent,    ///< one dimension at a time, by fluid and then by sampled; again from elsewhere
  random,     ///< any points, all equally likely, by both: what a search has to beat
  exhaustive  ///< all of them, by both
};
std::string_view name_of(Method method);  ///< "descent"

struct Request {
  compile::KernelRequest kernel;
  std::string plan;  ///< the template
  Asked parameters;
  study::MachineChoice machine;
  /// launch, warmup, iterations, threads (points at a time); the engine is not asked.
  sim::Options options{.warmup = 1, .iterations = 1};
  Method method = Method::descent;
  /// Simulations of a bucket, by fluid and by sampled together; of random points both count once.
  int budget = 48;
  std::uint64_t seed = 0;
  bool any_realization = false;  ///< also those that the compiler does not write
  Database* database = nullptr;  ///< what is known already; null: nothing
  /// Where simulations are shared out among processes, all of which come to the same result; null:
  /// they are not. Needs a database, be it in memory.
  study::Parts* parts = nullptr;
};

/// A point that was simulated, by fluid or sampled or both.
struct Candidate {
  Point point;
  std::string text;
  explore::TemplatePlan plan;
  compile::Configuration configuration;
  std::int64_t workgroups = 0;    ///< of its own that communicate, per rank
  bool is_written = true;         ///< false: the compiler does not write its realization
  compile::TorchMovers movers{};  ///< of its file
  std::string file_digest{};      ///< of its file's text, whoever moves the data
  Bytes buffers{}, extra_traffic{};
  Time bound{};  ///< no engine is below
  std::optional<explore::Measured> fluid{};
  std::optional<explore::Confirmed> sampled{};
  Time time() const { return sampled ? sampled->time : fluid->fluid; }
};

/// Why a point was not simulated, in the order in which it is found out.
enum class Dropped : std::uint8_t {
  plan,         ///< the template makes no such plan
  fusion,       ///< the compiler refuses kernel and plan: tiles straddle chunks, ...
  realization,  ///< the compiler writes another one
  lowering,     ///< the plan cannot be lowered so, or bound to the machine
  count
};
std::string_view name_of(Dropped why);
struct DroppedPoints {
  std::int64_t count = 0;
  std::string first;  ///< what was said of the first one, and which it was
};

/// The same operator without a fused kernel, by the engine that timed the fastest candidate.
struct Beside {
  std::string name;  ///< "serial": the library's collective and product; "unfused": launches
  std::string plan;
  Time time{};
};

/// One set of sizes.
struct Bucket {
  std::string name;  ///< "m=1024"
  study::Settings sizes;
  /// The fastest first; those that sampled has timed stand before the others.
  std::vector<Candidate> candidates;
  std::map<Dropped, DroppedPoints> dropped;
  std::vector<Beside> beside{};
  std::string file{};            ///< that the winner is written to; empty: none
  std::int64_t space = 0;        ///< points in all
  std::int64_t pruned = 0;       ///< whose bound is above the best
  std::int64_t simulations = 0;  ///< by both engines
  std::int64_t descents = 0;     ///< in which anything was simulated

  /// The fastest that the compiler writes; null where there is none.
  const Candidate* winner() const;
  /// Positions of the candidates that no other one beats in time, buffers and workgroups at once,
  /// by time.
  std::vector<std::size_t> pareto() const;
};

struct Tuning {
  std::string kernel, plan, machine;
  int ranks = 0;
  Method method = Method::descent;
  std::int64_t budget = 0;
  std::string timing{};  ///< how calls are timed, in the words of `run`: " --warmup 1 ..."
  std::vector<Dimension> dimensions;
  std::vector<Bucket> buckets;
  std::vector<std::string> remarks{};           ///< how the machine was made to meet measurements
  std::map<std::string, double> measured_us{};  ///< by Candidate::text
};

struct TuneWatch {
  study::Watch watch{};
  std::function<void(const std::string& bucket, std::int64_t done, std::int64_t all)> on_progress{};
};

/// Deterministic for a seed: the same for any number of threads, and whatever the database knows.
/// Failure: a kernel or a template that does not go with another at all, sizes that do not divide,
/// no machine; Interrupted.
Tuning tune(study::Laboratory& laboratory, const Request& request, const TuneWatch& watch = {});

/// The plan of a candidate, with the lowering that was simulated.
plan::Plan plan_of(study::Laboratory& laboratory, const Request& request,
                   const Candidate& candidate);
/// Its kernel and plan; a file of it is written with its movers.
compile::FusedFile fused_of(const Request& request, const Candidate& candidate,
                            const plan::Plan& plan);

}  // namespace hemiola::tune
