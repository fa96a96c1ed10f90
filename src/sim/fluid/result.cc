// The fluid engine: the result, or why there is none.

#include <algorithm>

#include "sim/fluid/fluid.h"
#include "sim/result/period_shares.h"

namespace hemiola::sim {
Result Fluid::result() const {
  Result result;
  std::int64_t end = 0, warm = 0;
  for (const RankState& rank : ranks_) {
    end = std::max(end, rank.end);
    warm = std::max(warm, rank.warm_end);
  }
  const bool period = options_.iterations > 0;
  result.time = {period ? (end - warm) / options_.iterations : end};
  std::vector<Attribution> by_class;
  for (const RankState& rank : ranks_) {
    Attribution spent = rank.spent;
    if (program_.linked() != nullptr) spent = launches_.whole(spent);
    charge(spent, Reason::finished, end - rank.end);
    if (period) scale_to_period(spent, end, result.time);
    by_class.push_back(spent);
  }
  for (int rank = 0; rank < program_.ranks(); ++rank) {
    const std::size_t number = index(fold_.rank_class(rank));
    result.attribution.push_back(by_class[number]);
    result.rank_end.push_back({period ? result.time.fs : ranks_[number].end});
  }
  std::vector<int> home;
  for (int rank = 0; rank < program_.ranks(); ++rank)
    home.push_back(fold_.first_rank(fold_.rank_class(rank)));
  result.launches = launches_.results(home);
  result.visited_hops = shares_.updates();
  return result;
}

void Fluid::report_deadlock() const {
  Diagnostics waits;
  std::int64_t blocked = 0;
  for (const Walker& walker : walkers_) {
    if (walker.blocked == Blocked::over || !walker.loaded) continue;
    ++blocked;
    if (blocked > 8) continue;
    const program::Primitive& primitive = walker.present;
    const program::Op& op = program_.bodies()[index(walker.agent.body)].ops[index(primitive.op)];
    std::string text = "rank " + std::to_string(walker.agent.rank) + " workgroup " +
                       std::to_string(walker.agent.workgroup) + " op " +
                       std::to_string(primitive.op) + " (" +
                       std::string(program::name_of(op.kind)) + ") waits for ";
    if (walker.blocked == Blocked::packets) text += "packets that nobody sends";
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
      const program::SemaphoreId id = primitive.semaphores[s];
      if (walker.blocked != Blocked::flags || walker.seen[s]) continue;
      if (text.back() != ' ') text += ", ";
      text += id.index >= barrier_base_
                  ? "barrier " + std::to_string(id.index - barrier_base_)
                  : "semaphore '" + program_.semaphores()[index(id.index)].name + "'";
      text += " of rank " + std::to_string(id.rank) + " to reach " +
              std::to_string(primitive.values[s]) + ", it is " +
              std::to_string(semaphores_[index(semaphore_class(id))].value) +
              " and nobody will signal it";
    }
    waits.error(text, {.file = program_.source(), .pointer = op.where});
  }
  for (std::size_t c = 0; c < ranks_.size(); ++c) {
    for (std::size_t s = 0; s < ranks_[c].streams.size(); ++s) {
      const int rank = fold_.first_rank(static_cast<std::int32_t>(c));
      if (!ranks_[c].streams[s].waits) continue;
      waits.error("rank " + std::to_string(rank) + " stream " + std::to_string(s) +
                      " waits for an event that nobody records",
                  {.file = program_.source()});
    }
  }
  Diagnostics all;
  all.error("a wait cannot end: at " + to_string(Time{now_}) + " nothing can happen any more (" +
                std::to_string(blocked) + " workgroups wait)",
            {.file = program_.source()}, "`hemiola check` shows the cycle or the missing signal");
  all.append(waits);
  throw Failure(all, ExitCode::deadlock);
}

}  // namespace hemiola::sim
