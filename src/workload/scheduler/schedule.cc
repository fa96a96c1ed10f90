#include "workload/scheduler/schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "workload/followers.h"
#include "workload/scheduler/accounts.h"
#include "workload/scheduler/meetings.h"
#include "workload/scheduler/progress.h"
#include "workload/scheduler/stuck.h"

namespace hemiola::workload {
namespace {

/// The CPU of a class comes to a node.
struct Arrival {
  Time at{};
  Member member;
  bool operator>(const Arrival& other) const {
    return std::tuple(at, member.rank_class) > std::tuple(other.at, other.member.rank_class);
  }
};

/// A class while it runs.
struct Running {
  const Trace* trace = nullptr;
  std::vector<std::int32_t> open;  ///< by node: dependencies that are not over; -1: it is over
  Followers followers;
  std::vector<std::uint8_t> busy;   ///< by stream
  std::vector<std::uint32_t> last;  ///< by stream: the node that was over last
  std::vector<Time> free_since;     ///< by stream: when it was; -1: never
  /// By stream that is not in order: what is ready, the earliest first.
  std::vector<std::set<std::pair<std::int64_t, std::uint32_t>>> ready;
  Account account;
  std::int64_t left = 0;  ///< nodes that are not over
  Time end{};
  // The CPU, where it is modelled.
  std::uint32_t issued = 0;  ///< nodes that it has come to
  Time cpu{};                ///< when it came to the last one
};

class Scheduler {
 public:
  Scheduler(const Workload& workload, Places& places, Costs& costs, const ScheduleOptions& options)
      : workload_(workload),
        costs_(costs),
        options_(options),
        places_(places),
        progress_(costs, workload.classes.size()) {
    for (const RankClass& one : workload.classes)
      for (const Node& node : one.trace->nodes) has_cpu_ = has_cpu_ || node.host.fs > 0;
    result_.nodes.resize(workload.classes.size());
    running_.resize(workload.classes.size());
    for (std::size_t c = 0; c < running_.size(); ++c) prepare(c);
  }

  ScheduleResult run() {
    std::vector<Member> initial;  // before any of them makes others ready
    for (std::size_t c = 0; c < running_.size(); ++c) {
      const auto number = static_cast<std::int32_t>(c);
      for (std::uint32_t n = 0; n < running_[c].open.size(); ++n)
        if (running_[c].open[n] == 0) initial.push_back({number, n});
    }
    for (const Member& member : initial) become_ready(member, kNoNode);
    if (has_cpu_)
      for (std::size_t c = 0; c < running_.size(); ++c) advance_cpu(static_cast<std::int32_t>(c));
    settle();
    while (!progress_.is_empty() || !arrivals_.empty()) {
      now_ = Time{std::numeric_limits<std::int64_t>::max()};
      if (!progress_.is_empty()) now_ = progress_.next_end();
      if (!arrivals_.empty()) now_ = std::min(now_, arrivals_.top().at);
      if (options_.monitor != nullptr) options_.monitor->leave_if_stopping();
      while (!progress_.is_empty() && progress_.next_end() == now_) finish(progress_.take_next());
      while (!arrivals_.empty() && arrivals_.top().at == now_) {
        const Member member = arrivals_.top().member;
        arrivals_.pop();
        issue(member);
        advance_cpu(member.rank_class);
      }
      settle();
    }
    return take();
  }

 private:
  // --- Preparation.

  const Node& node_of(const Member& member) const {
    return running_[index(member.rank_class)].trace->nodes[member.node];
  }
  Running& of(const Member& member) { return running_[index(member.rank_class)]; }
  NodeTimes& times_of(const Member& member) {
    return result_.nodes[index(member.rank_class)][member.node];
  }

  void prepare(std::size_t c) {
    Running& one = running_[c];
    one.trace = workload_.classes[c].trace.get();
    const std::vector<Node>& nodes = one.trace->nodes;
    result_.nodes[c].resize(nodes.size());
    one.busy.resize(workload_.streams.size());
    one.last.resize(workload_.streams.size(), kNoNode);
    one.free_since.resize(workload_.streams.size(), Time{-1});
    one.ready.resize(workload_.streams.size());
    one.left = static_cast<std::int64_t>(nodes.size());
    one.open.resize(nodes.size());
    one.followers = followers_of(
        nodes.size(), [&](const auto& visit) { each_wait(workload_, *one.trace, visit); });
    for (const std::uint32_t n : one.followers.nodes) ++one.open[n];
  }

  // --- Nodes.

  /// Of a collective or message.
  bool is_left_out(const Node& node) const {
    const Call call = call_of(workload_, node.kind, node.work);
    const auto& groups = workload_.families[index(call.family)].groups;
    // A rank alone has nothing to communicate.
    return groups.front().size() == 1 ||
           std::ranges::find(options_.without, call.kind) != options_.without.end();
  }

  /// What it depends on is over. `cause` ended now.
  void become_ready(const Member& member, std::uint32_t cause) {
    const Node& node = node_of(member);
    NodeTimes& times = times_of(member);
    times.ready = now_;
    times.cause = cause;
    Running& one = of(member);
    if (has_cpu_ && member.node >= one.issued) {
      // The CPU launches it when it comes to it; until then somebody may wait for the CPU.
      if (node.kind == NodeKind::host) return advance_cpu(member.rank_class);
      one.account.begin_host(now_);
      return;
    }
    offer(member);
  }

  /// Nodes in their order: each costs the CPU its time; one of kind `host` is waited for.
  void advance_cpu(std::int32_t number) {
    Running& one = running_[index(number)];
    const std::vector<Node>& nodes = one.trace->nodes;
    if (one.cpu > now_) return;  // busy: an event follows
    while (one.issued < nodes.size()) {
      const Member member{number, one.issued};
      const Node& node = nodes[one.issued];
      if (node.kind == NodeKind::host && one.open[one.issued] > 0) return;
      one.cpu = now_ + node.host + (node.kind == NodeKind::host ? node.recorded : Time{});
      if (one.cpu > now_) {
        arrivals_.push({one.cpu, member});
        return;
      }
      issue(member);
    }
  }

  /// The CPU is through with the node.
  void issue(const Member& member) {
    Running& one = of(member);
    ++one.issued;
    const Node& node = node_of(member);
    if (node.kind == NodeKind::host) {
      NodeTimes& times = times_of(member);
      times.begin = now_ - node.host - node.recorded;
      complete(member);
    } else if (one.open[member.node] == 0) {
      one.account.end_host(now_);
      times_of(member).ready = now_;
      times_of(member).cause = kNoNode;
      offer(member);
    }
  }

  /// It may be launched as soon as its stream is free.
  void offer(const Member& member) {
    const Node& node = node_of(member);
    if (workload_.streams[node.stream].in_order) return launch(member);
    Running& one = of(member);
    one.ready[node.stream].insert({now_.fs, member.node});
    waiting_.push_back({member.rank_class, node.stream});
  }

  void launch(const Member& member) {
    const Node& node = node_of(member);
    // Where a stream has no order, messages wait for their peers beside each other.
    const bool is_message = node.kind == NodeKind::send || node.kind == NodeKind::receive;
    if (!is_message || workload_.streams[node.stream].in_order) of(member).busy[node.stream] = 1;
    switch (node.kind) {
      case NodeKind::nothing:
        return pass(member);
      case NodeKind::host:
        return node.recorded.fs == 0 ? pass(member) : start_alone(member, node.recorded);
      case NodeKind::compute:
      case NodeKind::memory:
        switch (time_from(workload_, node, options_.compute)) {
          case TimeFrom::nothing:
            return pass(member);
          case TimeFrom::recorded:
            return start_alone(member, node.recorded);
          case TimeFrom::work:
            return start_alone(member, {});
        }
        return;
      case NodeKind::collective:
      case NodeKind::send:
      case NodeKind::receive:
        return is_left_out(node) ? pass(member) : meet(member);
      case NodeKind::recorded_call:
        return node.recorded.fs == 0 ? pass(member) : start_alone(member, node.recorded);
    }
  }

  /// It takes no time.
  void pass(const Member& member) {
    times_of(member).begin = now_;
    complete(member);
  }

  void start_alone(const Member& member, Time fixed) {
    const Node& node = node_of(member);
    LaunchKind kind{.kind = node.kind, .work = node.work, .fixed = fixed};
    if (fixed.fs == 0) kind.place = places_.of_compute(member.rank_class);
    if (fixed.fs > 0) kind.work = -1;
    start(kind, {member});
  }

  // --- Meetings.

  CallKey key_of(const Node& node) const { return call_key(workload_, node.kind, node.work); }
  std::int64_t bytes_of(const Node& node) const {
    return call_of(workload_, node.kind, node.work).bytes;
  }

  void meet(const Member& member) {
    const Node& node = node_of(member);
    Meetings::Call call{.kind = node.kind,
                        .lane = {.place = places_.of_call(member.rank_class, node)},
                        .bytes = bytes_of(node)};
    LaunchKind kind{.kind = node.kind, .work = node.work, .place = call.lane.place};
    if (node.kind == NodeKind::collective) {
      call.lane.lane = node.stream;
      call.callers = places_.place(call.lane.place).classes.size();
    } else {
      kind.kind = NodeKind::send;
      call.lane.lane = workload_.messages[index(node.work)].tag;
      const Places::Sides& sides = places_.sides(call.lane.place);
      call.callers = sides.senders.size();
      call.receivers = sides.receivers.size();
    }
    of(member).account.begin_wait(now_, key_of(node));
    Meetings::Arrival arrival = meetings_.arrive(call, member, [&] { return costs_.buffer(kind); });
    if (arrival.other) compare(*arrival.other, member);
    if (arrival.outcome == Meetings::Outcome::waits) return;
    const auto number = static_cast<std::uint32_t>(result_.meetings.size());
    result_.meetings.push_back({arrival.last.rank_class, arrival.last.node});
    for (const Member& one : arrival.members) {
      times_of(one).meeting = number;
      of(one).account.end_wait(now_, key_of(node_of(one)));
      if (arrival.outcome != Meetings::Outcome::joins) continue;
      times_of(one).begin = now_;
      of(one).account.begin_call(now_, key_of(node_of(one)), bytes_of(node));
    }
    if (arrival.outcome == Meetings::Outcome::joins) return;
    if (arrival.outcome == Meetings::Outcome::takes_out) kind.kind = NodeKind::receive;
    if (options_.calls_recorded) kind.fixed = recorded_of(arrival.members);
    start(kind, std::move(arrival.members));
  }

  /// The shortest time of those that meet; 0: none was recorded.
  Time recorded_of(const std::vector<Member>& members) const {
    Time shortest{};
    for (const Member& one : members) {
      const Time recorded = node_of(one).recorded;
      if (recorded.fs > 0 && (shortest.fs == 0 || recorded < shortest)) shortest = recorded;
    }
    return shortest;
  }

  /// Failure where two that meet do not call the same.
  void compare(const Member& first, const Member& second) const {
    const Node& a = node_of(first);
    const Node& b = node_of(second);
    const auto text = [&](const Node& node) {
      if (node.kind != NodeKind::collective) return fmt::format("message of {} B", bytes_of(node));
      return fmt::format("{} of {} B", name_of(key_of(node).collective), bytes_of(node));
    };
    if (text(a) == text(b)) return;
    throw Failure(fmt::format("{} calls {} where {} calls {}{}", title(workload_, first), text(a),
                              title(workload_, second), text(b), inference(workload_, a)),
                  {.file = workload_.source},
                  "calls of a group meet in the order in which each of its ranks makes them",
                  ExitCode::wrong_program);
  }

  // --- Launches.

  void start(const LaunchKind& kind, std::vector<Member> members) {
    Follows follows = now_.fs == 0 ? Follows::nothing : Follows::other_stream;
    if (std::ranges::all_of(members, [&](const Member& member) {
          return of(member).free_since[node_of(member).stream] == now_;
        }))
      follows = Follows::own_stream;
    Time alone = kind.fixed.fs > 0 ? kind.fixed : costs_.alone(kind, follows);
    if (is_kernel(kind.kind))
      alone = {std::max<std::int64_t>(1, alone.fs / 1000 * options_.compute_permille)};
    // Nothing is there before the host's first call has come through.
    const Time begin = kind.fixed.fs > 0 ? now_ : std::max(now_, costs_.latency(kind));
    for (const Member& member : members) {
      times_of(member).begin = begin;
      Account& account = of(member).account;
      if (kind.kind == NodeKind::compute) {
        account.begin_compute(now_);
      } else if (kind.kind == NodeKind::memory) {
        account.begin_memory(now_);
      } else if (kind.kind != NodeKind::host) {
        account.begin_call(now_, key_of(node_of(member)), bytes_of(node_of(member)));
        if (has_product(workload_, kind.kind, kind.work)) account.begin_compute(now_);
      }
    }
    progress_.start(kind, std::move(members), begin, alone);
  }

  void finish(const Progress::Launch& launch) {
    for (const Member& member : launch.members) {
      Account& account = of(member).account;
      if (launch.kind.kind == NodeKind::compute) {
        account.end_compute(now_);
        account.add_slowed(now_ - launch.begin - launch.alone);
      } else if (launch.kind.kind == NodeKind::memory) {
        account.end_memory(now_);
      } else if (launch.kind.kind != NodeKind::host) {
        if (has_product(workload_, launch.kind.kind, launch.kind.work)) account.end_compute(now_);
        account.end_call(now_, key_of(node_of(member)));
      }
    }
    for (const Member& member : launch.members) complete(member);
    if (launch.kind.kind != NodeKind::send) return;
    for (const Member& member : meetings_.end_send(launch.members.front())) {
      of(member).account.end_call(now_, key_of(node_of(member)));
      complete(member);
    }
  }

  void complete(const Member& member) {
    Running& one = of(member);
    times_of(member).end = now_;
    one.end = now_;
    one.open[member.node] = -1;
    --one.left;
    const Node& node = node_of(member);
    one.busy[node.stream] = 0;
    one.last[node.stream] = member.node;
    if (times_of(member).end > times_of(member).begin) one.free_since[node.stream] = now_;
    if (!workload_.streams[node.stream].in_order)
      waiting_.push_back({member.rank_class, node.stream});
    over_.push_back(member);
    if (is_cascading_) return;
    // Chains of nodes that take no time would nest as deep as they are long.
    is_cascading_ = true;
    while (!over_.empty()) {
      const Member next = over_.back();
      over_.pop_back();
      Running& where = of(next);
      for (const std::uint32_t follower : where.followers.of(next.node))
        if (--where.open[follower] == 0) become_ready({next.rank_class, follower}, next.node);
    }
    is_cascading_ = false;
  }

  // --- An instant: everything that can begin has begun, then speeds follow.

  void settle() {
    while (!waiting_.empty()) {
      const auto [number, stream] = waiting_.back();
      waiting_.pop_back();
      Running& one = running_[index(number)];
      auto& ready = one.ready[stream];
      if (one.busy[stream] != 0 || ready.empty()) continue;
      const std::uint32_t node = ready.begin()->second;
      ready.erase(ready.begin());
      const Member member{number, node};
      if (times_of(member).ready < now_) {  // it waited for the stream
        times_of(member).ready = now_;
        times_of(member).cause = one.last[stream];
      }
      launch(member);
    }
    progress_.settle(now_);
  }

  // --- The end.

  ScheduleResult take() {
    std::vector<Stuck> stuck;
    result_.unreceived = meetings_.unreceived();
    for (const auto& [lane, members] : meetings_.waiting()) {
      Stuck one{.members = members, .missing = {}};
      const Place& place = places_.place(lane.place);
      for (const std::int32_t c : place.classes) {
        const bool is_here = std::ranges::any_of(
            one.members, [&](const Member& member) { return member.rank_class == c; });
        if (!is_here) one.missing.push_back(c);
      }
      stuck.push_back(std::move(one));
    }
    OpenNodes open;
    for (const Running& one : running_) open.push_back(one.open);
    const bool is_over =
        std::ranges::all_of(running_, [](const Running& one) { return one.left == 0; });
    if (!is_over) report_stuck(workload_, stuck, open);
    result_.situations = progress_.situations();
    for (const Running& one : running_) result_.time = std::max(result_.time, one.end);
    for (Running& one : running_)
      result_.classes.push_back(one.account.finish(one.end, result_.time));
    return std::move(result_);
  }

  const Workload& workload_;
  Costs& costs_;
  const ScheduleOptions& options_;
  Places& places_;
  Progress progress_;
  bool has_cpu_ = false;
  Time now_{};
  ScheduleResult result_;
  std::vector<Running> running_;
  std::vector<std::pair<std::int32_t, std::uint16_t>> waiting_;  ///< streams to look at
  std::vector<Member> over_;
  bool is_cascading_ = false;
  std::priority_queue<Arrival, std::vector<Arrival>, std::greater<>> arrivals_;
  Meetings meetings_;
};

}  // namespace

TimeFrom time_from(const Workload& workload, const Node& node, ComputeSource source) {
  const bool is_recorded = node.recorded.fs > 0 && source != ComputeSource::model;
  const Compute nothing;
  const Compute& work = node.work >= 0 ? workload.computes[index(node.work)] : nothing;
  if (is_recorded && (source == ComputeSource::recorded || work.concluded))
    return TimeFrom::recorded;
  if (!work.is_nothing()) return TimeFrom::work;  // nothing to do takes no time
  return is_recorded ? TimeFrom::recorded : TimeFrom::nothing;
}

ScheduleResult schedule(const Workload& workload, Places& places, Costs& costs,
                        const ScheduleOptions& options) {
  return Scheduler(workload, places, costs, options).run();
}

}  // namespace hemiola::workload
