// Where the time of a class goes while the scheduler runs. Private to the scheduler.
#pragma once

#include <cstdint>
#include <vector>

#include "workload/scheduler/schedule.h"

namespace hemiola::workload {

class Account {
 public:
  // What is under way or waits. The time since the last change is booked first.
  void begin_compute(Time now) { change(now, computes_, 1); }
  void end_compute(Time now) { change(now, computes_, -1); }
  void begin_memory(Time now) { change(now, copies_, 1); }
  void end_memory(Time now) { change(now, copies_, -1); }
  void begin_call(Time now, const CallKey& key, std::int64_t bytes);
  void end_call(Time now, const CallKey& key);
  void begin_wait(Time now, const CallKey& key);
  void end_wait(Time now, const CallKey& key);
  /// Nodes that could be launched, had the CPU come to them.
  void begin_host(Time now) { change(now, host_, 1); }
  void end_host(Time now) { change(now, host_, -1); }

  void add_slowed(Time time) { times_.slowed = times_.slowed + time; }
  /// `end`: of its last node; `whole`: of the schedule.
  ClassTime finish(Time end, Time whole);

 private:
  void change(Time now, std::int32_t& count, std::int32_t by) {
    book(now);
    count += by;
  }
  void book(Time now);

  ClassTime times_;
  Time last_{};
  std::int32_t computes_ = 0, copies_ = 0, host_ = 0;
  std::vector<CallKey> calls_, waits_;  ///< the oldest first
};

}  // namespace hemiola::workload
