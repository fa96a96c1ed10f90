#include "workload/scheduler/accounts.h"

#include <algorithm>

namespace hemiola::workload {

Time ClassTime::exposed() const {
  Time all{};
  for (const auto& [key, call] : calls) all = all + call.exposed;
  return all;
}

Time ClassTime::waiting() const {
  Time all{};
  for (const auto& [key, call] : calls) all = all + call.waiting;
  return all;
}

CallKey call_key(const Workload& workload, NodeKind kind, std::int32_t work) {
  const Call call = call_of(workload, kind, work);
  return {kind, call.kind, call.family};
}

void Account::book(Time now) {
  const Time passed = now - last_;
  last_ = now;
  if (passed.fs == 0) return;
  for (const CallKey& key : calls_)
    times_.calls[key].under_way = times_.calls[key].under_way + passed;
  // One reason for each instant: work before communication, communication before waiting.
  if (computes_ > 0) {
    times_.compute = times_.compute + passed;
    if (!calls_.empty()) times_.hidden = times_.hidden + passed;
  } else if (!calls_.empty()) {
    CallTime& call = times_.calls[calls_.front()];
    call.exposed = call.exposed + passed;
  } else if (copies_ > 0) {
    times_.memory = times_.memory + passed;
  } else if (host_ > 0) {
    times_.host = times_.host + passed;
  } else if (!waits_.empty()) {
    CallTime& call = times_.calls[waits_.front()];
    call.waiting = call.waiting + passed;
  } else {
    times_.idle = times_.idle + passed;
  }
}

void Account::begin_call(Time now, const CallKey& key, std::int64_t bytes) {
  book(now);
  calls_.push_back(key);
  CallTime& call = times_.calls[key];
  ++call.calls;
  call.bytes += bytes;
}

void Account::end_call(Time now, const CallKey& key) {
  book(now);
  calls_.erase(std::ranges::find(calls_, key));
}

void Account::begin_wait(Time now, const CallKey& key) {
  book(now);
  waits_.push_back(key);
}

void Account::end_wait(Time now, const CallKey& key) {
  book(now);
  waits_.erase(std::ranges::find(waits_, key));
}

ClassTime Account::finish(Time end, Time whole) {
  book(whole);
  times_.end = end;
  return std::move(times_);
}

}  // namespace hemiola::workload
