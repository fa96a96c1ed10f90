// Small workloads by hand, and costs that are known.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "workload/scheduler/schedule.h"

namespace hemiola::workload::test {

/// Kernels and calls take as many microseconds as their `flop` and `bytes` say; beside others
/// everything has `speed`.
class FixedCosts : public Costs {
 public:
  explicit FixedCosts(const Workload& workload, std::int64_t speed = kFullSpeed)
      : workload_(workload), speed_(speed) {}

  Time alone(const LaunchKind& kind, Follows) override {
    const auto work = static_cast<std::size_t>(kind.work);
    if (kind.kind == NodeKind::collective) return us(workload_.collectives[work].bytes);
    if (kind.kind == NodeKind::send) return us(workload_.messages[work].bytes);
    return us(workload_.computes[work].flop);
  }
  Time latency(const LaunchKind&) override { return {}; }
  std::vector<std::int64_t> speeds(std::int32_t, const std::vector<LaunchKind>& together) override {
    return std::vector<std::int64_t>(together.size(), speed_);
  }
  static Time us(std::int64_t count) { return Time{count * 1'000'000'000}; }

 private:
  const Workload& workload_;
  std::int64_t speed_;
};

/// Nodes of one class, in order.
class TraceWriter {
 public:
  explicit TraceWriter(WorkloadBuilder& builder) : builder_(builder) {}

  std::uint32_t compute(const std::string& name, std::int64_t us,
                        const std::vector<std::uint32_t>& after = {}) {
    return add(name, NodeKind::compute, builder_.stream("compute"), builder_.compute({.flop = us}),
               after);
  }
  std::uint32_t call(const std::string& name, std::int32_t family, std::int64_t us,
                     const std::vector<std::uint32_t>& after = {},
                     const std::string& stream = "comm", Collective kind = Collective::all_reduce) {
    return add(name, NodeKind::collective, builder_.stream(stream),
               builder_.collective({.kind = kind, .family = family, .bytes = us}), after);
  }
  std::uint32_t send(std::int32_t family, std::int64_t us,
                     const std::vector<std::uint32_t>& after = {}) {
    return add("send", NodeKind::send, builder_.stream("send"),
               builder_.message({.family = family, .bytes = us}), after);
  }
  std::uint32_t receive(std::int32_t family, std::int64_t us,
                        const std::vector<std::uint32_t>& after = {}) {
    return add("receive", NodeKind::receive, builder_.stream("receive"),
               builder_.message({.family = family, .bytes = us}), after);
  }
  std::uint32_t add(const std::string& name, NodeKind kind, std::uint16_t stream, std::int32_t work,
                    const std::vector<std::uint32_t>& after) {
    return trace_.add({.id = trace_.nodes.size(),
                       .name = builder_.name(name),
                       .kind = kind,
                       .stream = stream,
                       .work = work},
                      after);
  }
  Node& node(std::uint32_t number) { return trace_.nodes[number]; }

  /// The ranks do this.
  void finish(std::vector<int> ranks) {
    builder_.workload().classes.push_back(
        {.name = "class " + std::to_string(builder_.workload().classes.size()),
         .trace = std::make_shared<const Trace>(std::move(trace_)),
         .ranks = std::move(ranks)});
  }

 private:
  WorkloadBuilder& builder_;
  Trace trace_;
};

inline ScheduleResult run(const Workload& workload, std::int64_t speed = kFullSpeed,
                          const ScheduleOptions& options = {}) {
  Places places(workload);
  FixedCosts costs(workload, speed);
  return schedule(workload, places, costs, options);
}

}  // namespace hemiola::workload::test
