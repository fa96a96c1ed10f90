// A poll that has found too little, of a wavefront whose compute unit does nothing else, goes round
// without visiting the stages between: nobody meets it there.

#include "sim/device/sync.h"
#include "sim/line/chip.h"
#include "sim/line/stages.h"
#include "sim/sampled/sampling.h"

namespace hemiola::sim {

// All that the wavefront still waits for is in the line of its flag `first`, and until it has seen
// that nothing happens at its CU but acknowledgements, which take no server and free nobody: the
// others of its workgroup, alone there, are at a sync with it, and what comes next on its stream
// waits for it.
bool Chip::is_alone(Wave& wave, std::int32_t first) const {
  if (wave.alone == wave.wait) return true;
  const Workgroup& group = device_.group(wave.workgroup);
  const RankState& rank = device_.rank(group.rank);
  const KernelRun& run = device_.kernel(group.kernel);
  const Cu& cu = rank.cus[index(group.cu)];
  if (cu.used.workgroups != 1 || !cu.queue.empty() || cu.load_room + 1 != cu.load_slots)
    return false;
  if (rank.streams.size() != 1 || run.next < std::ssize(run.groups) || !group.steps.empty())
    return false;
  for (std::int32_t w = group.first_wave; w < group.first_wave + group.waves; ++w) {
    const Wave& other = device_.wave(w);
    if (&other != &wave && other.waiting != Waiting::sync && other.waiting != Waiting::finished)
      return false;
  }
  if (wave.watched[index(first)].missing != wave.missing) return false;  // flags of other lines
  wave.alone = wave.wait;
  return true;
}

// What it finds is known at `now`, behind the slice or the memory: if too little, it comes back to
// its CU, the wavefront polls again, and the same request is at the slice once more.
bool Chip::poll_again(int rank, std::int32_t id, std::int64_t now) {
  if (device_.monitors || device_.uncached || stages_.is_watching() ||
      device_.model(rank).sync_wait != machine::WaitPolicy::spin)
    return false;
  if (device_.sampling != nullptr && device_.sampling->skips_polls(now))
    return false;  // see Skips::dozes()
  Request& request = device_.request(id);
  Wave& wave = device_.wave(request.wave);
  if (wave.in_flight != 1 || wave.watched[index(request.epoch)].missing == 0 ||
      !is_alone(wave, request.epoch))
    return false;
  GpuStages& gpu = stages_.of(rank);
  Cu& cu = device_.rank(rank).cus[index(request.cu)];
  const std::size_t at = index(request.cu);
  std::int64_t in = gpu.cu_in_free[at], issue = cu.issue_free, out = gpu.cu_out_free[at];
  const std::int64_t way = gpu.way(request), interval = sync_.next_sleep(wave, rank);
  const std::int64_t returned = serve_at(in, gpu.cu_in_costs[request.size], now) + way;
  const std::int64_t issued = serve_at(issue, cu.issue_interval, returned + interval);
  const std::int64_t time = serve_at(out, gpu.cu_out_costs[0], issued) + way;
  if (gpu.slices.is_over(time)) return false;  // they are short ways: one stage after the other
  gpu.cu_in_free[at] = in;
  cu.issue_free = issue;
  gpu.cu_out_free[at] = out;
  request.spent.charge(Reason::noc, returned - now);
  request.spent.charge(Reason::poll, interval);
  wave.spent = request.spent;
  wave.doze.looked = returned + interval;
  request.spent.charge(Reason::issue, issued - returned - interval);
  request.spent.charge(Reason::noc, time - issued);
  request.stage = Stage::out;
  request.look = Look::again;
  Tally& mine = device_.tally();
  ++mine.counters.polls;
  mine.counters.hops += 3;  // cu_in, issue, cu_out
  mine.events += 2;         // it returns, the wavefront goes on
  gpu.slices.push({time, kFromCu + static_cast<std::uint32_t>(request.cu), id});
  return true;
}

}  // namespace hemiola::sim
