// Computes of a plan that are kernels of their own: what they wait for, and who waits for them.
#include "plan/launches.h"

#include <algorithm>

#include "verify/plans/interpreter.h"

namespace hemiola::verify {

void PlanInterpreter::create_launches() {
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    const plan::Code& code = plan_.code(rank);
    std::vector<std::int32_t>& numbers = launch_of_.emplace_back(code.computes.size(), -1);
    const auto first = static_cast<std::int32_t>(launches_.size());
    for (std::size_t c = 0; c < code.computes.size(); ++c) {
      const plan::Compute& compute = code.computes[c];
      if (!compute.is_launch()) continue;
      numbers[c] = static_cast<std::int32_t>(launches_.size());
      Launch& launch = launches_.emplace_back();
      launch.rank = rank;
      launch.compute = static_cast<std::int32_t>(c);
      launch.whole = compute.waits == plan::Waits::launch;
      const Indices at{.rank = rank};
      for (const plan::Dependency& dependency : compute.after)
        if (dependency.on_transfer()) launch.after.push_back(unrolled_.target(dependency, at));
    }
    if (first == std::ssize(launches_)) continue;
    const plan::LaunchOrder order(code);
    for (std::int32_t l = first; l < std::ssize(launches_); ++l) {
      Launch& launch = launches_[index(l)];
      for (const std::int32_t compute : order.directly_before(launch.compute)) {
        const std::int32_t other = launch_of(rank, compute);
        launch.before.push_back(other);
        launches_[index(other)].behind.push_back(l);
        ++launch.waiting;
      }
    }
  }
}

/// Starts it if all that it comes after is done; else whoever is not calls again.
void PlanInterpreter::start_launch(std::int32_t number) {
  Launch& self = launches_[index(number)];
  if (self.started || self.waiting > 0) return;
  for (const TransferId target : self.after) {
    StreamState& other = streams_[index(target.stream)];
    if (other.position > target.number) continue;
    self.transfer = target;
    other.waiters.push_back({unrolled_.streams() + number, target.number});
    other.next_wake = std::min(other.next_wake, target.number);
    return;
  }
  self.started = true;
  for (const std::int32_t other : self.before) order_.learn(start_of(number), end_of(other));
  for (const TransferId target : self.after)
    order_.learn(start_of(number), {target.stream, target.number});
  for (const std::int32_t tile : self.tiles)
    if (--tiles_[index(tile)].waiting == 0) ready_tiles_.push_back(tile);
}

void PlanInterpreter::tile_done(std::int32_t number, std::int32_t tile) {
  Launch& self = launches_[index(number)];
  order_.learn(end_of(number), event_of(tile));
  if (--self.unfinished > 0) return;
  ready_.insert(ready_.end(), self.blocked.begin(), self.blocked.end());
  self.blocked.clear();
  for (const std::int32_t behind : self.behind)
    if (--launches_[index(behind)].waiting == 0) ready_.push_back(unrolled_.streams() + behind);
}

/// Else the stream is told of its end.
bool PlanInterpreter::launch_done(std::int32_t number, std::int32_t stream) {
  Launch& launch = launches_[index(number)];
  if (launch.is_done()) return true;
  launch.blocked.push_back(stream);
  streams_[index(stream)].launch = number;
  return false;
}

Value PlanInterpreter::computed(std::int32_t atom, int rank, std::int32_t compute, bool adds) {
  return values_.input(rank, atom + (adds ? compute + std::int64_t{2} : 1) * atoms_.count());
}

}  // namespace hemiola::verify
