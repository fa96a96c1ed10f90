// Any plan in the words of an MSCCL++ plan: pairs of workgroups that signal and wait equally often.
#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "program/formats/executor_limits.h"
#include "program/lower/lanes.h"
#include "program/lower/parts.h"

namespace hemiola::program {
namespace {

using namespace general;

constexpr int kChannelThreads = 512;

class ChannelLowering {
 public:
  ChannelLowering(const plan::Plan& plan, const LowerOptions& options, Program program)
      : plan_(plan),
        options_(options),
        program_(std::move(program)),
        list_(ordered(plan, options, program_)),
        dealt_(plan, options, list_),
        jobs_(dealt_.jobs()),
        lanes_(dealt_.lanes()) {}

  Program lower() {
    // As few lanes as the operations of a workgroup allow.
    for (const std::size_t most : {1024, 24, 16, 12, 10, 8, 6, 5, 4, 3, 2, 1}) {
      dealt_.deal(most);
      write();
      if (most == 1 || operations_ <= mscclpp_limits::kOperations.most) break;
    }
    return std::move(program_);
  }

 private:
  using Item = Lanes::Item;

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
                    .threads = options_.threads > 0 ? options_.threads : kChannelThreads};
      for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
        if (lanes_[lane].rank != rank) continue;
        for (slice_ = 0; slice_ < dealt_.slices(); ++slice_) {
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
    for (const auto& [item, lanes] : dealt_.waiters())
      for (const std::int32_t to : lanes)
        pairs.emplace(std::min(item.first, to), std::max(item.first, to), item.first < to);
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
        used += dealt_.slices();
      }
    };
    enter(false, remote);
    const std::int32_t first_local = most(remote);
    enter(true, local);
    for (auto& [pair, number] : semaphores_)
      if (lanes_[index(pair.first)].rank == lanes_[index(pair.second)].rank) number += first_local;
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
      const LaneJob& job = jobs_[index(lane.jobs[i])];
      const Item item{number, static_cast<std::int32_t>(i) + 1};
      where_ = job.movement->where;
      wait(item, lane.rank);
      const bool touches = std::ranges::any_of(
          moved_, [&](std::int64_t earlier) { return job.after.contains(earlier); });
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
    split_semaphores(op, most, [&](Op part) { add(std::move(part)); });
  }

  void wait(const Item& item, int rank) {
    Op remote{.kind = OpKind::wait, .channel = Channel::any}, local{.kind = OpKind::sem_acquire};
    for (const auto& [from, number] : dealt_.waits(item)) {
      Op& op = lanes_[index(from)].rank == rank ? local : remote;
      op.semaphores.push_back({own_rank(), semaphores_.at({from, item.first}) + slice_});
    }
    add_split(remote, mscclpp_limits::kOperands.most);
    add_split(local, mscclpp_limits::kSemaphores.most);
    waited_ = waited_ || !dealt_.waits(item).empty();
  }

  void signal(const Item& item, int rank) {
    const auto found = dealt_.waiters().find(item);
    if (found == dealt_.waiters().end()) return;
    Op remote{.kind = OpKind::signal, .channel = Channel::any}, local{.kind = OpKind::sem_release};
    bool flush = false;
    for (const std::int32_t to : found->second) {
      const int there = lanes_[index(to)].rank;
      Op& op = there == rank ? local : remote;
      op.semaphores.push_back({constant(there), semaphores_.at({item.first, to}) + slice_});
      // A flag stays behind what goes to the same rank, and must not overtake the rest.
      flush = flush ||
              std::ranges::any_of(unflushed_, [&](int pushed_to) { return pushed_to != there; });
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

  Operand operand(const LaneJob& job, const Row& row, std::size_t p) const {
    const Place& place =
        p < job.sources.size() ? *job.sources[p] : *job.destinations[p - job.sources.size()];
    Operand made{.rank = constant(place.rank),
                 .buffer = buffer_of(list_.kind_of(place)),
                 .chunk = constant(row.chunk[p]),
                 .chunks = row.chunks};
    if (place.group >= 0) {
      made.access = Access::multicast;
      made.group = place.group;
    }
    return made;
  }

  std::int32_t buffer_of(BufferKind kind) const {
    return static_cast<std::int32_t>(kind);  // as ordered() lists them
  }

  Op op(OpKind kind, Channel channel) const {
    Op made{.kind = kind, .channel = channel};
    made.slice = slice_;
    made.slices = dealt_.slices();
    return made;
  }

  void move(const LaneJob& job) {
    const std::size_t sources = job.sources.size();
    const bool loads = job.sources.front()->group >= 0;
    const bool stores = job.destinations.front()->group >= 0;
    for (std::size_t d = 0; d < job.destinations.size(); ++d) {
      const int to = job.destinations[d]->rank;
      if (!stores && to != job.rank) unflushed_.insert(to);
      if (loads || stores) {
        for (const Row& row : job.rows) {
          Op made = op(kind_of({.group_loads = loads, .group_stores = stores}), Channel::switch_);
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
  void copy(const LaneJob& job, OpKind kind, std::size_t destination) {
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
  void reduce(const LaneJob& job, const Row& row) {
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
  Ordered list_;
  Lanes dealt_;
  const std::vector<LaneJob>& jobs_;
  const std::vector<Lane>& lanes_;
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
    throw Failure(fmt::format("plan '{}' with sync=channels has no packets", plan.name), kOption,
                  "choose protocol=simple");
  return ChannelLowering(plan, options, std::move(program)).lower();
}

}  // namespace hemiola::program
