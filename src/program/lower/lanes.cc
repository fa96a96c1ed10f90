#include "program/lower/lanes.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <tuple>

#include "core/index.h"
#include "program/formats/executor_limits.h"

namespace hemiola::program::general {
namespace {

constexpr int kLaneWorkgroups = 16;

}  // namespace

Lanes::Lanes(const plan::Plan& plan, const LowerOptions& options, const Ordered& list)
    : plan_(plan), options_(options), list_(list) {
  make_jobs();
}

// Jobs: who does what with which chunks, and after what.

void Lanes::make_jobs() {
  for (const Movement* movement : list_.order) add_job(*movement);
  cut_rows();
  constexpr std::size_t kRows =
      mscclpp_limits::kOperands.most;  // as many pairs as an operation has
  std::vector<LaneJob> small;
  for (LaneJob& job : jobs_) {
    for (std::size_t begin = 0; begin < job.rows.size(); begin += kRows) {
      LaneJob part = job;
      const std::size_t end = std::min(job.rows.size(), begin + kRows);
      part.rows.assign(job.rows.begin() + static_cast<std::ptrdiff_t>(begin),
                       job.rows.begin() + static_cast<std::ptrdiff_t>(end));
      small.push_back(std::move(part));
    }
  }
  jobs_ = std::move(small);
  Hazards hazards;
  for (std::size_t j = 0; j < jobs_.size(); ++j) note_hazards(hazards, j);
}

void Lanes::add_job(const Movement& movement) {
  LaneJob job{.movement = &movement,
              .rank = movement.rank,
              .sources = {},
              .destinations = {},
              .rows = {},
              .after = {}};
  const Place& target = movement.destinations.front();
  // An operation that reduces has a local operand and a local result: whoever gets it does it.
  if (movement.reduces() && target.group < 0) job.rank = target.rank;
  std::vector<std::size_t> order(movement.sources.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_partition(order.begin(), order.end(), [&](std::size_t s) {
    return movement.sources[s].rank == job.rank && movement.sources[s].group < 0;
  });
  // What stands where the result goes is read before it is overwritten.
  std::stable_partition(order.begin(), order.end(), [&](std::size_t s) {
    const Place& source = movement.sources[s];
    return source.rank == job.rank && source.group < 0 &&
           source.area.tensor == target.area.tensor && source.rows == target.rows;
  });
  for (const std::size_t s : order) job.sources.push_back(&movement.sources[s]);
  for (const Place& place : movement.destinations) job.destinations.push_back(&place);
  if (movement.reduces() && job.sources.front()->rank != job.rank)
    throw Failure(fmt::format("plan '{}': rank {} reduces without an operand of its own, which "
                              "MSCCL++ cannot say",
                              plan_.name, job.rank),
                  {.pointer = movement.where});
  for (Row& row : list_.rows_of(movement)) {
    Row sorted{.chunk = {}, .chunks = row.chunks};
    for (const std::size_t s : order) sorted.chunk.push_back(row.chunk[s]);
    sorted.chunk.insert(sorted.chunk.end(), row.chunk.begin() + std::ssize(order), row.chunk.end());
    const bool stays = order.size() == 1 && movement.destinations.size() == 1 &&
                       job.sources.front()->rank == target.rank && target.group < 0 &&
                       job.sources.front()->group < 0 &&
                       where(job, sorted, 0, target.rank) == where(job, sorted, 1, target.rank);
    if (!stays) job.rows.push_back(std::move(sorted));
  }
  jobs_.push_back(std::move(job));
}

template <class Visit>
void Lanes::each_memory(const LaneJob& job, Visit&& visit) const {
  for (std::size_t p = 0; p < job.sources.size() + job.destinations.size(); ++p) {
    const bool writes = p >= job.sources.size();
    const Place& place = writes ? *job.destinations[p - job.sources.size()] : *job.sources[p];
    each_rank(plan_, place, [&](int rank) { visit(rank, p, writes); });
  }
}

/// Where a row of a job is at place `p`, as seen by a rank: memory, and the first chunk there.
std::pair<Hazards::Memory, std::int64_t> Lanes::where(const LaneJob& job, const Row& row,
                                                      std::size_t p, int rank) const {
  const std::size_t sources = job.sources.size();
  const Place& place = p < sources ? *job.sources[p] : *job.destinations[p - sources];
  const auto [kind, chunk] = list_.memory(rank, list_.kind_of(place), row.chunk[p]);
  return {{rank, kind}, chunk};
}

/// Rows that share chunks become equal: where some differ, all are cut to what divides them.
void Lanes::cut_rows() {
  std::map<Hazards::Memory, std::map<std::int64_t, std::int64_t>> rows;  // begin, end
  bool alike = true;
  std::int64_t least = 0;
  for (const LaneJob& job : jobs_) {
    for (const Row& row : job.rows) {
      least = std::gcd(least, row.chunks);
      each_memory(job, [&](int rank, std::size_t p, bool) {
        const auto [memory, begin] = where(job, row, p, rank);
        least = std::gcd(least, begin);
        const auto [at, added] = rows[memory].try_emplace(begin, begin + row.chunks);
        alike = alike && (added || at->second == begin + row.chunks);
      });
    }
  }
  for (const auto& [memory, list] : rows) {
    std::int64_t end = 0;
    for (const auto& [begin, after] : list) {
      alike = alike && begin >= end;
      end = after;
    }
  }
  if (alike) return;
  for (LaneJob& job : jobs_) {
    std::vector<Row> cut;
    for (const Row& row : job.rows) {
      for (std::int64_t done = 0; done < row.chunks; done += least) {
        Row& part = cut.emplace_back(Row{row.chunk, least});
        for (std::int64_t& chunk : part.chunk) chunk += done;
      }
    }
    job.rows = std::move(cut);
  }
}

void Lanes::note_hazards(Hazards& hazards, std::size_t j) {
  LaneJob& job = jobs_[j];
  const auto who = static_cast<std::int64_t>(j);
  for (const bool now : {false, true}) {
    each_memory(job, [&](int rank, std::size_t p, bool writes) {
      if (writes != now) return;
      for (const Row& row : job.rows) {
        const auto [memory, begin] = where(job, row, p, rank);
        if (writes)
          hazards.write(memory, begin, row.chunks, who, job.after);
        else
          hazards.read(memory, begin, row.chunks, who, job.after);
      }
    });
  }
}

/// Ranks whose memory a job touches besides that of its own.
std::set<int> Lanes::touched(const LaneJob& job) const {
  std::set<int> ranks;
  each_memory(job, [&](int rank, std::size_t, bool) {
    if (rank != job.rank) ranks.insert(rank);
  });
  return ranks;
}

// Lanes.

/// At most `most` jobs to a lane. Local jobs go where their stream went last.
void Lanes::deal(std::size_t most) {
  lanes_.clear();
  std::map<std::tuple<int, std::int32_t, int>, std::int32_t> open;
  std::map<std::pair<int, std::int32_t>, int> last_peer;
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    LaneJob& job = jobs_[j];
    const std::set<int> others = touched(job);
    int& last = last_peer.try_emplace({job.rank, job.movement->stream}, -1).first->second;
    if (others.size() == 1) last = *others.begin();
    const int peer = others.empty() ? last : others.size() == 1 ? *others.begin() : plan_.ranks;
    const auto [at, added] = open.try_emplace({job.rank, job.movement->stream, peer}, 0);
    if (added || lanes_[index(at->second)].jobs.size() >= most) {
      at->second = static_cast<std::int32_t>(lanes_.size());
      lanes_.push_back({job.rank, peer, {}});
    }
    job.lane = at->second;
    lanes_[index(job.lane)].jobs.push_back(static_cast<std::int64_t>(j));
  }
  of_rank_.assign(index(plan_.ranks), {});
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane)
    of_rank_[index(lanes_[lane].rank)].push_back(static_cast<std::int32_t>(lane));
  std::size_t most_lanes = 1;
  for (int rank = 0; rank < plan_.ranks; ++rank) {
    std::vector<std::int32_t>& own = of_rank_[index(rank)];
    if (own.empty()) {
      own.push_back(static_cast<std::int32_t>(lanes_.size()));
      lanes_.push_back({rank, -1, {}});
    }
    check_limit(mscclpp_limits::kThreadBlocks, fmt::format("rank {}", rank), own.size(),
                {.file = plan_.name});
    most_lanes = std::max(most_lanes, own.size());
  }
  slices_ = std::max(1, (options_.workgroups > 0 ? options_.workgroups : kLaneWorkgroups) /
                            static_cast<int>(most_lanes));
  order();
}

/// The lane of `rank` that a lane tells of its start and end, or that tells it: of those that talk
/// to its rank, or else of all, the one of the same number.
std::int32_t Lanes::host_of(int rank, std::int32_t lane) const {
  const auto lanes_between = [&](int owner, int peer) {
    std::vector<std::int32_t> found;
    for (const std::int32_t l : of_rank_[index(owner)])
      if (peer < 0 || lanes_[index(l)].peer == peer) found.push_back(l);
    return found;
  };
  const Lane& self = lanes_[index(lane)];
  const std::vector<std::int32_t> same = lanes_between(self.rank, self.peer);
  std::vector<std::int32_t> hosts = lanes_between(rank, self.rank);
  if (hosts.empty()) hosts = lanes_between(rank, -1);
  const auto number = std::ranges::find(same, lane) - same.begin();
  return hosts[index(number) % hosts.size()];
}

Lanes::Item Lanes::item_of(std::int64_t job) const {
  const std::vector<std::int64_t>& jobs = lanes_[index(jobs_[index(job)].lane)].jobs;
  const auto at = std::lower_bound(jobs.begin(), jobs.end(), job);
  return {jobs_[index(job)].lane, static_cast<std::int32_t>(at - jobs.begin()) + 1};
}

// Waits: starts of all lanes, then jobs, then ends.

void Lanes::order() {
  Reduction reduction;
  waits_.clear();
  waiters_.clear();
  const auto count = static_cast<std::int32_t>(lanes_.size());
  const auto next = [&](std::int32_t lane, std::int32_t item, const std::vector<Item>& before) {
    const std::vector<Item> waits = reduction.next(lane, before);
    for (const Item& wait : waits) waiters_[wait].push_back(lane);
    waits_[{lane, item}] = waits;
  };
  for (std::int32_t lane = 0; lane < count; ++lane) next(lane, 0, {});
  std::map<std::pair<int, std::int32_t>, std::int32_t> hosts;  // rank, lane
  const auto host = [&](int rank, std::int32_t lane) {
    const auto [at, added] = hosts.try_emplace({rank, lane}, 0);
    if (added) at->second = host_of(rank, lane);
    return at->second;
  };
  std::map<std::pair<std::int32_t, int>, Item> last;  // lane, touched rank
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    const LaneJob& job = jobs_[j];
    const Item self = item_of(static_cast<std::int64_t>(j));
    std::vector<Item> before;
    for (const std::int64_t other : job.after) before.push_back(item_of(other));
    for (const int rank : touched(job)) {
      if (options_.barrier.value_or(true)) before.emplace_back(host(rank, job.lane), 0);
      last[{job.lane, rank}] = self;
    }
    next(self.first, self.second, before);
  }
  // A rank ends when the others are through with its memory.
  std::map<std::int32_t, std::vector<Item>> ends;
  for (const auto& [key, item] : last) {
    const auto& [lane, rank] = key;
    const std::vector<std::int32_t>& own = of_rank_[index(rank)];
    const bool known = std::ranges::any_of(
        own, [&, &wanted = item](std::int32_t l) { return reduction.knows(l, wanted); });
    if (!known) ends[host(rank, lane)].push_back(item);
  }
  for (std::int32_t lane = 0; lane < count; ++lane)
    next(lane, static_cast<std::int32_t>(lanes_[index(lane)].jobs.size()) + 1, ends[lane]);
}

}  // namespace hemiola::program::general
