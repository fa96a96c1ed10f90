// What schedules lose, and to what. Private to the layer.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "explore/exploration.h"
#include "explore/trials/isolated.h"
#include "explore/trials/trial.h"

namespace hemiola::explore {

class LossStudy {
 public:
  /// `software`: of the request.
  LossStudy(Trial& trial, const Serial& serial, const Operator& op, const machine::Machine& machine,
            Time software)
      : trial_(trial), serial_(serial), op_(op), model_(machine.model(0)), software_(software) {}

  /// Candidate::losses of one that was simulated. Thread-safe. Pieces that several schedules have
  /// are simulated once.
  void add(Candidate& candidate);

 private:
  struct Alone {
    Time time{};     ///< of the run
    Time kernels{};  ///< during which a kernel of it ran
  };
  /// A part of the schedule's plan, simulated once for all that have the same `key`.
  Alone alone(const std::string& key, const Schedule& schedule,
              plan::Plan (*part_of)(const plan::Plan&), Time (KernelTimes::*kernels)() const);
  Alone products_of(const Schedule& schedule);
  Alone communication_of(const Schedule& schedule);
  void divide(const Candidate& candidate, const Alone& products, const Alone& communication,
              Losses& losses) const;

  Trial& trial_;
  const Serial& serial_;
  const Operator& op_;
  const machine::GpuModel& model_;
  Time software_;
  std::mutex mutex_;
  std::map<std::string, Alone> known_;
};

}  // namespace hemiola::explore
