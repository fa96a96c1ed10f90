#include "workload/astra/ranks.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "core/index.h"
#include "workload/astra/kernels.h"

namespace hemiola::workload::astra {
namespace {

constexpr std::uint32_t kOver = ~std::uint32_t{0};

std::int64_t whole_ns(Time time) {
  return time.fs / 1'000'000;
}

/// What a node without a time takes.
std::int64_t recorded_ns(const Node& node) {
  return std::max<std::int64_t>(whole_ns(node.recorded), 1);
}

bool communicates(NodeKind kind) {
  return kind == NodeKind::collective || kind == NodeKind::send || kind == NodeKind::receive;
}

}  // namespace

Order::Order(const Workload& workload, const Trace& trace) {
  const std::size_t count = trace.nodes.size();
  nodes.resize(count);
  std::iota(nodes.begin(), nodes.end(), 0U);
  std::ranges::stable_sort(nodes, [&](std::uint32_t a, std::uint32_t b) {
    return trace.nodes[a].id < trace.nodes[b].id;
  });
  ranking.resize(count);
  for (std::uint32_t i = 0; i < count; ++i) ranking[nodes[i]] = i;

  // ASTRA-sim knows no streams. Who writes a trace for it writes their order as dependencies.
  followers =
      followers_of(count, [&](const auto& visit) { each_wait(workload, trace, false, visit); });
  dependencies.resize(count);
  for (const std::uint32_t node : followers.nodes) ++dependencies[node];
}

Ranks::Ranks(const Workload& workload, const AstraConfiguration& configuration, bool folded,
             Calendar& calendar, Fabric& fabric)
    : workload_(workload),
      configuration_(configuration),
      calendar_(calendar),
      fabric_(fabric),
      collectives_(workload, configuration, folded, calendar, fabric, *this),
      ranks_(folded ? 1 : index(workload.ranks)) {
  for (const RankClass& what : workload.classes) {
    const Order& order = orders_.try_emplace(what.trace.get(), workload, *what.trace).first->second;
    for (const int number : what.ranks) {
      if (index(number) >= ranks_.size()) continue;
      Rank& rank = ranks_[index(number)];
      rank.what = &what;
      rank.order = &order;
      rank.waiting = order.dependencies;
      rank.left = rank.waiting.size();
      for (std::uint32_t n = 0; n < rank.waiting.size(); ++n)
        if (rank.waiting[n] == 0) make_ready(rank, n);
    }
  }
  unfinished_ = ranks_.size();
  const AstraMemory& memory = configuration_.memory;
  memories_.resize(memory.kind == AstraMemory::Kind::per_node ? index(memory.nodes) : 1);
}

Ranks::Resource Ranks::resource_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::host:
      return kHost;
    case NodeKind::compute:
    case NodeKind::recorded_call:
      return kCompute;
    case NodeKind::collective:
    case NodeKind::send:
    case NodeKind::memory:
      return kCommunication;
    case NodeKind::receive:
    case NodeKind::nothing:
      return kUnlimited;
  }
  return kUnlimited;
}

void Ranks::make_ready(Rank& rank, std::uint32_t node) {
  auto& heap = rank.ready[resource_of(rank.what->trace->nodes[node])];
  heap.push_back(rank.order->ranking[node]);
  std::push_heap(heap.begin(), heap.end(), std::greater<>());
}

void Ranks::begin() {
  for (std::uint32_t r = 0; r < ranks_.size(); ++r) issue_ready(r);
}

void Ranks::issue_ready(std::uint32_t number) {
  Rank& rank = ranks_[number];
  do {
    for (const std::uint32_t node : std::exchange(rank.late, {})) make_ready(rank, node);
    issue_pass(number);
    // ASTRA-sim would wait for ever here; elsewhere what is late waits for the next node's end.
  } while (rank.under_way.empty() && !rank.late.empty());
  if (rank.left == 0) {
    rank.times.finish_ns = calendar_.now();
    --unfinished_;
  }
}

void Ranks::issue_pass(std::uint32_t number) {
  Rank& rank = ranks_[number];
  for (;;) {
    std::vector<std::uint32_t>* best = nullptr;
    for (std::size_t r = 0; r < kResources; ++r) {
      if (rank.ready[r].empty() || (r < kUnlimited && rank.busy[r])) continue;
      if (best == nullptr || rank.ready[r].front() < best->front()) best = &rank.ready[r];
    }
    if (best == nullptr) return;
    std::pop_heap(best->begin(), best->end(), std::greater<>());
    const std::uint32_t node = rank.order->nodes[best->back()];
    best->pop_back();
    issue(number, node);
  }
}

void Ranks::issue(std::uint32_t number, std::uint32_t node) {
  Rank& rank = ranks_[number];
  const Node& what = node_of(number, node);
  if (what.kind == NodeKind::nothing) {
    rank.waiting[node] = kOver;
    --rank.left;
    return free_children(number, node, true);
  }
  const Resource resource = resource_of(what);
  if (resource < kUnlimited) rank.busy[resource] = true;
  rank.under_way.emplace(node, calendar_.now());
  if (communicates(what.kind) && rank.communications++ == 0) rank.since = calendar_.now();
  if (configuration_.system.replay || what.kind == NodeKind::host) return replay(number, node);
  switch (what.kind) {
    case NodeKind::recorded_call:
      return replay(number, node);
    case NodeKind::compute:
      return compute(number, node);
    case NodeKind::memory:
      return access_memory(number, node);
    case NodeKind::send:
      return send(number, node);
    case NodeKind::receive:
      return receive(number, node);
    case NodeKind::collective:
      // Of a broadcast ASTRA-sim knows the recorded time only.
      if (workload_.collectives[index(what.work)].kind == Collective::broadcast)
        return calendar_.enter_of_rank(number, calendar_.now() + recorded_ns(what),
                                       {EventKind::over, number, node});
      return collectives_.start(number, node, what.work);
    case NodeKind::nothing:
    case NodeKind::host:
      break;
  }
}

void Ranks::replay(std::uint32_t number, std::uint32_t node) {
  const Node& what = node_of(number, node);
  const std::int64_t time = recorded_ns(what);
  AstraRank& times = ranks_[number].times;
  (what.kind == NodeKind::host ? times.host_ns : times.compute_ns) += time;
  calendar_.enter_of_rank(number, calendar_.now() + time, {EventKind::over, number, node});
}

void Ranks::compute(std::uint32_t number, std::uint32_t node) {
  const Node& what = node_of(number, node);
  if (!configuration_.system.roofline || what.work < 0) return replay(number, node);
  const Amounts work = amounts_of(workload_.computes[index(what.work)]);
  if (work.bytes == 0) {  // takes no time, and ASTRA-sim looks at what follows at the next event
    release(number, node);
    return free_children(number, node, false);
  }
  const std::int64_t time = roofline_ns(work, configuration_.system);
  ranks_[number].times.compute_ns += time;
  calendar_.enter_of_rank(number, calendar_.now() + time, {EventKind::over, number, node});
}

/// The resource is free again, and the node over.
void Ranks::release(std::uint32_t number, std::uint32_t node) {
  Rank& rank = ranks_[number];
  const Node& what = node_of(number, node);
  const Resource resource = resource_of(what);
  if (resource < kUnlimited) rank.busy[resource] = false;
  const auto at = rank.under_way.find(node);
  if (communicates(what.kind)) {
    count_work(rank, what, calendar_.now() - at->second);
    if (--rank.communications == 0) rank.times.communication_ns += calendar_.now() - rank.since;
  }
  rank.under_way.erase(at);
  rank.waiting[node] = kOver;
  --rank.left;
}

void Ranks::free_children(std::uint32_t number, std::uint32_t node, bool at_once) {
  Rank& rank = ranks_[number];
  for (const std::uint32_t child : rank.order->followers.of(node)) {
    if (--rank.waiting[child] > 0) continue;
    if (at_once)
      make_ready(rank, child);
    else
      rank.late.push_back(child);
  }
}

void Ranks::over(std::uint32_t number, std::uint32_t node) {
  release(number, node);
  free_children(number, node, true);
  issue_ready(number);
}

void Ranks::count_work(Rank& rank, const Node& node, std::int64_t time) {
  const auto [at, is_new] = rank.works.try_emplace(
      {node.kind, node.work},
      AstraWork{.kind = node.kind, .work = node.work, .shortest_ns = time, .longest_ns = time});
  AstraWork& work = at->second;
  ++work.count;
  work.time_ns += time;
  work.shortest_ns = std::min(work.shortest_ns, time);
  work.longest_ns = std::max(work.longest_ns, time);
}

AstraResult Ranks::result() const {
  AstraResult result;
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    const Rank& rank = ranks_[r];
    AstraRank times = rank.times;
    times.exposed_ns = times.finish_ns - times.compute_ns;
    result.ranks.push_back(times);
    result.time_ns = std::max(result.time_ns, times.finish_ns);
    for (auto [key, work] : rank.works) {
      work.rank = static_cast<int>(r);
      if (work.kind == NodeKind::collective) {
        const CollectiveCall& call = workload_.collectives[index(work.work)];
        const Place place = collectives_.place_of(call.family, static_cast<std::uint32_t>(r));
        const auto& groups = workload_.families[index(call.family)].groups;
        work.bytes = astra_size(call, static_cast<std::int64_t>(groups[place.group].size()));
      } else {
        work.bytes = workload_.messages[index(work.work)].bytes;
      }
      result.works.push_back(work);
    }
  }
  return result;
}

}  // namespace hemiola::workload::astra
