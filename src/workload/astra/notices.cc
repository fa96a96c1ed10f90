#include "workload/astra/notices.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/index.h"
#include "workload/astra/kernels.h"

namespace hemiola::workload::astra {
namespace {

class Notices {
 public:
  Notices(const Workload& workload, const AstraConfiguration& configuration)
      : workload_(workload), configuration_(configuration) {}

  Diagnostics list() {
    for (const RankClass& one : workload_.classes)
      for (const Node& node : one.trace->nodes) look_at(node);
    about_nodes();
    about_collectives();
    return std::move(list_);
  }

 private:
  void look_at(const Node& node) {
    const AstraSystem& system = configuration_.system;
    host_times_ += node.host.fs > 0 ? 1 : 0;
    const bool shaped = node.kind == NodeKind::compute && system.roofline && node.work >= 0;
    const bool broadcast = node.kind == NodeKind::collective &&
                           workload_.collectives[index(node.work)].kind == Collective::broadcast;
    const bool replayed = node.kind == NodeKind::host || broadcast ||
                          (node.kind == NodeKind::compute && !(shaped && !system.replay)) ||
                          (system.replay && node.kind != NodeKind::nothing);
    if (replayed && node.recorded.fs == 0) ++untimed_;
    broadcasts_ += broadcast ? 1 : 0;
    if (shaped && !system.replay) {
      const Amounts work = amounts_of(workload_.computes[index(node.work)]);
      if (work.bytes == 0) ++without_bytes_;
      if (work.flop == 0 && work.bytes > 0) ++without_flop_;
    }
    if (node.kind == NodeKind::compute && system.roofline && node.work < 0 && !system.replay)
      ++unshaped_;
    if (node.kind == NodeKind::collective) calls_.insert(node.work);
  }

  void say(std::int64_t count, std::string_view one, std::string_view what) {
    if (count > 0)
      list_.warning(fmt::format("{} {}: {}", count,
                                count == 1 ? std::string(one) : fmt::format("{}s", one), what),
                    {.file = workload_.source});
  }

  void about_nodes() {
    say(untimed_, "node", "no time is recorded, and ASTRA-sim takes 1 ns");
    say(unshaped_, "kernel", "neither flop nor bytes are known, so the recorded time counts");
    say(without_bytes_, "kernel", "no bytes are known, and ASTRA-sim takes no time");
    say(without_flop_, "kernel",
        "no flop are known, so the bytes alone count, where ASTRA-sim divides 0 by 0");
    say(broadcasts_, "broadcast", "the recorded time counts, as in ASTRA-sim");
    say(host_times_, "node", "the CPU's time for it does not count: ASTRA-sim has no launches");
  }

  void about_collectives() {
    std::int64_t alone = 0, small = 0;
    std::set<std::string> partial;
    for (const std::int32_t number : calls_) {
      const CollectiveCall& call = workload_.collectives[index(number)];
      const auto& algorithms = configuration_.system.algorithms;
      if (index(static_cast<int>(call.kind)) >= algorithms.size()) continue;
      const auto& own = algorithms[index(call.kind)];
      for (const auto& group : workload_.families[index(call.family)].groups) {
        if (group.size() == 1) ++alone;
        if (group.size() == index(workload_.ranks) &&
            own.size() < configuration_.network.dimensions.size() &&
            std::ranges::none_of(own, [](const auto& a) { return a.over_all; }))
          partial.insert(fmt::format("{} goes over {} of {} dimensions only", name_of(call.kind),
                                     own.size(), configuration_.network.dimensions.size()));
        if (call.kind == Collective::all_gather &&
            call.bytes / static_cast<std::int64_t>(group.size()) < configuration_.system.chunks)
          ++small;
      }
    }
    say(alone, "collective", "it has one rank and takes no time, where ASTRA-sim never ends");
    say(small, "all-gather", "it has fewer bytes than chunks, where ASTRA-sim never ends");
    for (const std::string& what : partial)
      list_.warning(what + ", as its list of algorithms says", {.file = workload_.source},
                    "give an algorithm for each dimension");
  }

  const Workload& workload_;
  const AstraConfiguration& configuration_;
  Diagnostics list_;
  std::set<std::int32_t> calls_;
  std::int64_t untimed_ = 0, unshaped_ = 0, without_bytes_ = 0, without_flop_ = 0, broadcasts_ = 0,
               host_times_ = 0;
};

}  // namespace

Diagnostics notices_of(const Workload& workload, const AstraConfiguration& configuration) {
  return Notices(workload, configuration).list();
}

}  // namespace hemiola::workload::astra
