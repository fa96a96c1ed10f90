// What a candidate costs, for whoever chooses among several: plans, programs, schedules.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string_view>

#include "study/laboratory/experiment.h"

namespace hemiola::study {

/// (cost - time of the line engine) / that time, over the programs, machines and sizes that were
/// compared (evaluator.cc says which).
struct CostError {
  double expected = 0;  ///< half of them are closer
  double below = 0;     ///< none was further below, 0 to 1
  double above = 0;     ///< none was further above

  /// Whether a candidate of cost `cost` takes longer than `time`, as far as these errors go.
  bool excludes(Time cost, Time time) const {
    return static_cast<double>(cost.fs) > static_cast<double>(time.fs) * (1 + above);
  }
};

/// Thread-safe; the laboratory it was made with outlives it.
class Evaluator {
 public:
  virtual ~Evaluator() = default;

  virtual std::string_view name() const = 0;  ///< "fluid", "line"
  virtual CostError error() const = 0;
  /// The time of `candidate`, without a proof. Nothing where the evaluator has none: of a program
  /// that is not a plan's, of too many ranks. Failure as Laboratory::prepare() and simulate();
  /// Interrupted.
  virtual std::optional<Time> cost(const Experiment& candidate) = 0;
};

/// A simulation by `engine`, with the candidate's other options. The costs of reference and line
/// are the times themselves. Ends once `stop` is set.
std::unique_ptr<Evaluator> make_evaluator(Laboratory& laboratory, sim::Engine engine,
                                          const std::atomic<bool>* stop = nullptr);

/// Of more ranks a judge judges nothing, and nothing needs to be lowered for it.
constexpr int kMostJudgedRanks = 32;

/// What `*/synth` chooses by: up to eight ranks and 32 MiB of all of them the line engine, else
/// fluid; of more than 32 ranks nothing.
std::unique_ptr<Evaluator> make_judge(Laboratory& laboratory,
                                      const std::atomic<bool>* stop = nullptr);

}  // namespace hemiola::study
