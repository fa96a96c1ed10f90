// Any plan in the words of an MSCCL++ plan: pairs of workgroups that signal and wait equally often.
//
// The movements of a rank are dealt to lanes, one per stream and peer; a lane is one workgroup, or
// several that each do a slice of everything. Slices of different lanes are the same bytes (rows
// are cut at common boundaries first), so that workgroup w of a lane waits for workgroups w only.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "program/executor_limits.h"
#include "program/lower_flow.h"
#include "program/lower_parts.h"

namespace hemiola::program {
namespace {

using namespace general;

constexpr int kWorkgroups = 16;
constexpr int kThreads = 512;

std::size_t index(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// What one lane does at a time: rows of a movement.
struct Job {
  const Movement* movement = nullptr;
  int rank = 0;
  std::vector<const Place*> sources, destinations;
  std::vector<Row> rows;  ///< places in the order of sources and destinations
  std::int32_t lane = 0;
  std::set<std::int64_t> after;  ///< jobs
};

/// A workgroup of slice 0; the others do the same.
struct Lane {
  int rank = 0;
  int peer = -1;
  std::vector<std::int64_t> jobs;
};

class ChannelLowering {
 public:
  ChannelLowering(const plan::Plan& plan, const LowerOptions& options, Program program)
      : plan_(plan),
        options_(options),
        program_(std::move(program)),
        flow_(flow_of(plan, options, program_)) {}

  Program lower() {
    make_jobs();
    // As few lanes as the operations of a workgroup allow.
    for (const std::size_t most : {1024, 24, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1}) {
      deal(most);
      order();
      write();
      if (most == 1 || operations_ <= mscclpp_limits::kOperations.most) break;
    }
    return std::move(program_);
  }

 private:
  using Item = Reduction::ItemOf;  ///< lane; 0: its start, then its jobs, then its end

  // Jobs: who does what with which chunks, and after what.

  void make_jobs() {
    for (const Movement* movement : flow_.order) add_job(*movement);
    cut_rows();
    constexpr std::size_t kRows =
        mscclpp_limits::kOperands.most;  // as many pairs as an operation has
    std::vector<Job> small;
    for (Job& job : jobs_) {
      for (std::size_t begin = 0; begin < job.rows.size(); begin += kRows) {
        Job part = job;
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

  void add_job(const Movement& movement) {
    Job job{.movement = &movement,
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
    for (const std::size_t s : order) job.sources.push_back(&movement.sources[s]);
    for (const Place& place : movement.destinations) job.destinations.push_back(&place);
    if (movement.reduces() && job.sources.front()->rank != job.rank)
      throw Failure(fmt::format("plan '{}': rank {} reduces without an operand of its own, which "
                                "MSCCL++ cannot say",
                                plan_.name, job.rank),
                    {.pointer = movement.where});
    for (Row& row : flow_.rows_of(movement)) {
      Row sorted{.chunk = {}, .chunks = row.chunks};
      for (const std::size_t s : order) sorted.chunk.push_back(row.chunk[s]);
      sorted.chunk.insert(sorted.chunk.end(), row.chunk.begin() + std::ssize(order),
                          row.chunk.end());
      job.rows.push_back(std::move(sorted));
    }
    jobs_.push_back(std::move(job));
  }

  template <class Visit>
  void each_memory(const Job& job, Visit&& visit) const {
    for (std::size_t p = 0; p < job.sources.size() + job.destinations.size(); ++p) {
      const bool writes = p >= job.sources.size();
      const Place& place = writes ? *job.destinations[p - job.sources.size()] : *job.sources[p];
      const std::vector<int> one{place.rank};
      for (const int rank : place.group < 0 ? one : plan_.groups[index(place.group)])
        visit(Hazards::Memory{rank, flow_.kind_of(place)}, p, writes);
    }
  }

  /// Rows that share chunks become equal: where some differ, all are cut to what divides them.
  void cut_rows() {
    std::map<Hazards::Memory, std::map<std::int64_t, std::int64_t>> rows;  // begin, end
    bool alike = true;
    std::int64_t least = 0;
    for (const Job& job : jobs_) {
      for (const Row& row : job.rows) {
        least = std::gcd(least, row.chunks);
        each_memory(job, [&](const Hazards::Memory& memory, std::size_t p, bool) {
          least = std::gcd(least, row.chunk[p]);
          const auto [at, added] =
              rows[memory].try_emplace(row.chunk[p], row.chunk[p] + row.chunks);
          alike = alike && (added || at->second == row.chunk[p] + row.chunks);
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
    for (Job& job : jobs_) {
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

  void note_hazards(Hazards& hazards, std::size_t j) {
    Job& job = jobs_[j];
    const auto who = static_cast<std::int64_t>(j);
    for (const bool now : {false, true}) {
      each_memory(job, [&](const Hazards::Memory& memory, std::size_t p, bool writes) {
        if (writes != now) return;
        for (const Row& row : job.rows) {
          if (writes) {
            hazards.write(memory, row.chunk[p], row.chunks, who, job.after);
          } else {
            hazards.read(memory, row.chunk[p], row.chunks, who, job.after);
          }
        }
      });
    }
  }

  /// Ranks whose memory a job touches besides that of its own.
  std::set<int> touched(const Job& job) const {
    std::set<int> ranks;
    each_memory(job, [&](const Hazards::Memory& memory, std::size_t, bool) {
      if (memory.first != job.rank) ranks.insert(memory.first);
    });
    return ranks;
  }

  // Lanes.

  /// At most `most` jobs to a lane. Local jobs go where their stream went last.
  void deal(std::size_t most) {
    lanes_.clear();
    std::map<std::tuple<int, std::int32_t, int>, std::int32_t> open;
    std::map<std::pair<int, std::int32_t>, int> last_peer;
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      Job& job = jobs_[j];
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
    std::vector<int> count(index(plan_.ranks), 0);
    for (const Lane& lane : lanes_) ++count[index(lane.rank)];
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      if (count[index(rank)] == 0) lanes_.push_back({rank, -1, {}});
      check_limit(mscclpp_limits::kThreadBlocks, fmt::format("rank {}", rank),
                  index(count[index(rank)]), {.file = plan_.name});
    }
    const int lanes = std::max(1, *std::max_element(count.begin(), count.end()));
    slices_ = std::max(1, (options_.workgroups > 0 ? options_.workgroups : kWorkgroups) / lanes);
  }

  /// A lane of `rank` that talks to `peer` already, else its first.
  std::int32_t host_of(int rank, int peer) const {
    std::int32_t first = -1;
    for (std::size_t l = 0; l < lanes_.size(); ++l) {
      if (lanes_[l].rank != rank) continue;
      if (first < 0) first = static_cast<std::int32_t>(l);
      if (lanes_[l].peer == peer) return static_cast<std::int32_t>(l);
    }
    return first;
  }

  Item item_of(std::int64_t job) const {
    const std::vector<std::int64_t>& jobs = lanes_[index(jobs_[index(job)].lane)].jobs;
    const auto at = std::lower_bound(jobs.begin(), jobs.end(), job);
    return {jobs_[index(job)].lane, static_cast<std::int32_t>(at - jobs.begin()) + 1};
  }

  // Waits: starts of all lanes, then jobs, then ends.

  void order() {
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
    std::map<std::pair<int, int>, std::int32_t> hosts;  // rank, peer
    const auto host = [&](int rank, int peer) {
      const auto [at, added] = hosts.try_emplace({rank, peer}, 0);
      if (added) at->second = host_of(rank, peer);
      return at->second;
    };
    std::map<std::pair<std::int32_t, int>, Item> last;  // lane, touched rank
    for (std::size_t j = 0; j < jobs_.size(); ++j) {
      const Job& job = jobs_[j];
      const Item self = item_of(static_cast<std::int64_t>(j));
      std::vector<Item> before;
      for (const std::int64_t other : job.after) before.push_back(item_of(other));
      for (const int rank : touched(job)) {
        if (options_.barrier.value_or(true)) before.emplace_back(host(rank, job.rank), 0);
        last[{job.lane, rank}] = self;
      }
      next(self.first, self.second, before);
    }
    // A rank ends when the others are through with its memory.
    std::map<std::int32_t, std::vector<Item>> ends;
    for (const auto& [key, item] : last) {
      const auto& [lane, rank] = key;
      bool known = false;
      for (std::int32_t own = 0; own < count && !known; ++own)
        known = lanes_[index(own)].rank == rank && reduction.knows(own, item);
      if (!known) ends[host(rank, lanes_[index(lane)].rank)].push_back(item);
    }
    for (std::int32_t lane = 0; lane < count; ++lane)
      next(lane, static_cast<std::int32_t>(lanes_[index(lane)].jobs.size()) + 1, ends[lane]);
  }

  // The program.

  void write() {
    program_.bodies.clear();
    program_.kernels.clear();
    program_.codes.clear();
    program_.code_of.clear();
    program_.groups = plan_.groups;
    operations_ = 0;
    make_semaphores();
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      Kernel kernel{.name = plan_.name,
                    .threads = options_.threads > 0 ? options_.threads : kThreads};
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (lanes_[lane].rank != rank) continue;
        for (slice_ = 0; slice_ < slices_; ++slice_) {
          kernel.bodies.push_back(static_cast<std::int32_t>(program_.bodies.size()));
          program_.bodies.push_back(write_lane(static_cast<std::int32_t>(lane)));
          operations_ = std::max(operations_, program_.bodies.back().ops.size());
        }
      }
      program_.codes.push_back({{{{.kind = StreamItem::Kind::kernel, .index = rank}}}});
      program_.kernels.push_back(std::move(kernel));
      program_.code_of.push_back(rank);
    }
  }

  /// One for every pair of lanes and slice, in the memory of the one that waits: in the order of
  /// both lanes, so that those of either direction make one channel.
  void make_semaphores() {
    program_.semaphores.clear();
    semaphores_.clear();
    std::set<std::tuple<std::int32_t, std::int32_t, bool>> pairs;  // smaller, larger, up
    for (const auto& [item, lanes] : waiters_) {
      for (const std::int32_t to : lanes)
        pairs.emplace(std::min(item.first, to), std::max(item.first, to), item.first < to);
    }
    std::map<int, std::int32_t> remote, local;  // by rank
    const auto most = [&](const std::map<int, std::int32_t>& count) {
      std::int32_t result = 0;
      for (const auto& [rank, number] : count) result = std::max(result, number);
      return result;
    };
    const auto enter = [&](bool same_rank, std::map<int, std::int32_t>& count) {
      for (const auto& [a, b, up] : pairs) {
        const std::int32_t from = up ? a : b, to = up ? b : a;
        if ((lanes_[index(from)].rank == lanes_[index(to)].rank) != same_rank) continue;
        std::int32_t& used = count[lanes_[index(to)].rank];
        semaphores_[{from, to}] = used;
        used += slices_;
      }
    };
    enter(false, remote);
    const std::int32_t first_local = most(remote);
    enter(true, local);
    for (auto& [pair, number] : semaphores_) {
      if (lanes_[index(pair.first)].rank == lanes_[index(pair.second)].rank) number += first_local;
    }
    for (std::int32_t i = 0; i < first_local + most(local); ++i)
      program_.semaphores.push_back({.name = i < first_local
                                                 ? fmt::format("channel {}", i)
                                                 : fmt::format("semaphore {}", i - first_local),
                                     .local = i >= first_local});
  }

  void add(Op op) {
    op.where = where_;
    body_.ops.push_back(std::move(op));
  }

  void sync() {
    if (moved_.empty() && !waited_) return;
    add({.kind = OpKind::sync});
    moved_.clear();
    waited_ = false;
  }

  Body write_lane(std::int32_t number) {
    const Lane& lane = lanes_[index(number)];
    body_ = {};
    moved_.clear();
    unflushed_.clear();
    waited_ = false;
    signal({number, 0}, lane.rank);
    for (std::size_t i = 0; i < lane.jobs.size(); ++i) {
      const Job& job = jobs_[index(lane.jobs[i])];
      const Item item{number, static_cast<std::int32_t>(i) + 1};
      where_ = job.movement->where;
      wait(item, lane.rank);
      const bool touches = std::any_of(moved_.begin(), moved_.end(), [&](std::int64_t earlier) {
        return job.after.contains(earlier);
      });
      if (touches || waited_) sync();
      move(job);
      moved_.insert(lane.jobs[i]);
      signal(item, lane.rank);
    }
    where_.clear();
    wait({number, static_cast<std::int32_t>(lane.jobs.size()) + 1}, lane.rank);
    return std::move(body_);
  }

  /// Semaphores in operations that the executor's arrays hold.
  void add_split(const Op& op, std::size_t most) {
    for (std::size_t begin = 0; begin < op.semaphores.size(); begin += most) {
      Op part = op;
      const std::size_t end = std::min(op.semaphores.size(), begin + most);
      part.semaphores.assign(op.semaphores.begin() + static_cast<std::ptrdiff_t>(begin),
                             op.semaphores.begin() + static_cast<std::ptrdiff_t>(end));
      add(std::move(part));
    }
  }

  void wait(const Item& item, int rank) {
    Op remote{.kind = OpKind::wait, .channel = Channel::any}, local{.kind = OpKind::sem_acquire};
    for (const auto& [from, number] : waits_.at(item)) {
      Op& op = lanes_[index(from)].rank == rank ? local : remote;
      op.semaphores.push_back({own_rank(), semaphores_.at({from, item.first}) + slice_});
    }
    add_split(remote, mscclpp_limits::kOperands.most);
    add_split(local, mscclpp_limits::kSemaphores.most);
    waited_ = waited_ || !waits_.at(item).empty();
  }

  void signal(const Item& item, int rank) {
    const auto found = waiters_.find(item);
    if (found == waiters_.end()) return;
    Op remote{.kind = OpKind::signal, .channel = Channel::any}, local{.kind = OpKind::sem_release};
    bool flush = false;
    for (const std::int32_t to : found->second) {
      const int there = lanes_[index(to)].rank;
      Op& op = there == rank ? local : remote;
      op.semaphores.push_back({constant(there), semaphores_.at({item.first, to}) + slice_});
      // A flag stays behind what goes to the same rank, and must not overtake the rest.
      flush = flush || std::any_of(unflushed_.begin(), unflushed_.end(),
                                   [&](int pushed_to) { return pushed_to != there; });
    }
    if (flush) {
      add({.kind = OpKind::flush, .channel = Channel::any});
      unflushed_.clear();
    }
    sync();
    add_split(remote, mscclpp_limits::kOperands.most);
    add_split(local, mscclpp_limits::kSemaphores.most);
  }

  // Operations.

  Operand operand(const Job& job, const Row& row, std::size_t p) const {
    const Place& place =
        p < job.sources.size() ? *job.sources[p] : *job.destinations[p - job.sources.size()];
    Operand made{.rank = constant(place.rank),
                 .buffer = buffer_of(flow_.kind_of(place)),
                 .chunk = constant(row.chunk[p]),
                 .chunks = row.chunks};
    if (place.group >= 0) {
      made.access = Access::multicast;
      made.group = place.group;
    }
    return made;
  }

  std::int32_t buffer_of(BufferKind kind) const {
    return static_cast<std::int32_t>(kind);  // as flow_of() lists them
  }

  Op op(OpKind kind, Channel channel) const {
    Op made{.kind = kind, .channel = channel};
    made.slice = slice_;
    made.slices = slices_;
    return made;
  }

  void move(const Job& job) {
    const std::size_t sources = job.sources.size();
    const bool loads = job.sources.front()->group >= 0;
    const bool stores = job.destinations.front()->group >= 0;
    for (std::size_t d = 0; d < job.destinations.size(); ++d) {
      const int to = job.destinations[d]->rank;
      if (!stores && to != job.rank) unflushed_.insert(to);
      if (loads || stores) {
        for (const Row& row : job.rows) {
          Op made = op(loads && stores ? OpKind::group_load_reduce_store
                       : loads         ? OpKind::group_load_reduce
                                       : OpKind::group_store,
                       Channel::switch_);
          made.src = {operand(job, row, 0)};
          made.dst = {operand(job, row, sources + d)};
          add(std::move(made));
        }
      } else if (sources > 1) {
        for (const Row& row : job.rows) reduce(job, row);
      } else {
        const bool put = to != job.rank, get = job.sources.front()->rank != job.rank;
        copy(job, put ? OpKind::put : get ? OpKind::get : OpKind::copy, sources + d);
      }
    }
  }

  /// Rows of equal length as pairs of one operation; a copy inside the rank has one pair.
  void copy(const Job& job, OpKind kind, std::size_t destination) {
    Op made = op(kind, kind == OpKind::copy ? Channel::none : Channel::any);
    const auto flush = [&] {
      if (!made.src.empty()) add(made);
      made.src.clear();
      made.dst.clear();
    };
    for (const Row& row : job.rows) {
      const bool fits =
          !made.src.empty() && kind != OpKind::copy && made.src.front().chunks == row.chunks;
      if (!fits) flush();
      made.src.push_back(operand(job, row, 0));
      made.dst.push_back(operand(job, row, destination));
    }
    flush();
  }

  /// As many sources at a time as an operation has; from the second on the result is the first.
  void reduce(const Job& job, const Row& row) {
    const std::size_t sources = job.sources.size();
    if (job.destinations.size() > 1)
      throw Failure(fmt::format("plan '{}': a reduction into several places", plan_.name),
                    {.pointer = job.movement->where});
    const Operand result = operand(job, row, sources);
    for (std::size_t next = 0; next < sources;) {
      Op made = op(OpKind::reduce, Channel::none);
      if (next > 0) made.src.push_back(result);
      // Remote and local sources take different operations.
      const bool remote = job.sources[next == 0 ? 1 : next]->rank != job.rank;
      while (next < sources && made.src.size() < mscclpp_limits::kOperands.most &&
             (made.src.empty() || (job.sources[next]->rank != job.rank) == remote))
        made.src.push_back(operand(job, row, next++));
      made.dst = {result};
      if (remote) {
        made.kind = OpKind::read_reduce;
        made.channel = Channel::any;
      }
      add(std::move(made));
    }
  }

  const plan::Plan& plan_;
  const LowerOptions& options_;
  Program program_;
  Flow flow_;
  std::vector<Job> jobs_;
  std::vector<Lane> lanes_;
  std::int32_t slices_ = 1;
  std::map<Item, std::vector<Item>> waits_;
  std::map<Item, std::vector<std::int32_t>> waiters_;                         // lanes
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> semaphores_;  // of slice 0
  std::size_t operations_ = 0;  // of the longest workgroup

  std::int32_t slice_ = 0;
  Body body_;
  std::string where_;
  std::set<std::int64_t> moved_;  // jobs since the last sync
  bool waited_ = false;           // since the last sync
  std::set<int> unflushed_;       // ranks to which something may be under way through a NIC
};

}  // namespace

Program lower_channels(const plan::Plan& plan, const LowerOptions& options, Program program) {
  if (options.protocol != Protocol::simple)
    throw Failure(fmt::format("plan '{}' with sync=channels has no packets", plan.name),
                  {.file = "<option>"}, "choose protocol=simple");
  return ChannelLowering(plan, options, std::move(program)).lower();
}

}  // namespace hemiola::program
