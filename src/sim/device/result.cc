// The result of a run.

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "sim/device/cores.h"
#include "sim/result/period_shares.h"
#include "sim/result/profile.h"

namespace hemiola::sim {

Result Cores::result() {
  Result result;
  if (device_.sampling != nullptr) result.sampled = skips_.end_sampling();
  std::int64_t end = 0, warm = 0;
  for (const RankState& rank : device_.ranks) {
    end = std::max(end, skips_.estimate(rank.end));
    warm = std::max(warm, skips_.estimate(rank.warm_end));
  }
  const bool period = device_.options.iterations > 0;
  result.time = {period ? (end - warm) / device_.options.iterations : end};
  for (const RankState& rank : device_.ranks) {
    Attribution spent = rank.spent.attribution();
    if (device_.program.linked() != nullptr) spent = host_.launches().whole(spent);
    skips_.stretch(spent, skips_.estimate(rank.end));
    spent[index(Reason::finished)] += end - skips_.estimate(rank.end);
    assert(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}) == end);
    if (period) scale_to_period(spent, end, result.time);
    result.attribution.push_back(spent);
    if (device_.options.replay != nullptr) {
      const auto number = static_cast<int>(&rank - device_.ranks.data());
      for (PeerWait& wait : sync_.peer_waits().of(number, rank.spent, *device_.options.replay)) {
        if (wait.buffer == kSemaphores &&
            index(wait.offset / 8) < device_.program.semaphores().size())
          wait.name = device_.program.semaphores()[index(wait.offset / 8)].name;
        result.peer_waits.push_back(std::move(wait));
      }
    }
    result.rank_end.push_back({period ? result.time.fs : skips_.estimate(rank.end)});
  }
  // The others are like those that stand for them.
  const int copies = device_.program.ranks() / device_.fold.period;
  result.simulated_ranks = device_.fold.period;
  result.unfolded_because = device_.fold.reason;
  for (int rank = device_.fold.period; rank < device_.program.ranks(); ++rank) {
    result.attribution.push_back(result.attribution[index(device_.home(rank))]);
    result.rank_end.push_back(result.rank_end[index(device_.home(rank))]);
  }
  result.launches = host_.launches().results(device_.homes);
  for (LaunchResult& launch : result.launches) {
    launch.begin.fs = skips_.estimate(launch.begin.fs);
    launch.end.fs = skips_.estimate(launch.end.fs);
    skips_.stretch(launch.attribution, (launch.end - launch.begin).fs);
  }
  const Counters c = device_.tallies.counters();
  result.visited_hops = c.hops;
  result.line_hops = c.hops * copies;
  if (device_.sampling != nullptr) result.line_hops = skips_.estimate_hops(c) * copies;
  add_links(result);
  result.counters = {{"requests.loads", c.loads},
                     {"requests.stores", c.stores},
                     {"requests.flags", c.flags},
                     {"requests.polls", c.polls},
                     {"requests.packet_retries", c.packet_retries},
                     {"requests.remote_loads", c.remote_loads},
                     {"requests.remote_stores", c.remote_stores},
                     {"requests.multicasts", c.multicasts},
                     {"requests.bursts", c.bursts},
                     {"l1.hits", c.l1_hits},
                     {"l1.misses", c.l1_misses},
                     {"l2.hits", c.l2_hits},
                     {"l2.misses", c.l2_misses},
                     {"l2.write_backs", c.l2_write_backs},
                     {"msc.hits", c.msc_hits},
                     {"msc.misses", c.msc_misses},
                     {"hbm.read_bytes", c.hbm_read},
                     {"hbm.written_bytes", c.hbm_written},
                     {"stores.injected_bytes", c.injected},
                     {"stores.delivered_bytes", c.delivered},
                     {"credits.taken", c.credits_taken},
                     {"credits.returned", c.credits_returned}};
  add_reads(c, result);
  if (device_.sampling != nullptr) skips_.count_left_out(c, result);
  for (auto& [name, count] : result.counters) count *= copies;
  return result;
}

// Reads of wavefronts at each level, flags and data apart.
void Cores::add_reads(const Counters& c, Result& result) const {
  const auto add = [&](const std::string& level, const Reads& reads) {
    result.counters["reads.flag." + level] = reads.flag;
    result.counters["reads.poll." + level] = reads.poll;
    result.counters["reads.data." + level] = reads.data;
  };
  const Reads cu{.flag = c.polls + c.packet_retries,
                 .poll = c.polls - c.first_looks + c.packet_retries,
                 .data = c.loads - c.packet_retries};
  add("cu", cu);
  add("l2", {.flag = cu.flag - c.past_l2.flag,
             .poll = cu.poll - c.past_l2.poll,
             .data = cu.data - c.l1_hits - c.multicast_loads + c.member_loads});
  add("memory", c.memory);
  add("fabric", {.flag = c.remote_polls + c.remote_retries,
                 .poll = c.remote_polls - c.remote_first_looks + c.remote_retries,
                 .data = c.remote_loads - c.remote_retries});
  if (!device_.monitors) return;
  result.counters.merge(
      std::map<std::string, std::int64_t>{{"waits.arms", c.arms},
                                          {"waits.refused", c.refused},
                                          {"waits.wakes", c.wakes},
                                          {"waits.false_wakes", c.false_wakes},
                                          {"waits.log_writes", c.log_writes},
                                          {"waits.log_reads", c.log_reads},
                                          {"waits.switched_out", c.switched_out},
                                          {"waits.switched_in", c.switched_in},
                                          {"waits.state_requests", c.state_requests}});
}

void Cores::add_links(Result& result) const {
  for (std::size_t l = 0; l < device_.machine.links.size(); ++l) {
    const std::size_t at = device_.fold.link_of.empty() ? l : index(device_.fold.link_of[l]);
    const Server& server = device_.fabric.servers[index(device_.fabric.link_base) + at];
    if (server.requests == 0) continue;
    const machine::Link& link = device_.machine.links[l];
    const std::int64_t each = std::max<std::int64_t>(1, server.busy / server.requests);
    const std::int64_t queue = server.arbiter >= 0
                                   ? device_.fabric.arbiters[index(server.arbiter)].max_queue
                                   : (server.max_wait + each - 1) / each;
    result.links.push_back(
        {device_.machine.nodes[index(link.from)].name, device_.machine.nodes[index(link.to)].name,
         link.lane, device_.machine.link_classes[index(link.link_class)].name, server.payload,
         server.wire, server.requests, Time{server.busy}, queue});
  }
}

}  // namespace hemiola::sim
