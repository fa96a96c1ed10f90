#include "lift/lift.h"

#include <algorithm>
#include <deque>
#include <numeric>
#include <set>
#include <string>

#include "core/index.h"
#include "lift/packets.h"
#include "lift/recorder.h"
#include "program/walk/cursor.h"

namespace hemiola::lift {
namespace {

using program::Primitive;
using program::PrimitiveKind;

/// Runs the workgroups in turn, each until it has to wait, and tells the recorder.
class Walk {
 public:
  explicit Walk(const program::Bound& program) : program_(program), recorder_(program) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      for (const program::Semaphore& semaphore : program.semaphores())
        semaphores_.push_back({.value = semaphore.initial, .taken = semaphore.initial});
      start(rank);
    }
    packets_.resize(index(program.ranks()) * program.buffers().size());
  }

  plan::Plan run() {
    bool moved = true;
    while (moved) {
      moved = false;
      for (Workgroup& self : workgroups_) moved = advance(self) || moved;
    }
    for (const Workgroup& self : workgroups_) {
      if (!self.ended)
        throw Failure("program '" + program_.name() + "' does not end: workgroup " +
                          std::to_string(self.stream) + " of rank " + std::to_string(self.rank) +
                          " waits for ever",
                      {.file = program_.source()}, "`hemiola check` shows why", ExitCode::deadlock);
    }
    plan::Plan plan = recorder_.finish();
    propose(plan);
    return plan;
  }

 private:
  struct Workgroup {
    int rank = 0;
    std::int32_t stream = 0;
    program::Cursor cursor;
    Primitive current{};
    bool has_current = false;
    bool ended = false;
    bool arrived = false;    ///< at the barrier that is the current primitive ...
    std::int64_t round = 0;  ///< ... in this round of it
    Knowledge known{};       ///< beyond what its own transfers came after
    Knowledge posted{};      ///< its requests to proxies
    std::set<int> met{};     ///< ranks that have signalled
  };
  /// What has been added to a semaphore, and who knew what when adding.
  struct Semaphore {
    struct Signal {
      int rank;            ///< of the signaller
      std::int64_t value;  ///< of the semaphore after it
      Knowledge knowledge;
    };
    std::int64_t value = 0;
    std::int64_t taken = 0;  ///< what waits have consumed, for those that consume
    std::vector<Signal> signals{};
  };
  struct Barrier {
    std::int32_t arrived = 0;
    std::int64_t round = 0;
    Knowledge knowledge{}, last{};  ///< of this round so far, and of the one before
  };

  void start(int rank) {
    const program::RankCode& code = program_.code(rank);
    const auto refuse = [&](const char* what) {
      throw Failure("program '" + program_.name() + "' has " + what + ", and is not lifted",
                    {.file = program_.source()}, "programs of one kernel per rank are");
    };
    std::int64_t kernels = 0;
    for (const program::Stream& stream : code.streams) {
      for (const program::StreamItem& item : stream) {
        if (item.kind != program::StreamItem::Kind::kernel) refuse("streams of more than a kernel");
        if (++kernels > 1) refuse("several kernels on a rank");
        for (const std::int32_t body : program_.kernels()[index(item.index)].bodies) {
          const std::int32_t number =
              recorder_.add_stream(rank, "workgroup " + std::to_string(names_++));
          workgroups_.push_back({rank, number, program::Cursor(program_, rank, body)});
        }
      }
    }
    names_ = 0;
    barriers_.emplace_back(index(program_.barriers()));
  }

  /// Whether it got any further.
  bool advance(Workgroup& self) {
    bool moved = false;
    while (!self.ended) {
      if (!self.has_current) {
        self.has_current = self.cursor.next(self.current);
        if (!self.has_current) {
          self.ended = true;
          return true;
        }
      }
      if (!step(self)) return moved;
      self.has_current = false;
      moved = true;
    }
    return moved;
  }

  /// One primitive; false while it has to wait.
  bool step(Workgroup& self) {
    const Primitive& primitive = self.current;
    switch (primitive.kind) {
      case PrimitiveKind::move:
        return move(self);
      case PrimitiveKind::signal:
        for (std::size_t s = 0; s < primitive.semaphores.size(); ++s)
          signal(self.rank, primitive.semaphores[s], primitive.values[s], knowledge_of(self));
        return true;
      case PrimitiveKind::wait:
        return wait(self);
      case PrimitiveKind::barrier:
        return barrier(self);
      case PrimitiveKind::post:
        post(self);
        return true;
      case PrimitiveKind::flush:
        join(self.known, self.posted);
        self.posted.clear();
        return true;
      case PrimitiveKind::compute:
        throw Failure("program '" + program_.name() + "' computes, and is not lifted",
                      {.file = program_.source()});
      case PrimitiveKind::sync:
      case PrimitiveKind::fence:
        return true;  // a stream is in order
    }
    return true;
  }

  Knowledge knowledge_of(const Workgroup& self) const {
    Knowledge all = self.known;
    recorder_.add_last(self.rank, self.stream, all);
    return all;
  }

  Packets& packets(int rank, std::int32_t buffer) {
    return packets_[index(rank) * program_.buffers().size() + index(buffer)];
  }

  bool move(Workgroup& self) {
    Knowledge seen;
    for (const program::Span& span : self.current.src) {
      if (!is_packet(span.access)) continue;
      const std::int64_t begin = data_offset(span.offset, span.access);
      const auto writers =
          packets(span.rank, span.buffer).load(begin, begin + self.current.bytes, span.flag);
      if (!writers) return false;
      for (const TransferRef& writer : *writers) join(seen, writer);
    }
    join(self.known, seen);
    note_first_touch(self);
    recorder_.move(self.rank, self.stream, self.current, self.known);
    for (const program::Span& span : self.current.dst)
      if (is_packet(span.access))
        store_packets(span, self.current.bytes, recorder_.last(self.rank, self.stream));
    return true;
  }

  void store_packets(const program::Span& span, std::int64_t bytes, const TransferRef& by) {
    const std::int64_t begin = data_offset(span.offset, span.access);
    const std::int64_t end = begin + bytes;
    if (!is_multicast(span.access)) {
      packets(span.rank, span.buffer).store(begin, end, span.flag, by);
      return;
    }
    for (const int member : program_.groups()[index(span.group)])
      packets(member, span.buffer).store(begin, end, span.flag, by);
  }

  /// Whether the caller's memory on another rank is used before that rank has signalled anything.
  void note_first_touch(const Workgroup& self) {
    for (const auto* spans : {&self.current.src, &self.current.dst}) {
      for (const program::Span& span : *spans) {
        const program::BufferKind kind = program_.buffers()[index(span.buffer)].kind;
        const bool callers =
            kind == program::BufferKind::input || kind == program::BufferKind::output;
        const bool far = program::is_multicast(span.access) || span.rank != self.rank;
        meets_ = meets_ || (callers && far &&
                            (program::is_multicast(span.access) || !self.met.contains(span.rank)));
        multicasts_ = multicasts_ || program::is_multicast(span.access);
        if (program::is_packet(span.access))
          packets_of_ = span.access == program::Access::ll128 ? "ll128" : "ll";
      }
    }
  }

  /// How the program does what the plan says.
  void propose(plan::Plan& plan) const {
    plan.lowering = {{"workgroups", "1"}};
    std::int32_t threads = 0;
    for (const program::Kernel& kernel : program_.kernels())
      threads = std::max(threads, kernel.threads);
    plan.lowering.emplace_back("threads", std::to_string(threads));
    if (!packets_of_.empty()) plan.lowering.emplace_back("protocol", packets_of_);
    if (multicasts_) plan.lowering.emplace_back("realization", "multicast");
    if (!meets_) plan.lowering.emplace_back("barrier", "0");
    const std::int64_t chunk = program_.size().count / plan.chunks_per_size;
    if (chunk % 16 != 0)
      plan.lowering.emplace_back("alignment", std::to_string(std::gcd(chunk, std::int64_t{16})));
  }

  void signal(int rank, const program::SemaphoreId& id, std::int64_t value, Knowledge knowledge) {
    Semaphore& semaphore = semaphore_of(id);
    semaphore.value += value;
    semaphore.signals.push_back({rank, semaphore.value, std::move(knowledge)});
  }

  Semaphore& semaphore_of(const program::SemaphoreId& id) {
    return semaphores_[index(id.rank) * program_.semaphores().size() + index(id.index)];
  }

  bool wait(Workgroup& self) {
    const Primitive& primitive = self.current;
    const auto target = [&](std::size_t s) {
      return primitive.values[s] +
             (primitive.consume ? semaphore_of(primitive.semaphores[s]).taken : 0);
    };
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s)
      if (semaphore_of(primitive.semaphores[s]).value < target(s)) return false;
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s) {
      Semaphore& semaphore = semaphore_of(primitive.semaphores[s]);
      const std::int64_t wanted = target(s);
      std::int64_t before = 0;
      for (const Semaphore::Signal& signal : semaphore.signals) {
        if (before >= wanted) break;
        join(self.known, signal.knowledge);
        self.met.insert(signal.rank);
        meets_ = meets_ || (signal.knowledge.empty() && signal.rank != self.rank);
        before = signal.value;
      }
      if (primitive.consume) semaphore.taken = wanted;
    }
    return true;
  }

  bool barrier(Workgroup& self) {
    Barrier& barrier = barriers_[index(self.rank)][index(self.current.barrier_id)];
    if (!self.arrived) {
      self.arrived = true;
      self.round = barrier.round;
      join(barrier.knowledge, knowledge_of(self));
      if (++barrier.arrived == self.current.workgroups) {
        barrier.arrived = 0;
        ++barrier.round;
        barrier.last = std::exchange(barrier.knowledge, {});
      }
    }
    if (barrier.round == self.round) return false;
    self.arrived = false;
    join(self.known, barrier.last);
    return true;
  }

  /// The proxy serves the requests of a rank to a peer in order: a stream of its own.
  void post(Workgroup& self) {
    const Primitive& primitive = self.current;
    const int peer =
        primitive.bytes > 0 ? primitive.dst.front().rank : primitive.semaphores.front().rank;
    const auto [found, fresh] = proxies_.emplace(std::pair{self.rank, peer}, Proxy{});
    Proxy& proxy = found->second;
    if (fresh)
      proxy.stream = recorder_.add_stream(self.rank, "proxy to rank " + std::to_string(peer));
    join(proxy.known, knowledge_of(self));
    if (primitive.bytes > 0) {
      recorder_.move(self.rank, proxy.stream, primitive, proxy.known);
      for (const program::Span& span : primitive.dst)
        if (is_packet(span.access))
          store_packets(span, primitive.bytes, recorder_.last(self.rank, proxy.stream));
    }
    Knowledge after = proxy.known;
    recorder_.add_last(self.rank, proxy.stream, after);
    for (std::size_t s = 0; s < primitive.semaphores.size(); ++s)
      signal(self.rank, primitive.semaphores[s], 1, after);
    join(self.posted, after);
  }

  struct Proxy {
    std::int32_t stream = 0;
    Knowledge known{};
  };

  const program::Bound& program_;
  Recorder recorder_;
  std::deque<Workgroup> workgroups_;
  std::vector<Semaphore> semaphores_;           ///< by rank, then index
  std::vector<std::vector<Barrier>> barriers_;  ///< by rank and id
  std::vector<Packets> packets_;                ///< by rank and buffer
  std::map<std::pair<int, int>, Proxy> proxies_;
  std::int64_t names_ = 0;
  bool meets_ = false;  ///< begins with a barrier among ranks, or needs one
  bool multicasts_ = false;
  std::string packets_of_;  ///< protocol of its packets
};

}  // namespace

plan::Plan lift(const program::Bound& program) {
  return Walk(program).run();
}

}  // namespace hemiola::lift
