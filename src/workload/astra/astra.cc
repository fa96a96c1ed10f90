#include "workload/astra/astra.h"

#include <fmt/format.h>

#include <set>

#include "core/index.h"
#include "workload/astra/calendar.h"
#include "workload/astra/fabric.h"
#include "workload/astra/notices.h"
#include "workload/astra/plan.h"
#include "workload/astra/ranks.h"

namespace hemiola::workload {
namespace {

using astra::Calendar;
using astra::Event;
using astra::EventKind;
using astra::Fabric;

/// Events between two looks at whether to go on.
constexpr std::int64_t kPatience = 1 << 16;

class Simulation {
 public:
  Simulation(const Workload& workload, const AstraConfiguration& configuration, bool folded)
      : calendar_(folded ? 1 : index(workload.ranks)),
        fabric_(configuration, folded, calendar_),
        ranks_(workload, configuration, folded, calendar_, fabric_) {}

  /// False: a message has waited for another one, and was not to.
  bool run(bool may_wait, Monitor* monitor) {
    ranks_.begin();
    Event event;
    while (calendar_.next(event)) {
      handle(event);
      if (!may_wait && fabric_.has_waited()) return false;
      if (monitor == nullptr || calendar_.handled() % kPatience != 0) continue;
      monitor->time_fs.store(Time::from_ns(calendar_.now()).fs, std::memory_order_relaxed);
      monitor->leave_if_stopping();
    }
    if (!ranks_.done()) ranks_.fail_deadlock();
    return true;
  }

  AstraResult result() const {
    AstraResult result = ranks_.result();
    result.messages = fabric_.messages();
    result.events = calendar_.handled();
    return result;
  }

 private:
  void handle(const Event& event) {
    switch (event.kind) {
      case EventKind::of_rank:
        break;  // the calendar's own
      case EventKind::message:
        return ranks_.collectives().message(event.subject, event.detail);
      case EventKind::parcel:
        return ranks_.parcel(event.subject);
      case EventKind::hop:
        if (const auto arrival = fabric_.hop(event.subject)) handle(*arrival);
        return;
      case EventKind::link_free:
        return fabric_.link_free(event.subject);
      case EventKind::received:
        return ranks_.collectives().received(event.subject);
      case EventKind::at_endpoint:
        return ranks_.collectives().at_endpoint(event.subject, event.detail);
      case EventKind::reduced:
        return ranks_.collectives().reduced(event.subject);
      case EventKind::taken:
      case EventKind::over:
        return ranks_.over(event.subject, static_cast<std::uint32_t>(event.detail));
      case EventKind::memory_free:
        return ranks_.memory_free(event.subject);
    }
  }

  Calendar calendar_;
  Fabric fabric_;
  astra::Ranks ranks_;
};

/// All ranks do the same with all others, so that what one does says what each of them does, as
/// long as no message waits for another one.
bool all_are_alike(const Workload& workload, const AstraConfiguration& configuration) {
  if (workload.classes.size() != 1) return false;
  const auto everybody = [&](std::int32_t family) {
    const auto& groups = workload.families[index(family)].groups;
    return groups.size() == 1 && groups.front().size() == index(workload.ranks);
  };
  for (const Node& node : workload.classes.front().trace->nodes) {
    if (node.kind == NodeKind::send || node.kind == NodeKind::receive) return false;
    if (node.kind == NodeKind::memory && configuration.memory.kind != AstraMemory::Kind::per_npu)
      return false;
    if (node.kind != NodeKind::collective) continue;
    const CollectiveCall& call = workload.collectives[index(node.work)];
    if (!everybody(call.family)) return false;
    if (index(call.kind) >= configuration.system.algorithms.size()) continue;
    for (const AstraAlgorithm& algorithm : configuration.system.algorithms[index(call.kind)]) {
      using enum AstraAlgorithm::Kind;
      // Places in a tree differ. Partners of halving-doubling are at the same distance, but on
      // different sides.
      if (algorithm.kind == double_binary_tree) return false;
      if (algorithm.kind == halving_doubling && configuration.aware) return false;
      if (algorithm.over_all && configuration.network.dimensions.size() > 1) return false;
    }
  }
  return true;
}

/// What stands for one rank stands for all.
void unfold(AstraResult& result, int ranks) {
  result.folded = true;
  result.messages *= ranks;
  result.ranks.resize(index(ranks), result.ranks.front());
  const std::vector<AstraWork> works = result.works;
  for (int r = 1; r < ranks; ++r) {
    for (AstraWork work : works) {
      work.rank = r;
      result.works.push_back(work);
    }
  }
}

void check_configuration(const Workload& workload, const AstraConfiguration& configuration) {
  const std::int64_t npus = configuration.network.npus();
  if (configuration.network.dimensions.empty())
    throw Failure("the network of the ASTRA-sim configuration has no dimension");
  if (npus != workload.ranks)
    throw Failure(
        fmt::format("the workload has {} ranks, and the network {} NPUs", workload.ranks, npus),
        {.file = workload.source}, "change 'npus_count' in the network's file");
  if (configuration.aware && configuration.network.dimensions.size() > 1)
    throw Failure("the congestion-aware network of ASTRA-sim has one dimension, not " +
                      std::to_string(configuration.network.dimensions.size()),
                  {}, "the unaware one takes several");
  // What cannot be run is refused before anything runs.
  for (const CollectiveCall& call : workload.collectives) {
    if (configuration.system.replay || call.kind == Collective::broadcast) continue;
    std::set<std::size_t> sizes;
    for (const auto& group : workload.families[index(call.family)].groups)
      sizes.insert(group.size());
    for (const std::size_t size : sizes)
      astra::make_plan(call, static_cast<std::int64_t>(size), configuration);
  }
}

}  // namespace

AstraResult run_astra(const Workload& workload, const AstraConfiguration& configuration,
                      const AstraOptions& options) {
  check_configuration(workload, configuration);
  if (options.fold && workload.ranks > 1 && all_are_alike(workload, configuration)) {
    Simulation simulation(workload, configuration, true);
    if (simulation.run(false, options.monitor)) {
      AstraResult result = simulation.result();
      unfold(result, workload.ranks);
      result.notices = astra::notices_of(workload, configuration);
      return result;
    }
  }
  Simulation simulation(workload, configuration, false);
  simulation.run(true, options.monitor);
  AstraResult result = simulation.result();
  result.notices = astra::notices_of(workload, configuration);
  return result;
}

}  // namespace hemiola::workload
