#include "workload/traces/kineto/order.h"

#include <algorithm>
#include <limits>
#include <map>
#include <unordered_map>

namespace hemiola::workload {
namespace {

/// Older traces have whole microseconds, in which begins and ends are rounded.
constexpr std::int64_t kRounding = 2000;
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

bool is_wait_of_host(std::string_view name) {
  return name.find("Synchronize") != std::string_view::npos;
}
bool is_wait_of_stream(std::string_view name) {
  return name.find("StreamWaitEvent") != std::string_view::npos;
}

class KinetoOrderer {
 public:
  KinetoOrderer(const KinetoEvents& events, const KinetoLaunches& launches,
                const std::vector<bool>& communicates, std::optional<std::int64_t> start)
      : events_(events),
        launches_(launches),
        communicates_(communicates),
        start_(start),
        streams_(events_of_streams(events.gpu)) {}

  KinetoOrder order() {
    find_moments();
    sort_calls();
    merge();
    return std::move(order_);
  }

 private:
  const GpuEvent& gpu(std::int32_t index) const {
    return events_.gpu[static_cast<std::size_t>(index)];
  }
  const RuntimeEvent& runtime(std::int32_t index) const {
    return events_.runtime[static_cast<std::size_t>(index)];
  }
  static std::int64_t end_of(const GpuEvent& event) { return event.begin + event.duration; }
  std::int32_t runtime_of(std::int32_t event) const { return launches_.runtime_of[index(event)]; }

  /// When each event takes its place among the host's calls: at its launch, but not before an
  /// earlier one of its stream.
  void find_moments() {
    moment_.resize(events_.gpu.size());
    for (const auto& [stream, list] : streams_) {
      std::int64_t next = kNever;
      for (auto at = list.rbegin(); at != list.rend(); ++at) {
        if (runtime_of(*at) >= 0) {
          next = runtime(runtime_of(*at)).begin;
        } else {
          ++order_.without_launch;
          order_.first_without_launch = *at;
        }
        moment_[index(*at)] = next == kNever ? gpu(*at).begin : next;
      }
      std::int64_t last = 0;
      for (const std::int32_t event : list) {
        std::int64_t& moment = moment_[index(event)];
        moment = last = std::max(last, moment);
      }
    }
  }

  void sort_calls() {
    launched_.resize(events_.runtime.size());
    for (const auto& [stream, list] : streams_) {
      for (const std::int32_t event : list)
        if (runtime_of(event) >= 0) launched_[index(runtime_of(event))].push_back(event);
    }
    for (std::size_t r = 0; r < events_.runtime.size(); ++r) {
      const std::string_view name = events_.runtime[r].name;
      order_.has_stream_waits = order_.has_stream_waits || is_wait_of_stream(name);
      if (!launched_[r].empty() || is_wait_of_host(name) || is_wait_of_stream(name))
        calls_.push_back(static_cast<std::int32_t>(r));
    }
    std::ranges::stable_sort(calls_, [&](std::int32_t a, std::int32_t b) {
      return runtime(a).begin < runtime(b).begin;
    });
  }

  /// Calls and events by time; a call before the events of the same moment.
  void merge() {
    std::vector<std::int32_t> gpu_order;
    for (const auto& [stream, list] : streams_)
      gpu_order.insert(gpu_order.end(), list.begin(), list.end());
    std::ranges::stable_sort(gpu_order, [&](std::int32_t a, std::int32_t b) {
      const std::int64_t one = moment_[index(a)];
      const std::int64_t other = moment_[index(b)];
      return one != other ? one < other : gpu(a).begin < gpu(b).begin;
    });
    step_of_.assign(events_.gpu.size(), 0);
    placed_.assign(events_.gpu.size(), false);
    free_ = first_ = first_time();
    std::size_t next = 0;
    for (const std::int32_t call : calls_) {
      while (next < gpu_order.size() && moment_[index(gpu_order[next])] < runtime(call).begin)
        add_event(gpu_order[next++]);
      add_call(call);
    }
    while (next < gpu_order.size()) add_event(gpu_order[next++]);
  }

  std::int64_t first_time() const {
    std::int64_t first = kNever;
    for (const HostEvent& event : events_.host) first = std::min(first, event.begin);
    for (const std::int32_t call : calls_) first = std::min(first, runtime(call).begin);
    for (const GpuEvent& event : events_.gpu) first = std::min(first, event.begin);
    if (first == kNever) return 0;
    return start_ ? std::min(*start_, first) : first;
  }

  void add_call(std::int32_t call) {
    const RuntimeEvent& event = runtime(call);
    const auto& launched = launched_[index(call)];
    if (launched.empty() && is_wait_of_stream(event.name)) {
      if (!is_around_communication(call)) waiting_threads_[event.thread] = true;
      return;
    }
    const std::int64_t end = event.begin + event.duration;
    const bool blocks = launched.empty() || is_over_within(launched, end);
    // What is launched may begin before the call is over.
    std::int64_t launch = blocks ? event.begin : end;
    for (const std::int32_t one : launched) launch = std::min(launch, gpu(one).begin);
    add_host(call, std::max(launch, event.begin));
    if (!blocks) return;
    free_ = std::max(free_, end);
    if (launched.empty()) wait_for_streams(end, kNoStream, pending_);
    blocking_ = launched;
  }

  bool is_around_communication(std::int32_t call) const {
    const KinetoSurroundings& around = launches_.around[index(call)];
    return around.call >= 0;
  }

  bool is_over_within(const std::vector<std::int32_t>& launched, std::int64_t end) const {
    return std::ranges::all_of(launched, [&](std::int32_t event) {
      return gpu(event).kind == GpuEvent::Kind::copy && end_of(gpu(event)) <= end + kRounding;
    });
  }

  /// What the host did since its last step, up to `end`.
  void add_host(std::int32_t call, std::int64_t end) {
    for (const std::int32_t event : blocking_)
      if (placed_[index(event)]) pending_.push_back(step_of_[index(event)]);
    blocking_.clear();
    KinetoStep step{
        .runtime = call, .begin = free_, .duration = std::max(std::int64_t{0}, end - free_)};
    step.waits_for = std::move(pending_);
    pending_.clear();
    free_ = std::max(free_, end);
    step_of_call_[call] = static_cast<std::uint32_t>(order_.steps.size());
    order_.steps.push_back(std::move(step));
  }

  static constexpr std::int64_t kNoStream = std::numeric_limits<std::int64_t>::min();

  /// The latest on each other stream that was launched before and over at `time`.
  void wait_for_streams(std::int64_t time, std::int64_t own, std::vector<std::uint32_t>& waits) {
    for (const auto& [stream, steps] : done_) {
      if (stream == own) continue;
      const std::optional<std::uint32_t> last = last_done(steps, time);
      if (!last) continue;
      std::uint32_t& known = known_waits_[{own, stream}];  // 0: none; else the step after it
      if (own == kNoStream || *last + 1 > known) {
        waits.push_back(*last);
        known = *last + 1;
      }
    }
  }

  void add_event(std::int32_t index) {
    const GpuEvent& event = gpu(index);
    KinetoStep step{.gpu = index, .runtime = runtime_of(index)};
    if (step.runtime >= 0) {
      const auto host = step_of_call_.find(step.runtime);
      if (host != step_of_call_.end()) step.waits_for.push_back(host->second);
      const std::int32_t thread = runtime(step.runtime).thread;
      if (communicates_[static_cast<std::size_t>(index)]) {
        wait_for_current(thread, event, step.waits_for);
      } else {
        bool& waits = waiting_threads_[thread];
        if (waits) wait_for_streams(event.begin, event.stream, step.waits_for);
        waits = false;
        current_[thread] = event.stream;
        last_current_ = event.stream;
      }
    }
    explain_late_begin(event, step);
    const auto place = static_cast<std::uint32_t>(order_.steps.size());
    step_of_[static_cast<std::size_t>(index)] = place;
    placed_[static_cast<std::size_t>(index)] = true;
    done_[event.stream].push_back(place);
    order_.steps.push_back(std::move(step));
  }

  /// The latest that was over on a stream at `time`; nothing if there is none.
  std::optional<std::uint32_t> last_done(const std::vector<std::uint32_t>& steps,
                                         std::int64_t time) const {
    for (auto at = steps.rbegin(); at != steps.rend(); ++at)
      if (end_of(gpu(order_.steps[*at].gpu)) <= time + kRounding) return *at;
    return std::nullopt;
  }

  /// An event that begins long after its launch and after what it waits for so far waits for
  /// something else: what was over last before it.
  void explain_late_begin(const GpuEvent& event, KinetoStep& step) {
    constexpr std::int64_t kLate = 10'000;
    // From its launch to its begin a kernel takes some microseconds, and more where many are
    // queued.
    constexpr std::int64_t kLateLaunch = 50'000;
    std::int64_t explained =
        step.runtime < 0 ? 0 : runtime(step.runtime).begin + runtime(step.runtime).duration;
    const auto own = done_.find(event.stream);
    if (own != done_.end())
      explained = std::max(explained, end_of(gpu(order_.steps[own->second.back()].gpu)));
    for (const std::uint32_t other : step.waits_for)
      if (order_.steps[other].gpu >= 0)
        explained = std::max(explained, end_of(gpu(order_.steps[other].gpu)));
    if (event.begin <= explained + kLate) {
      if (explained > 0) step.dispatch = std::max<std::int64_t>(0, event.begin - explained);
      return;
    }
    std::optional<std::uint32_t> found;
    for (const auto& [stream, steps] : done_) {
      const auto candidate = last_done(steps, event.begin);
      if (stream == event.stream || !candidate) continue;
      const std::int64_t end = end_of(gpu(order_.steps[*candidate].gpu));
      if (end <= explained + kRounding) continue;
      explained = end;
      found = candidate;
    }
    if (found) step.waits_for.push_back(*found);
    // Launched, or held up, by what is not in the trace: that it came late is kept.
    KinetoStep gap{.begin = std::max(explained, first_), .duration = 0};
    gap.duration = event.begin - gap.begin;
    gap.waits_for = step.waits_for;
    if (own != done_.end()) gap.waits_for.push_back(own->second.back());
    if (gap.duration <= (step.runtime >= 0 ? kLateLaunch : kLate)) return;
    if (step.runtime >= 0) {
      ++order_.late;
      constexpr std::int64_t kMostLate = 1'000'000'000'000'000;  // 11 days: a bound for the sum
      order_.lateness = std::min(kMostLate, order_.lateness + std::min(kMostLate, gap.duration));
    }
    step.waits_for.push_back(static_cast<std::uint32_t>(order_.steps.size()));
    order_.steps.push_back(std::move(gap));
  }

  /// NCCL's stream waits for the stream that is current where it is called.
  void wait_for_current(std::int32_t thread, const GpuEvent& event,
                        std::vector<std::uint32_t>& waits) {
    const auto own = current_.find(thread);
    const std::optional<std::int64_t> stream =
        own != current_.end() ? std::optional(own->second) : last_current_;
    if (!stream || *stream == event.stream) return;
    const auto done = done_.find(*stream);
    if (done == done_.end()) return;
    if (const auto last = last_done(done->second, event.begin)) waits.push_back(*last);
  }

  const KinetoEvents& events_;
  const KinetoLaunches& launches_;
  const std::vector<bool>& communicates_;
  std::optional<std::int64_t> start_;
  std::map<std::int64_t, std::vector<std::int32_t>> streams_;
  KinetoOrder order_;
  std::vector<std::int64_t> moment_;                 ///< by event
  std::vector<std::int32_t> calls_;                  ///< that matter, in their order
  std::vector<std::vector<std::int32_t>> launched_;  ///< by call
  std::vector<std::uint32_t> step_of_;               ///< by event
  std::vector<bool> placed_;                         ///< by event
  std::unordered_map<std::int32_t, std::uint32_t> step_of_call_;
  std::map<std::int64_t, std::vector<std::uint32_t>> done_;  ///< steps of each stream so far
  std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t> known_waits_;
  std::map<std::int32_t, std::int64_t> current_;  ///< stream of a thread
  std::optional<std::int64_t> last_current_;
  std::map<std::int32_t, bool> waiting_threads_;  ///< after a cudaStreamWaitEvent
  std::int64_t first_ = 0;                        ///< the first time of all
  std::int64_t free_ = 0;                         ///< until when the host has its steps
  std::vector<std::uint32_t> pending_;            ///< what the host's next step waits for
  std::vector<std::int32_t> blocking_;  ///< events of the last call, which waited for them
};

}  // namespace

KinetoOrder order_events(const KinetoEvents& events, const KinetoLaunches& launches,
                         const std::vector<bool>& communicates, std::optional<std::int64_t> start) {
  return KinetoOrderer(events, launches, communicates, start).order();
}

}  // namespace hemiola::workload
