// Switches of multicast groups (NVLS). A switch replicates a request as it comes, and has a stage
// for what members answer: behind the GPUs, before its links to them.

#include <algorithm>

#include "sim/device/multicast.h"
#include "sim/line/links.h"
#include "sim/line/stages.h"
#include "sim/line/way_table.h"

namespace hemiola::sim {
// Before its links to GPUs, with which it keeps step.
void Links::place_switches() {
  for (SwitchStage& at : stages_.switches) {
    std::int64_t offset = 0;
    for (std::size_t l = 0; l < stages_.links.size(); ++l) {
      const std::int32_t merge = stages_.links[l].calendar;  // none: to a GPU outside the job
      if (device_.machine.links[l].from != at.node || merge < 0) continue;
      offset = std::max(offset, stages_.merges[index(merge)].begin_of(0));
    }
    at.answers.set(stages_.shift, offset);
    at.answers.use(stages_.workers[index(at.worker)].spare);
  }
}

// At the switch: a request is replicated at once, a member's answer takes its turn.
void Links::at_switch(std::int32_t id, const WayLeg& leg, std::int64_t now) {
  const Request& request = device_.request(id);
  if (request.is_member()) {
    SwitchStage& at = stages_.switches[index(WayTable::switch_of(leg.to))];
    stages_.push_far(at.worker, at.answers, {now, multicast_.tag_of_answer(request), id});
    return;
  }
  multicast_.count_multicast(id);
  for (const WayTable::Replica& replica : ways_.replication(request).replicas) {
    const std::int32_t child_id = multicast_.make_replica(id, replica.member, replica.down);
    Request& child = device_.request(child_id);
    child.stage = Stage::out;
    child.size = request.size;
    child.link = 0;
    child.local = false;
    child.group = true;
    child.base = replica.way;
    walk(child_id, child, ways_.replica(replica.way).forward, now);
  }
}

void Links::run_switch(SwitchStage& at, std::int64_t round) {
  std::vector<Arrival>& taken = stages_.mine().taken;
  if (!at.answers.take(round, taken)) return;
  sort_arrivals(taken, stages_.mine().scratch, at.answers.begin_of(round), stages_.shift,
                [&](const Arrival& a, const Arrival& b) {
                  if (a.time != b.time) return a.time < b.time;
                  if (a.tag != b.tag) return a.tag < b.tag;
                  return device_.request(a.id).route < device_.request(b.id).route;
                });
  for (const Arrival& arrival : taken) {
    const Multicast::Answered answered = multicast_.take_answer(arrival.id, arrival.time);
    if (answered.parent < 0) continue;
    Request& parent = device_.request(answered.parent);
    parent.stage = Stage::back_out;
    parent.link = 0;
    walk(answered.parent, parent, ways_.leg_of(parent), answered.time);
  }
}

}  // namespace hemiola::sim
