// Attributions of what is under way: the part that is charged seldom.

#include "sim/result/latency_breakdown.h"

#include <new>

namespace hemiola::sim {
namespace {

/// Memory of snapshots that have ended. A thread may end what another one has made.
struct Ended {
  struct Next {
    Next* next;
  };
  Next* first = nullptr;
  ~Ended() {
    while (first != nullptr) ::operator delete(std::exchange(first, first->next));
  }
};
thread_local Ended ended;

}  // namespace

void* LatencyBreakdown::Old::operator new(std::size_t size) {
  if (ended.first == nullptr) return ::operator new(size);
  return std::exchange(ended.first, ended.first->next);
}

void LatencyBreakdown::Old::operator delete(void* memory) {
  ended.first = new (memory) Ended::Next{ended.first};
}

void LatencyBreakdown::end() const {
  delete old_;
}

void LatencyBreakdown::charge_old(std::size_t reason, std::int64_t fs) {
  Old* mine = old_;
  if (mine != nullptr && alone()) {
    for (std::size_t r = 0; r < kLate; ++r) mine->at[r] += late_[r];
  } else {
    mine = new Old(attribution(), waits());
    drop();
    old_ = mine;
  }
  late_ = {};
  mine->at[reason] += fs;
}

}  // namespace hemiola::sim
