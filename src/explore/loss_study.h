// What schedules lose, and to what. Private to the layer.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "explore/explorer.h"
#include "explore/trial.h"

namespace hemiola::explore {

class LossStudy {
 public:
  LossStudy(Trial& trial, const Serial& serial, const Operator& op, const machine::Machine& machine,
            sim::Launch launch)
      : trial_(trial), serial_(serial), op_(op), model_(machine.model(0)), launch_(launch) {}

  /// Candidate::losses of one that was simulated. Thread-safe. Pieces that several schedules have
  /// are simulated once.
  void add(Candidate& candidate);

 private:
  struct Alone {
    Time time{};     ///< of the run
    Time kernels{};  ///< during which a kernel of it ran
  };
  Alone products_of(const Schedule& schedule);
  Alone communication_of(const Schedule& schedule);
  void divide(const Candidate& candidate, const Alone& products, const Alone& communication,
              Losses& losses) const;

  Trial& trial_;
  const Serial& serial_;
  const Operator& op_;
  const machine::GpuModel& model_;
  sim::Launch launch_;
  std::mutex mutex_;
  std::map<std::string, Alone> known_;
};

}  // namespace hemiola::explore
