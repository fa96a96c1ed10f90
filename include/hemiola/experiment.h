// Experiments: a program on a machine at a size, proven and then simulated.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hemiola/check.h"
#include "hemiola/error.h"
#include "hemiola/machine.h"
#include "hemiola/plan.h"
#include "hemiola/program.h"
#include "hemiola/simulate.h"
#include "hemiola/types.h"
#include "hemiola/units.h"

namespace hemiola::parts {
class Registry;
}

namespace hemiola {

struct Experiment {
  Machine machine;
  Program program;
  Bytes size{};             ///< what nccl-tests calls size; 0: the legal one nearest above 1 MiB
  bool round_size = false;  ///< for a size that the program cannot take, the next one that it can
  DataType type = DataType::float32;
  ReduceOp op = ReduceOp::sum;
  bool check = true;  ///< false: simulated without a proof, and the result says so

  Engine engine = Engine::line;
  LaunchMode launch = LaunchMode::stream;
  int warmup = 0;            ///< with iterations: repetitions before the measured ones
  int iterations = 0;        ///< > 0: the time is the period over these; 0: one cold run
  std::vector<Time> skew{};  ///< later starts of rank 0, 1, ...; missing ones 0
  bool one_host = false;     ///< one host thread calls the library for all ranks in turn
  bool fold = true;  ///< of ranks that behave alike one is simulated: the same result, sooner
  int threads = 1;   ///< of the line engine; the result does not depend on it
};

struct Outcome {
  std::string machine;  ///< its name, and what was changed of it
  std::string program;  ///< what ran: of several built-ins the fastest
  Collective collective = Collective::custom;
  int ranks = 0;
  Experiment experiment;         ///< what was asked for
  std::optional<Proof> proof{};  ///< proven or partial; none: not asked for
  Result result;
  /// Beside the result: warnings of machine, program and proof, how other built-ins did.
  std::vector<Diagnostic> notices;

  struct Implementation;  ///< the library's, for reports
  std::shared_ptr<const Implementation> self{};
};

/// Of an experiment that is watched. Functions are called in the thread that runs it.
struct Watch {
  /// Interrupted, soon after it is set: a proof that is under way is finished first.
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const std::string&)> on_step{};  ///< "simulating all-reduce/ring at 1 MiB ..."
};

/// One of several experiments: its outcome, or why there is none.
struct Point {
  std::optional<Outcome> outcome{};
  std::exception_ptr failure{};  ///< a Failure
};

/// Runs experiments, and keeps for the next ones what they have in common: programs as they are
/// bound, proofs. Results do not depend on it. Every function may be called from several threads.
class Laboratory {
 public:
  Laboratory();
  /// With the parts of a registry: program() and plan() know their names. Failure: one breaks the
  /// contract of its role.
  explicit Laboratory(parts::Registry registry);
  ~Laboratory();
  Laboratory(Laboratory&&) noexcept;
  Laboratory& operator=(Laboratory&&) noexcept;

  /// Failure: a program that does not fit the machine or the size (the hint names the next legal
  /// ones), bad parameters, a wait that cannot end; WrongProgram: it is wrong and was not
  /// simulated. Interrupted when it is asked to stop.
  Outcome run(const Experiment& experiment, const Watch& watch = {});
  /// All of them, in their order, so many `threads` at a time. A point that fails does not end the
  /// others. Interrupted when it is asked to stop.
  std::vector<Point> run_all(std::span<const Experiment> experiments, int threads = 1,
                             const Watch& watch = {});
  /// As Program::load(), with the parts of this laboratory, which alone can run what they name.
  Program program(const std::string& name_or_file, const Settings& parameters = {}) const;
  /// As Plan::make().
  Plan plan(const std::string& name, int ranks, const Settings& parameters = {},
            const std::optional<Machine>& machine = {}) const;
  /// As hemiola::check().
  std::vector<Proof> check(const Program& program, const CheckOptions& options = {});

 private:
  struct Implementation;
  std::unique_ptr<Implementation> self_;
};

/// The same with a laboratory of its own.
Outcome run(const Experiment& experiment, const Watch& watch = {});

}  // namespace hemiola
