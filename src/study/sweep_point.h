// One point of a sweep after the other, with what consecutive ones share.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/monitor.h"
#include "machine/machine.h"
#include "program/program.h"
#include "study/sweep.h"
#include "study/sweep_database.h"

namespace hemiola::study {

/// What several threads use at a time, made by the first that asks for it and gone with the last.
template <typename T>
class Shared {
 public:
  template <typename Make>
  std::shared_ptr<const T> get(const std::string& key, const Make& make) {
    std::shared_ptr<Slot> slot;
    {
      const std::lock_guard lock(mutex_);
      std::weak_ptr<Slot>& known = slots_[key];
      slot = known.lock();
      if (!slot) known = slot = std::make_shared<Slot>();
    }
    const std::lock_guard lock(slot->mutex);  // the others wait; if it fails the next one tries
    if (!slot->value) slot->value.emplace(make());
    return {slot, &*slot->value};
  }

 private:
  struct Slot {
    std::mutex mutex;
    std::optional<T> value;
  };
  std::mutex mutex_;
  std::map<std::string, std::weak_ptr<Slot>> slots_;
};

/// Machines and programs of a sweep, for all its threads.
struct SweepInputs {
  Shared<machine::Machine> machines;
  Shared<program::Program> programs;
};

/// Points that differ in engine, launch and skew only: bound and checked once.
using SweepUnit = std::span<const std::int64_t>;  ///< numbers of points
bool same_unit(const SweepPoint& a, const SweepPoint& b);

/// One thread's.
class SweepWorker {
 public:
  /// `strict`: SweepRunOptions::strict.
  SweepWorker(const Sweep& sweep, SweepInputs& inputs, const std::atomic<bool>& stop, bool strict)
      : sweep_(sweep), inputs_(inputs), strict_(strict) {
    monitor_.stop = &stop;
  }

  struct Outcome {
    std::vector<SweepRow> rows;  ///< one for each point
    Diagnostics warnings;        ///< of machine, program and proof; why it is proven in part
  };
  /// Interrupted: the unit is not complete, and none of it is returned.
  Outcome run(SweepUnit unit);

  const Monitor& monitor() const { return monitor_; }

 private:
  struct Prepared {
    program::Bound bound;
    std::string checked;
  };
  Prepared prepare(const SweepPoint& point, Diagnostics& warnings);
  SweepRow start_row(std::int64_t number) const;
  void simulate(const SweepPoint& point, const Prepared& prepared, SweepRow& row);

  const Sweep& sweep_;
  SweepInputs& inputs_;
  bool strict_;
  Monitor monitor_;
  // Kept from one unit to the next, which often needs the same.
  machine::SharedMachine machine_;
  std::shared_ptr<const program::Program> program_;
};

}  // namespace hemiola::study
