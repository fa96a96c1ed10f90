// A program of what the ranks of a fused file do: streams, copies, kernels, signals.
#include "compile/readback/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compile/readback/tiles.h"
#include "core/index.h"

namespace hemiola::compile::readback {
namespace {

using program::Op;
using program::OpKind;
using program::StreamItem;

constexpr std::int64_t kSumElements = 1024;  // that a workgroup of PyTorch's sums takes
constexpr std::int64_t kMostSums = 64;       // workgroups of one
constexpr int kSumThreads = 128;
constexpr int kMoverThreads = 256;  // python/hemiola_rt/_movers.py
constexpr int kBulkThreads = 128;   // ... in bulk, 8 KiB at a time of 16-bit elements
constexpr std::int32_t kBulkGrain = 64;
constexpr int kCollectiveThreads = 512;
constexpr int kBarrierThreads = 32;

class ProgramWriter {
 public:
  ProgramWriter(Reading& reading, const FusedReadOptions& options, std::vector<RankTrace>* traces)
      : reading_(reading), options_(options), traces_(traces) {}

  program::Program write() {
    frame();
    for (int rank = 0; rank < reading_.ranks; ++rank) {
      rank_ = rank;
      launch_ = 0;
      if (traces_ != nullptr) traces_->emplace_back();
      program_.codes.emplace_back();
      program_.code_of.push_back(rank);
      const RankRecord& record = reading_.records[index(rank)];
      for (std::size_t s = 0; s < record.streams.size(); ++s)
        write_stream(record, static_cast<std::int32_t>(s));
    }
    resolve_steps(reading_, program_, waits_, told_);
    program_.finish();
    return std::move(program_);
  }

 private:
  const RankRecord& first() const { return reading_.records.front(); }

  void frame() {
    const Walker& walker = reading_.walker;
    program_.name = program_.source = reading_.file;
    program_.format = "fused";
    program_.ranks = reading_.ranks;
    unit_ = reading_.unit;
    std::int64_t size = 0;
    for (std::size_t t = 0; t < first().tensors.size(); ++t) {
      const Tensor& tensor = first().tensors[t];
      const auto is_among = [&](const auto& list) {
        return std::ranges::any_of(list, [&](const auto& one) {
          return one.second.tensor == static_cast<std::int32_t>(t);
        });
      };
      const std::int64_t bytes = bytes_of(tensor);
      program::BufferKind kind = program::BufferKind::scratch;
      if (is_among(first().outputs)) kind = program::BufferKind::output;
      if (is_among(first().inputs)) kind = program::BufferKind::input;
      if (kind == program::BufferKind::input) size += bytes;
      program_.buffers.push_back({.name = tensor.name, .kind = kind, .chunks = {bytes / unit_}});
      const bool fits = unit_ % size_of(tensor.type) == 0;
      if (fits && !program_.fixed_type) program_.fixed_type = tensor.type;
    }
    if (size == 0) walker.refuse(walker.module().source.root(), "a file without inputs");
    program_.alignment = {std::gcd(unit_, std::int64_t{16})};
    program_.fixed_size = Bytes{size};
    program_.chunks_per_size = size / unit_;
    for (const std::string& slot : first().slots) program_.semaphores.push_back({.name = slot});
    first_barrier_ = static_cast<std::int32_t>(program_.semaphores.size());
    for (int barrier = 0; barrier < first().barriers; ++barrier)
      for (int d = 1; d < reading_.ranks; ++d)
        program_.semaphores.push_back(
            {.name = fmt::format("barrier {}, the rank {} before", barrier, d)});
    add_sums();
    meetings_ = meetings_of(reading_);
    for (const Meeting& meeting : meetings_) {
      first_of_meetings_.push_back(static_cast<std::int32_t>(program_.semaphores.size()));
      for (std::int64_t i = 0; i < meeting.semaphores(); ++i)
        program_.semaphores.push_back({.name = fmt::format("collective, {}", i)});
    }
    for (std::size_t rank = 0; rank < reading_.launches.size(); ++rank) {
      for (std::size_t l = 0; l < reading_.launches[rank].size(); ++l) {
        for (const auto& [part, counts] : reading_.launches[rank][l].counts) {
          const auto key = std::pair{static_cast<std::int32_t>(l), part};
          if (counters_.contains(key)) continue;
          counters_[key] = static_cast<std::int32_t>(program_.semaphores.size());
          program_.semaphores.push_back(
              {.name = part >= kFirstShares
                           ? fmt::format("shares of movement {}", part - kFirstShares)
                           : fmt::format("tiles of part {}", part),
               .local = true});
        }
      }
    }
  }

  /// Of each launch as many as a rank has sums in it.
  void add_sums() {
    std::vector<std::size_t> counts;
    for (const auto& launches : reading_.launches) {
      counts.resize(std::max(counts.size(), launches.size()), 0);
      for (std::size_t l = 0; l < launches.size(); ++l)
        counts[l] = std::max(counts[l], launches[l].sums.size());
    }
    for (const std::size_t count : counts) {
      first_sums_.push_back(static_cast<std::int32_t>(program_.semaphores.size()));
      for (std::size_t i = 0; i < count; ++i)
        program_.semaphores.push_back({.name = fmt::format("sum {}", i), .local = true});
    }
  }

  static std::int64_t bytes_of(const Tensor& tensor) {
    std::int64_t made = size_of(tensor.type);
    for (const std::int64_t extent : tensor.shape) made *= extent;
    return made;
  }

  std::int64_t processors() const {
    return options_.processors > 0 ? options_.processors : INT64_MAX;
  }

  BodyTarget target() {
    return {.reading = reading_,
            .rank = rank_,
            .unit = unit_,
            .launch = launch_,
            .counters = counters_,
            .first_sum = index(launch_) < first_sums_.size() ? first_sums_[index(launch_)] : 0,
            .waits = waits_,
            .told = told_};
  }

  // Streams.

  void write_stream(const RankRecord& record, std::int32_t stream) {
    program::Stream items;
    program::Body body;
    std::int64_t transfers = 0;
    std::set<int> pushed;  // ranks to which something is under way
    bool joined = false;   // by a wait, which the next copy is behind
    const auto close = [&] {
      if (body.ops.empty()) return;
      settle();
      items.push_back({.kind = StreamItem::Kind::engine,
                       .index = static_cast<std::int32_t>(program_.bodies.size()),
                       .prelaunched = options_.prelaunch});
      program_.bodies.push_back(std::exchange(body, {}));
    };
    const auto kernel = [&](program::Kernel made) {
      items.push_back({.kind = StreamItem::Kind::kernel,
                       .index = static_cast<std::int32_t>(program_.kernels.size())});
      program_.kernels.push_back(std::move(made));
    };
    for (const HostOp& op : record.streams[index(stream)]) {
      BodyWriter writer(target(), body);
      switch (op.kind) {
        case HostOp::Kind::copy:
          if (is_by_kernel(op, record.movers[index(stream)])) {
            close();
            kernel(moves(op, record.movers[index(stream)]));
            break;
          }
          if (joined) body.ops.push_back({.kind = OpKind::sync});
          joined = false;
          writer.transfer(op);
          if (op.regions[0].rank != rank_) pushed.insert(op.regions[0].rank);
          break;
        case HostOp::Kind::signal:
          // It is behind what goes to the same rank, and must not overtake what goes to others.
          if (std::ranges::any_of(pushed, [&](int to) { return to != op.to; })) {
            body.ops.push_back({.kind = OpKind::flush, .channel = program::Channel::any});
            pushed.clear();
          }
          body.ops.push_back({.kind = OpKind::sync});
          writer.signal(op.to, op.slot, op.node);
          told_[{op.to, op.slot}].push_back({PendingWait::kOpen, body.ops.size() - 1});
          reading_.sends[{op.to, op.slot}].push_back({.rank = rank_,
                                                      .stream = stream,
                                                      .transfers = transfers,
                                                      .step = op.step,
                                                      .node = op.node});
          break;
        case HostOp::Kind::wait_signal:
          writer.wait(op.slot, op.step, op.node);
          joined = true;
          break;
        case HostOp::Kind::reduce:
          close();
          kernel(sums(op, record.movers[index(stream)].workgroups));
          break;
        case HostOp::Kind::to_all:
        case HostOp::Kind::sum_of_all:
          close();
          kernel(through_switch(op, record.movers[index(stream)].workgroups));
          break;
        case HostOp::Kind::zero:
          close();
          kernel(zeros(op));
          break;
        case HostOp::Kind::launch:
          close();
          kernel(launched(record, op));
          break;
        case HostOp::Kind::barrier:
          close();
          kernel(barrier(op));
          break;
        case HostOp::Kind::record:
        case HostOp::Kind::wait:
          close();
          items.push_back({.kind = op.kind == HostOp::Kind::record ? StreamItem::Kind::event_record
                                                                   : StreamItem::Kind::event_wait,
                           .index = op.event});
          break;
        case HostOp::Kind::collective:
          close();
          kernel(collective(op));
          break;
      }
      if (is_transfer(op)) ++transfers;
    }
    close();
    if (!items.empty()) program_.codes.back().streams.push_back(std::move(items));
  }

  /// PyTorch copies within a GPU by a kernel, between GPUs by engines.
  bool is_by_kernel(const HostOp& copy, const Movers& movers) const {
    return movers.workgroups > 0 ||
           (copy.regions[0].rank == rank_ && copy.regions[1].rank == rank_);
  }

  /// What is open is of the body that comes next.
  void settle() {
    const auto next = static_cast<std::int32_t>(program_.bodies.size());
    for (PendingWait& wait : waits_)
      if (wait.body == PendingWait::kOpen) wait.body = next;
    for (auto& [key, told] : told_)
      for (Told& one : told)
        if (one.body == PendingWait::kOpen) one.body = next;
  }

  /// Appends a body of a kernel and gives its number.
  std::int32_t add(program::Body body) {
    settle();
    program_.bodies.push_back(std::move(body));
    return static_cast<std::int32_t>(program_.bodies.size()) - 1;
  }

  program::Kernel barrier(const HostOp& op) {
    program::Kernel made{.name = "barrier", .threads = kBarrierThreads};
    program::Body body;
    Op tell{.kind = OpKind::dep_signal, .channel = program::Channel::any};
    Op wait{.kind = OpKind::dep_wait, .channel = program::Channel::any};
    for (int d = 1; d < reading_.ranks; ++d) {
      const int to = (rank_ + d) % reading_.ranks;
      const std::int32_t semaphore = first_barrier_ + op.event * (reading_.ranks - 1) + d - 1;
      tell.semaphores.push_back({constant(to), semaphore});
      wait.semaphores.push_back({own_rank(), semaphore});
      wait.targets.emplace_back(1, 1);
    }
    tell.where = wait.where = BodyWriter::line_of(reading_, *op.node);
    if (reading_.ranks > 1) body.ops = {std::move(tell), std::move(wait), {.kind = OpKind::sync}};
    made.bodies.push_back(add(std::move(body)));
    return made;
  }

  /// Workgroups of a sum or a copy: so many, or as PyTorch divides it.
  static std::int64_t slices(const HostOp& op, std::int64_t movers) {
    const std::int64_t rows = (op.regions[0].elements() + kSumElements - 1) / kSumElements;
    return movers > 0 ? movers : std::clamp<std::int64_t>(rows, 1, kMostSums);
  }

  /// `made` with the bodies of so many workgroups: write(writer, workgroup).
  template <class Write>
  program::Kernel by_workgroups(program::Kernel made, std::int64_t count, const Write& write) {
    for (std::int64_t workgroup = 0; workgroup < count; ++workgroup) {
      program::Body body;
      BodyWriter writer(target(), body);
      write(writer, workgroup);
      made.bodies.push_back(add(std::move(body)));
    }
    return made;
  }

  /// A copy or a sum by workgroups, each of which has a slice of every row.
  program::Kernel shared(const HostOp& op, program::Kernel made, std::int64_t movers) {
    const std::int64_t count = slices(op, movers);
    return by_workgroups(std::move(made), count, [&](BodyWriter& writer, std::int64_t slice) {
      writer.transfer(op, slice, count);
    });
  }
  program::Kernel moves(const HostOp& op, const Movers& movers) {
    program::Kernel made{.name = "copy", .threads = movers.bulk ? kBulkThreads : kMoverThreads};
    if (movers.bulk) made.grain = kBulkGrain;
    return shared(op, std::move(made), movers.workgroups);
  }
  program::Kernel sums(const HostOp& op, std::int64_t movers) {
    return shared(op, {.name = "sum", .threads = movers > 0 ? kMoverThreads : kSumThreads}, movers);
  }

  program::Kernel through_switch(const HostOp& op, std::int64_t movers) {
    const auto known = std::ranges::find(program_.groups, op.group);
    const auto group = static_cast<std::int32_t>(known - program_.groups.begin());
    if (known == program_.groups.end()) program_.groups.push_back(op.group);
    const std::int64_t count = std::max<std::int64_t>(movers, 1);
    return by_workgroups({.name = "switch", .threads = kMoverThreads}, count,
                         [&](BodyWriter& writer, std::int64_t slice) {
                           writer.through_switch(op, group, slice, count);
                         });
  }

  program::Kernel collective(const HostOp& op) {
    const auto own = std::ranges::find_if(meetings_, [&](const Meeting& meeting) {
      const auto found = meeting.ops.find(rank_);
      return found != meeting.ops.end() && found->second == &op;
    });
    const std::int64_t each = own->semaphores() / own->workgroups;
    const std::int32_t first = first_of_meetings_[index(own - meetings_.begin())];
    return by_workgroups({.name = op.name, .threads = kCollectiveThreads}, own->workgroups,
                         [&](BodyWriter& writer, std::int64_t workgroup) {
                           writer.collective(*own, workgroup,
                                             first + static_cast<std::int32_t>(workgroup * each));
                         });
  }

  program::Kernel zeros(const HostOp& op) {
    return by_workgroups({.name = "zeros", .threads = kSumThreads}, 1,
                         [&](BodyWriter& writer, std::int64_t) { writer.zero(op); });
  }

  program::Kernel launched(const RankRecord& record, const HostOp& op) {
    const LaunchFacts& facts = reading_.launches[index(rank_)][index(launch_)];
    KernelRun run(reading_.walker, record, op, rank_, reading_.ranks,
                  processors_beside(record, processors()));
    const auto option = [&](const char* name, std::int64_t otherwise) {
      const auto found = run.work().options.find(name);
      return static_cast<std::int32_t>(found == run.work().options.end() ? otherwise
                                                                         : found->second);
    };
    program::Kernel made{.name = run.work().kernel->function->name,
                         .threads = 32 * option("num_warps", 4),
                         .grain = 128,
                         .stages = option("num_stages", 0)};
    std::set<std::int64_t> resets;
    for (std::int64_t p = 0; p < run.programs(); ++p) {
      program::Body body;
      TileWriter writer(target(), body, facts, run.work(), p,
                        traces_ == nullptr ? nullptr : &traces_->back().emplace_back());
      run.run(
          p,
          [&](KernelEvent& event) {
            if (event.kind == KernelEvent::Kind::reset)
              note_reset(facts, resets, event);
            else
              writer.add(event);
          },
          [&](std::int64_t part, std::int64_t nth) { return ticket(facts, part, p, nth); });
      writer.finish();
      made.bodies.push_back(add(std::move(body)));
    }
    for (const auto& [part, counts] : facts.counts)
      if (!resets.contains(part))
        reading_.walker.wrong(
            *run.work().kernel->function->node,
            "tiles are counted, and nobody sets the count back: the next call counts on",
            "the last one stores 0");
    ++launch_;
    return made;
  }

  /// Whoever counts last leaves 0 behind, so that all calls find the same.
  void note_reset(const LaunchFacts& facts, std::set<std::int64_t>& resets,
                  const KernelEvent& event) const {
    const auto counts = facts.counts.find(event.number);
    if (counts != facts.counts.end() && event.step + 1 == std::ssize(counts->second) &&
        resets.insert(event.number).second)
      return;
    reading_.walker.wrong(*event.node, "a count is set back before all tiles are counted");
  }

  /// As if all programs did a turn, and then all of them the next one.
  static std::int64_t ticket(const LaunchFacts& facts, std::int64_t part, std::int64_t program,
                             std::int64_t nth) {
    const auto found = facts.counts.find(part);
    if (found == facts.counts.end()) return -1;
    const auto& counts = found->second;
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (counts[i].second == program && nth-- == 0) return static_cast<std::int64_t>(i);
    return -1;
  }

  Reading& reading_;
  const FusedReadOptions& options_;
  std::vector<RankTrace>* traces_;
  program::Program program_;
  std::int64_t unit_ = 0;
  int rank_ = 0;
  std::int32_t launch_ = 0;
  std::int32_t first_barrier_ = 0;
  std::vector<Meeting> meetings_;
  std::vector<std::int32_t> first_of_meetings_;
  Counters counters_;
  std::vector<std::int32_t> first_sums_;  ///< by launch
  std::vector<PendingWait> waits_;
  ToldSteps told_;
};

}  // namespace

program::Program write_program(Reading& reading, const FusedReadOptions& options,
                               std::vector<RankTrace>* traces) {
  return ProgramWriter(reading, options, traces).write();
}

}  // namespace hemiola::compile::readback
