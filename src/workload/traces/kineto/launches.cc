#include "workload/traces/kineto/launches.h"

#include <algorithm>
#include <unordered_map>

#include "workload/traces/pytorch_shapes.h"

namespace hemiola::workload {
namespace {

/// Operators and calls of one thread in the order of their begins, outer ones first.
struct ThreadEvent {
  std::int64_t begin = 0, end = 0;
  std::int32_t host = -1, runtime = -1;
};

bool is_outside_first(const ThreadEvent& a, const ThreadEvent& b) {
  if (a.begin != b.begin) return a.begin < b.begin;
  if (a.end != b.end) return a.end > b.end;
  return a.host > b.host;  // operators before calls: these have -1
}

class Nesting {
 public:
  Nesting(const KinetoEvents& events, std::vector<KinetoSurroundings>& around)
      : events_(events), around_(around) {}

  void walk(std::vector<ThreadEvent>& thread) {
    std::ranges::stable_sort(thread, is_outside_first);
    open_.clear();
    for (const ThreadEvent& event : thread) {
      while (!open_.empty() && open_.back().end <= event.begin && open_.back().begin != event.begin)
        open_.pop_back();
      // What overlaps without lying inside was cut by rounding, or belongs to an earlier time.
      if (event.host >= 0)
        open_.push_back(event);
      else
        around_[index(event.runtime)] = look();
    }
  }

 private:
  KinetoSurroundings look() const {
    constexpr int kDeepest = 256;
    KinetoSurroundings found;
    int depth = 0;
    for (auto at = open_.rbegin(); at != open_.rend() && depth < kDeepest; ++at, ++depth) {
      const HostEvent& event = events_.host[index(at->host)];
      if (found.inner < 0 && event.is_operator) found.inner = at->host;
      if (found.product < 0 && event.arguments >= 0 && is_product_operator(event.name))
        found.product = at->host;
      if (found.parameters < 0 && event.name == "record_param_comms") found.parameters = at->host;
      if (found.call < 0 && event.name.starts_with("nccl:")) found.call = at->host;
      if (found.around_call < 0 && event.name.starts_with("c10d::")) found.around_call = at->host;
    }
    return found;
  }

  const KinetoEvents& events_;
  std::vector<KinetoSurroundings>& around_;
  std::vector<ThreadEvent> open_;
};

}  // namespace

KinetoLaunches find_launches(const KinetoEvents& events) {
  KinetoLaunches launches;
  std::unordered_map<std::int64_t, std::int32_t> by_correlation;
  std::vector<std::vector<ThreadEvent>> threads(events.threads.size());
  for (std::size_t r = 0; r < events.runtime.size(); ++r) {
    const RuntimeEvent& event = events.runtime[r];
    const auto index = static_cast<std::int32_t>(r);
    if (event.correlation >= 0) by_correlation.emplace(event.correlation, index);
    threads[static_cast<std::size_t>(event.thread)].push_back(
        {event.begin, event.begin + event.duration, -1, index});
  }
  for (const GpuEvent& event : events.gpu) {
    const auto found = by_correlation.find(event.correlation);
    launches.runtime_of.push_back(
        event.correlation < 0 || found == by_correlation.end() ? -1 : found->second);
  }
  for (std::size_t h = 0; h < events.host.size(); ++h) {
    const HostEvent& event = events.host[h];
    threads[index(event.thread)].push_back(
        {event.begin, event.begin + event.duration, static_cast<std::int32_t>(h), -1});
  }
  launches.around.resize(events.runtime.size());
  Nesting nesting(events, launches.around);
  for (std::vector<ThreadEvent>& thread : threads) nesting.walk(thread);
  return launches;
}

}  // namespace hemiola::workload
