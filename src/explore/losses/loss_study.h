// What schedules lose, and to what. Private to the layer.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "explore/exploration.h"
#include "explore/trials/isolated.h"
#include "explore/trials/trial.h"

namespace hemiola::explore {

class LossStudy {
 public:
  LossStudy(Trial& trial, const Exploration& found, const Operator& op,
            const machine::Machine& machine)
      : trial_(trial),
        free_memory_(trial.with_free_memory()),
        found_(found),
        op_(op),
        model_(machine.model(0)) {}

  /// Candidate::losses of one that was simulated. Thread-safe. Pieces that several schedules have
  /// are simulated once.
  void add(Candidate& candidate);

 private:
  struct Alone {
    Time time{};     ///< of the run
    Time kernels{};  ///< during which a kernel of it ran
  };
  /// A part of the schedule's plan, simulated by `trial` once for all that have the same `key`.
  Alone alone(Trial& trial, const std::string& key, const Schedule& schedule,
              plan::Plan (*part_of)(const plan::Plan&), Time (KernelTimes::*kernels)() const);
  Alone products_of(const Schedule& schedule, Trial& trial);
  Alone communication_of(const Schedule& schedule);
  /// How much less the schedule would take, if L2 and memory cost nothing, than its products.
  Time memory_beyond(const Candidate& candidate, const Alone& products);
  Time on_free_memory(const Schedule& schedule);
  void divide(const Candidate& candidate, const Alone& products, const Alone& communication,
              Losses& losses);

  Trial& trial_;
  Trial free_memory_;
  const Exploration& found_;
  const Operator& op_;
  const machine::GpuModel& model_;
  std::mutex mutex_;
  std::map<std::string, Alone> known_;
};

}  // namespace hemiola::explore
