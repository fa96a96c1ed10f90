#include "plan/estimate.h"

#include <algorithm>
#include <queue>
#include <string>

namespace hemiola::plan {
namespace {

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

/// The transfers of a plan as numbers, in a list schedule.
class Schedule {
 public:
  Schedule(const Plan& plan, Fabric& fabric, std::int64_t chunk_bytes)
      : plan_(plan), fabric_(fabric), chunk_bytes_(chunk_bytes) {
    free_.assign(fabric.trunks().size(), Time{0});
    number_streams();
    for (int rank = 0; rank < plan.ranks; ++rank) {
      for (std::size_t s = 0; s < plan.code(rank).streams.size(); ++s) add_stream(rank, s);
    }
  }

  Time run() {
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (--jobs_[i].missing == 0) ready_.push({jobs_[i].ready, i});
    }
    Time end{0};
    std::size_t done = 0;
    while (!ready_.empty()) {
      const auto [when, number] = ready_.top();
      ready_.pop();
      Job& job = jobs_[number];
      // Links pass on line by line: each starts as soon as it is free, the first one first.
      Time start = when, left = when + job.copy + job.request;
      if (!job.loads.empty()) start = std::max(start, free_[at(job.loads.front().trunk)]);
      if (start > when) {
        ready_.push({start, number});
        continue;
      }
      Time gone = when + job.copy;
      for (const Load& load : job.loads) {
        Time& free = free_[at(load.trunk)];
        free = std::max(free, start) + load.busy;
        left = std::max(left, free);
        if (&load == &job.loads.front()) gone = std::max(gone, free);
      }
      left = std::max(left, job.joined);
      end = std::max(end, left + job.arrives);
      ++done;
      if (job.next >= 0) {
        Job& next = jobs_[at(job.next)];
        if (next.joins) next.joined = left;
        release(at(job.next), next.joins            ? when
                              : job.waiting.empty() ? gone
                                                    : left + job.fenced + fabric_.pause(job.rank));
      }
      for (const auto& [other, flag] : job.waiting) release(other, left + job.fenced + flag);
    }
    if (done < jobs_.size())
      throw Failure("plan '" + plan_.name + "' has transfers that wait for each other");
    return end;
  }

 private:
  struct Load {
    std::int32_t trunk = 0;
    Time busy{0};
  };
  struct Job {
    std::vector<Load> loads;
    int rank = 0;
    Time copy{0}, ready{0};
    Time request{0};     // of a pull, until it is at the source
    Time arrives{0};     // its last byte, after it has left
    Time fenced{0};      // a flag can go, after that
    bool joins = false;  // the transfer before it: both are one operation, and load at once
    Time joined{0};      // the last byte of those before it has left
    std::int64_t next = -1;
    std::vector<std::pair<std::size_t, Time>> waiting;  // job, way of the flag
    std::int32_t missing = 1;  // what it waits for, and the start of the run
  };
  using Entry = std::pair<Time, std::size_t>;
  using Place = std::pair<std::int32_t, std::int64_t>;  // tensor, first chunk

  static Place place_of(const Transfer& transfer, const Indices& when) {
    return {transfer.destination.tensor, transfer.destination.first()(when)};
  }
  /// One more source of a sum, for which nothing has to be awaited: kernels load all of them before
  /// they add (lower_exchange.cc, lower_fuse.cc).
  static bool is_term(const Transfer& transfer) {
    return transfer.kind == TransferKind::pull && transfer.group < 0 &&
           transfer.reduce != ReduceOp::none && transfer.after.empty() &&
           transfer.operand == transfer.destination && transfer.destination.is_row();
  }

  void number_streams() {
    std::int64_t first = 0;
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      first_.emplace_back();
      for (const Stream& stream : plan_.code(rank).streams) {
        first_.back().push_back(first);
        first += count_transfers(stream);
      }
    }
    jobs_.resize(at(first));
  }

  void release(std::size_t number, Time when) {
    Job& job = jobs_[number];
    job.ready = std::max(job.ready, when);
    if (--job.missing == 0) ready_.push({job.ready, number});
  }

  void add_stream(int rank, std::size_t s) {
    std::int64_t number = first_[at(rank)][s];
    const std::int64_t end = number + count_transfers(plan_.code(rank).streams[s]);
    Place last;  // where the transfer before stored
    for_each_transfer(
        plan_.code(rank).streams[s], rank, [&](const Transfer& transfer, const Indices& when) {
          Job& job = jobs_[at(number)];
          job.rank = rank;
          set_loads(job, transfer, when);
          job.joins =
              number > first_[at(rank)][s] && is_term(transfer) && last == place_of(transfer, when);
          last = place_of(transfer, when);
          for (const Dependency& dependency : transfer.after) {
            if (dependency.computed) continue;
            const std::int64_t first = first_[at(dependency.rank(when))][at(dependency.stream)];
            const auto of_rank = static_cast<int>(dependency.rank(when));
            jobs_[at(first + dependency.transfer(when))].waiting.emplace_back(
                at(number), of_rank == rank && dependency.stream == static_cast<std::int32_t>(s)
                                ? Time{0}
                                : fabric_.flag(of_rank, rank));
            ++job.missing;
          }
          if (++number < end) {
            job.next = number;
            ++jobs_[at(number)].missing;
          }
        });
  }

  void set_loads(Job& job, const Transfer& transfer, const Indices& when) {
    const auto rank = static_cast<int>(when.rank), peer = static_cast<int>(transfer.peer(when));
    const Tensor& tensor = plan_.tensors[at(transfer.source.tensor)];
    const std::int64_t bytes =
        transfer.source.elements() * (tensor.type ? size_of(*tensor.type) : chunk_bytes_);
    if (transfer.kind == TransferKind::collective) {
      add_collective(job, transfer, rank, bytes);
    } else if (transfer.group >= 0) {
      for (const int member : plan_.groups[at(transfer.group)]) {
        if (member == rank) continue;
        transfer.kind == TransferKind::push ? add_way(job, rank, member, bytes)
                                            : add_way(job, member, rank, bytes);
      }
      if (can_multicast(transfer.group)) join(job);
    } else if (transfer.kind == TransferKind::copy) {
      const Rate memory = fabric_.machine().model(rank).hbm_rate;
      job.copy = memory.is_ideal() ? Time{0} : memory.time_for(2 * bytes);
    } else {
      transfer.kind == TransferKind::push ? add_way(job, rank, peer, bytes)
                                          : add_way(job, peer, rank, bytes);
    }
  }

  void add_way(Job& job, int from, int to, std::int64_t bytes) {
    const Way& way = fabric_.way(from, to);
    for (const Way::Use& use : way.uses)
      job.loads.push_back({use.trunk, fabric_.busy(way, use, bytes)});
    const machine::GpuModel& gpu = fabric_.machine().model(job.rank);
    const Time crossing = fabric_.crossing(way), load = fabric_.load(from);
    const bool pulls = job.rank == to;
    job.arrives = std::max(job.arrives, load + crossing);
    if (way.is_network) {
      job.ready = std::max(job.ready, gpu.proxy_fifo_latency + gpu.proxy_network_time);
      job.fenced = std::max(job.fenced, gpu.proxy_network_time);
      return;
    }
    // A pull's request, or the flag that says that the peer runs.
    job.ready = std::max(job.ready, crossing);
    if (pulls) job.request = std::max(job.request, crossing);
    job.fenced = std::max(job.fenced, pulls ? load + crossing : load + 2 * crossing);
  }

  /// Elsewhere the rank loads from, or stores to, each member.
  bool can_multicast(std::int32_t group) const {
    return !fabric_.machine().multicast_switches(plan_.groups[at(group)]).empty();
  }

  /// The data of a multicast, or of a reduction in the switch, passes a link of the rank only once.
  static void join(Job& job) {
    std::sort(job.loads.begin(), job.loads.end(), [](const Load& a, const Load& b) {
      return std::pair(a.trunk, b.busy) < std::pair(b.trunk, a.busy);
    });
    const auto same = [](const Load& a, const Load& b) { return a.trunk == b.trunk; };
    job.loads.erase(std::unique(job.loads.begin(), job.loads.end(), same), job.loads.end());
  }

  /// The share of one member, from it to the next one: what a ring algorithm would send.
  void add_collective(Job& job, const Transfer& transfer, int rank, std::int64_t bytes) {
    const std::vector<int>& group = plan_.groups[at(transfer.group)];
    const auto own = std::find(group.begin(), group.end(), rank) - group.begin();
    const auto members = static_cast<std::int64_t>(group.size());
    if (members == 1) return;
    std::int64_t sent = bytes;
    if (transfer.collective == Collective::all_gather) sent = bytes * (members - 1);
    if (transfer.collective == Collective::all_reduce) sent = 2 * bytes * (members - 1) / members;
    if (transfer.collective == Collective::reduce_scatter ||
        transfer.collective == Collective::all_to_all)
      sent = bytes * (members - 1) / members;
    add_way(job, rank, group[at((own + 1) % members)], sent);
  }

  const Plan& plan_;
  Fabric& fabric_;
  std::int64_t chunk_bytes_;
  std::vector<std::vector<std::int64_t>> first_;  // job, by rank and stream
  std::vector<Job> jobs_;
  std::vector<Time> free_;  // by trunk
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
};

}  // namespace

Time estimate(const Plan& plan, Fabric& fabric, std::int64_t chunk_bytes) {
  return Schedule(plan, fabric, chunk_bytes).run();
}

Time estimate(const Plan& plan, const machine::Machine& machine, std::int64_t chunk_bytes) {
  Fabric fabric(machine);
  return estimate(plan, fabric, chunk_bytes);
}

}  // namespace hemiola::plan
