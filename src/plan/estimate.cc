#include "plan/estimate.h"

#include <algorithm>
#include <queue>
#include <tuple>

#include "core/index.h"

namespace hemiola::plan {
namespace {

/// The transfers of a plan as numbers, in a list schedule.
class Schedule {
 public:
  Schedule(const Plan& plan, Fabric& fabric, std::int64_t chunk_bytes, bool by_switch)
      : plan_(plan), fabric_(fabric), chunk_bytes_(chunk_bytes), by_switch_(by_switch) {
    free_.assign(3 * fabric.trunks().size(), Time{0});
    queues_.resize(free_.size());
    number_streams();
    for (int rank = 0; rank < plan.ranks; ++rank)
      for (std::size_t s = 0; s < plan.code(rank).streams.size(); ++s) add_stream(rank, s);
  }

  Time run() {
    for (std::size_t i = 0; i < jobs_.size(); ++i)
      if (--jobs_[i].missing == 0) ready_.push(entry(jobs_[i].ready, i));
    while (!ready_.empty()) {
      const auto [when, turn, number] = ready_.top();
      ready_.pop();
      if (number < jobs_.size())
        start_or_wait(number, when);
      else
        serve(number - jobs_.size(), when);
    }
    if (done_ < jobs_.size())
      throw Failure("plan '" + plan_.name + "' has transfers that wait for each other");
    return end_;
  }

 private:
  struct Load {
    std::int32_t place = 0;  // of free_
    Time busy{0};
  };
  struct Job {
    std::vector<Load> loads;
    int rank = 0;
    std::int32_t turn = 0;  // in its stream
    bool pulls = false;
    std::int64_t bytes = 0;
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
  /// Ready, turn, job; from jobs_.size() on: a place becomes free for which jobs wait.
  using Entry = std::tuple<Time, std::int32_t, std::size_t>;
  using Waiting = std::pair<std::int32_t, std::size_t>;  // turn, job
  using Place = std::pair<std::int32_t, std::int64_t>;   // tensor, first chunk

  /// Of all that is ready at once, what comes first in its stream: streams share links.
  Entry entry(Time ready, std::size_t job) const { return {ready, jobs_[job].turn, job}; }

  static Place place_of(const Transfer& transfer, const Indices& when) {
    return {transfer.destination.tensor, transfer.destination.first()(when)};
  }
  /// One more source of a sum, for which nothing has to be awaited: kernels load all of them before
  /// they add (lower/exchange.cc, lower/fuse.cc).
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
    jobs_.resize(index(first));
  }

  /// Stores are posted, as many as a compute unit may have outstanding.
  Time next_store(const Job& job, Time when, Time left) const {
    const machine::GpuModel& gpu = fabric_.machine().model(job.rank);
    const auto streams = std::ssize(plan_.code(job.rank).streams);
    // Compute units of a stream: what exchanges and all others are lowered to unless told
    // otherwise.
    const std::int64_t units = streams == 1 ? 36 : std::max<std::int64_t>(1, 64 / streams);
    const std::int64_t window = units * gpu.cu_max_stores * gpu.line_size.count;
    const Time begin = when + job.copy;
    if (window == 0 || job.bytes <= window) return begin;
    return left - Time{static_cast<std::int64_t>(static_cast<double>((left - begin).fs) *
                                                 static_cast<double>(window) /
                                                 static_cast<double>(job.bytes))};
  }

  /// Links pass on line by line: each starts as soon as it is free, the first one first.
  void start_or_wait(std::size_t number, Time when) {
    const Job& job = jobs_[number];
    if (job.loads.empty()) return start(number, when);
    const std::size_t place = index(job.loads.front().place);
    if (free_[place] <= when) return start(number, when);
    if (queues_[place].empty()) ready_.push({free_[place], job.turn, jobs_.size() + place});
    queues_[place].push({job.turn, number});
  }

  void serve(std::size_t place, Time when) {
    auto& queue = queues_[place];
    if (free_[place] <= when) {
      const std::size_t number = queue.top().second;
      queue.pop();
      start(number, when);
    }
    if (!queue.empty())
      ready_.push({std::max(when, free_[place]), queue.top().first, jobs_.size() + place});
  }

  void start(std::size_t number, Time when) {
    Job& job = jobs_[number];
    Time left = when + job.copy + job.request;
    for (const Load& load : job.loads) {
      Time& free = free_[index(load.place)];
      free = std::max(free, when) + load.busy;
      left = std::max(left, free);
    }
    left = std::max(left, job.joined);
    end_ = std::max(end_, left + job.arrives);
    ++done_;
    if (job.next >= 0) {
      Job& next = jobs_[index(job.next)];
      if (next.joins) next.joined = left;
      // What is loaded is waited for.
      release(index(job.next), next.joins             ? when
                               : !job.waiting.empty() ? left + job.fenced + fabric_.pause(job.rank)
                               : job.pulls            ? left + job.arrives
                                                      : next_store(job, when, left));
    }
    for (const auto& [other, flag] : job.waiting) release(other, left + job.fenced + flag);
  }

  void release(std::size_t number, Time when) {
    Job& job = jobs_[number];
    job.ready = std::max(job.ready, when);
    if (--job.missing == 0) ready_.push(entry(job.ready, number));
  }

  void add_stream(int rank, std::size_t s) {
    std::int64_t number = first_[index(rank)][s];
    const std::int64_t end = number + count_transfers(plan_.code(rank).streams[s]);
    Place last;  // where the transfer before stored
    for_each_transfer(
        plan_.code(rank).streams[s], rank, [&](const Transfer& transfer, const Indices& when) {
          Job& job = jobs_[index(number)];
          job.rank = rank;
          job.turn = static_cast<std::int32_t>(number - first_[index(rank)][s]);
          set_loads(job, transfer, when);
          job.joins = number > first_[index(rank)][s] && is_term(transfer) &&
                      last == place_of(transfer, when);
          last = place_of(transfer, when);
          for (const Dependency& dependency : transfer.after) {
            if (!dependency.on_transfer()) continue;
            const std::int64_t first =
                first_[index(dependency.rank(when))][index(dependency.stream)];
            const auto of_rank = static_cast<int>(dependency.rank(when));
            jobs_[index(first + dependency.transfer(when))].waiting.emplace_back(
                index(number), of_rank == rank && dependency.stream == static_cast<std::int32_t>(s)
                                   ? Time{0}
                                   : fabric_.flag(of_rank, rank));
            ++job.missing;
          }
          if (++number < end) {
            job.next = number;
            ++jobs_[index(number)].missing;
          }
        });
  }

  void set_loads(Job& job, const Transfer& transfer, const Indices& when) {
    const auto rank = static_cast<int>(when.rank), peer = static_cast<int>(transfer.peer(when));
    const Tensor& tensor = plan_.tensors[index(transfer.source.tensor)];
    const std::int64_t bytes =
        transfer.source.elements() * (tensor.type ? size_of(*tensor.type) : chunk_bytes_);
    if (transfer.kind == TransferKind::collective) {
      add_collective(job, transfer, rank, bytes);
    } else if (transfer.group >= 0) {
      for (const int member : plan_.groups[index(transfer.group)]) {
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
    const auto trunks = static_cast<std::int32_t>(fabric_.trunks().size());
    for (const Way::Use& use : way.uses) {
      const bool leaves =
          fabric_.trunks()[index(use.trunk)].from == fabric_.machine().gpus[index(from)];
      const Time port = fabric_.port(way, use, bytes);
      if (leaves && port > Time{0}) job.loads.push_back({trunks + use.trunk, port});
      job.loads.push_back({use.trunk, fabric_.wire(way, use, bytes)});
      if (!leaves && port > Time{0}) job.loads.push_back({2 * trunks + use.trunk, port});
    }
    job.bytes += bytes;
    const machine::GpuModel& gpu = fabric_.machine().model(job.rank);
    const Time crossing = fabric_.crossing(way), load = fabric_.load(from);
    const bool pulls = job.rank == to;
    job.pulls = job.pulls || pulls;
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
    return by_switch_ && !fabric_.machine().multicast_switches(plan_.groups[index(group)]).empty();
  }

  /// The data of a multicast, or of a reduction in the switch, passes a link of the rank only once.
  static void join(Job& job) {
    std::ranges::sort(job.loads, [](const Load& a, const Load& b) {
      return std::pair(a.place, b.busy) < std::pair(b.place, a.busy);
    });
    const auto same = [](const Load& a, const Load& b) { return a.place == b.place; };
    job.loads.erase(std::unique(job.loads.begin(), job.loads.end(), same), job.loads.end());
  }

  /// As it is lowered: a member reduces its block of all members' data; what it has it stores to
  /// all others, a block for each of them in an all-to-all.
  void add_collective(Job& job, const Transfer& transfer, int rank, std::int64_t bytes) {
    const std::vector<int>& group = plan_.groups[index(transfer.group)];
    const auto members = static_cast<std::int64_t>(group.size());
    const Collective kind = transfer.collective;
    const bool whole = kind == Collective::all_gather || kind == Collective::broadcast;
    const bool reduces = kind == Collective::all_reduce || kind == Collective::reduce_scatter;
    if (kind == Collective::broadcast && rank != group.front()) return;
    for (const int member : group) {
      if (member == rank) continue;
      const std::int64_t part = whole ? bytes : bytes / members;
      if (reduces) add_way(job, member, rank, part);
      if (kind != Collective::reduce_scatter) add_way(job, rank, member, part);
    }
  }

  const Plan& plan_;
  Fabric& fabric_;
  std::int64_t chunk_bytes_;
  bool by_switch_;
  std::vector<std::vector<std::int64_t>> first_;  // job, by rank and stream
  std::vector<Job> jobs_;
  std::vector<Time> free_;  // trunks, then ports out of a GPU into each, then those out of each
  std::vector<std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>>>
      queues_;  // for it
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready_;
  Time end_{0};
  std::size_t done_ = 0;
};

}  // namespace

Time estimate(const Plan& plan, Fabric& fabric, std::int64_t chunk_bytes, bool by_switch) {
  return Schedule(plan, fabric, chunk_bytes, by_switch).run();
}

Time estimate(const Plan& plan, const machine::Machine& machine, std::int64_t chunk_bytes) {
  Fabric fabric(machine);
  return estimate(plan, fabric, chunk_bytes);
}

}  // namespace hemiola::plan
