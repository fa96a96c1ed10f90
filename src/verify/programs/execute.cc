// Bound programs on real data: a thread for each workgroup, each stream's host side and each queue
// of a proxy. Signals release and waits acquire whatever the program says: what relaxed ones leave
// open is check()'s to find, not this machine's.
#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "program/semantics/streams.h"
#include "program/walk/cursor.h"
#include "verify/execute.h"
#include "verify/plans/data.h"
#include "verify/programs/data.h"
#include "verify/programs/postcondition.h"
#include "verify/threads.h"

namespace hemiola::verify {
namespace {

using program::Primitive;
using program::PrimitiveKind;
using program::SemaphoreId;
using program::StreamItem;

constexpr std::size_t kMostWorkers = 4096;

class ProgramExecution {
 public:
  ProgramExecution(const program::Bound& program, const ExecuteOptions& options)
      : program_(program), options_(options), data_(program) {
    for (int rank = 0; rank < program.ranks(); ++rank) {
      for (const program::Semaphore& semaphore : program.semaphores())
        semaphores_.emplace_back(semaphore.initial);
      for (std::int32_t i = 0; i < program.barriers(); ++i) barriers_.emplace_back(0);
    }
    create_workgroups();
    create_queues();
    if (threads() > kMostWorkers)
      throw Failure("'" + program.name() + "' needs " + std::to_string(threads()) + " threads",
                    {program.source(), 0, 0, ""}, "fewer ranks, workgroups or channels");
  }

  Execution run() {
    Execution result;
    result.threads = static_cast<int>(threads());
    if (options_.monitor != nullptr) options_.monitor->begin(options_.rounds);
    for (round_ = 0; round_ < options_.rounds; ++round_) {
      if (options_.monitor != nullptr) options_.monitor->done.store(round_);
      const std::uint64_t seed = mix(options_.seed, static_cast<std::uint64_t>(round_));
      data_.fill_inputs(seed);
      if (round_ > 0)
        for (const auto& workgroup : workgroups_) workgroup->cursor.repeat();
      running_.store(static_cast<std::int64_t>(workgroups_.size()));
      Threads threads(result.threads);
      threads_ = &threads;
      const bool ended = threads.run([this](int thread) { run_thread(thread); }, options_.monitor);
      if (!fault_.empty() || !ended) {
        result.outcome = ended ? Outcome::wrong : Outcome::hang;
        result.summary = ended ? fault_ : "threads wait for ever";
        if (!ended) describe_hang(result);
        return result;
      }
      const std::string wrong = data_.compare(seed, result.compared);
      if (wrong.empty()) continue;
      result.outcome = Outcome::wrong;
      result.summary = "call " + std::to_string(round_ + 1) + ": " + wrong;
      return result;
    }
    result.summary = std::to_string(result.compared) + " elements are right in " +
                     std::to_string(options_.rounds) +
                     (options_.rounds == 1 ? " call" : " calls in a row") + " of " +
                     std::to_string(result.threads) + " threads";
    return result;
  }

 private:
  struct OpenWait {
    std::size_t thread;
    SemaphoreId semaphore;
    std::int64_t value;
    bool consume;
    std::int32_t op;
  };
  struct Workgroup {
    Workgroup(const program::Bound& program, int rank, std::int32_t body)
        : rank(rank), body(body), cursor(program, rank, body) {}
    int rank;
    std::int32_t body;
    int number = 0;  ///< among those of its rank
    std::size_t host = 0;
    std::size_t item = 0;
    program::Cursor cursor;
    Primitive current;
    std::vector<OpenWait> open;
    std::map<std::size_t, std::int64_t> posted;  ///< by queue: descriptors of it to wait for
    std::vector<std::vector<float>> loaded;      ///< by the compute that comes next
    std::vector<float> results;                  ///< that no move has stored yet
  };
  /// The host side of a stream: starts one item after the other.
  struct Host {
    int rank = 0;
    const program::Stream* items = nullptr;
    std::vector<std::int64_t> workgroups;            ///< by item
    std::vector<std::atomic<std::int64_t>> started;  ///< by item: rounds
    std::vector<std::atomic<std::int64_t>> ended;    ///< by item: workgroups, over all rounds
  };
  /// What a proxy does for one rank towards one peer, in order.
  struct Queue {
    std::mutex mutex;
    std::deque<Primitive> descriptors;
    std::int64_t taken = 0;
    std::atomic<std::int64_t> posted{0};
    std::atomic<std::int64_t> completed{0};
  };

  std::size_t threads() const { return workgroups_.size() + hosts_.size() + queues_.size(); }

  void create_workgroups() {
    for (int rank = 0; rank < program_.ranks(); ++rank) {
      int number = 0;
      const auto code = index(program_.code_of()[index(rank)]);
      for (const program::Stream& items : program_.codes()[code].streams) {
        Host& host = *hosts_.emplace_back(std::make_unique<Host>());
        host.rank = rank;
        host.items = &items;
        host.started = std::vector<std::atomic<std::int64_t>>(items.size());
        host.ended = std::vector<std::atomic<std::int64_t>>(items.size());
        for (std::size_t i = 0; i < items.size(); ++i) {
          host.workgroups.push_back(0);
          if (items[i].kind == StreamItem::Kind::event_record)
            events_.try_emplace({rank, items[i].index}, 0);
          const auto add = [&](std::int32_t body) {
            Workgroup& workgroup =
                *workgroups_.emplace_back(std::make_unique<Workgroup>(program_, rank, body));
            workgroup.number = number++;
            workgroup.host = hosts_.size() - 1;
            workgroup.item = i;
            ++host.workgroups.back();
          };
          for (const std::int32_t body : bodies_of(items[i], program_.kernels())) add(body);
        }
      }
    }
  }

  void create_queues() {
    Primitive primitive;
    for (const auto& workgroup : workgroups_) {
      program::Cursor walk = workgroup->cursor;
      while (walk.next(primitive))
        if (primitive.kind == PrimitiveKind::post &&
            queue_of_.try_emplace({workgroup->rank, peer_of(*workgroup, primitive)}, queues_.size())
                .second)
          queues_.push_back(std::make_unique<Queue>());
    }
  }

  static int peer_of(const Workgroup& workgroup, const Primitive& post) {
    if (!post.semaphores.empty()) return post.semaphores[0].rank;
    return post.dst.empty() ? workgroup.rank : post.dst[0].rank;
  }

  std::atomic<std::int64_t>& semaphore(SemaphoreId id) {
    return semaphores_[index(id.rank) * program_.semaphores().size() + index(id.index)];
  }

  void describe_hang(Execution& result) const {
    const auto thread = index(std::max(threads_->stuck(), 0));
    if (thread >= workgroups_.size()) return;
    const Workgroup& self = *workgroups_[thread];
    Witness step;
    step.rank = self.rank;
    step.workgroup = self.number;
    const auto& ops = program_.bodies()[index(self.body)].ops;
    const auto op = index(self.open.empty() ? self.current.op : self.open.front().op);
    if (op < ops.size()) {
      step.operation = "op " + std::to_string(op) + " (" + std::string(name_of(ops[op].kind)) + ")";
      step.where = ops[op].where;
    }
    step.text = "waits for ever for " + threads_->stuck_in();
    result.summary = "workgroup " + std::to_string(self.number) + " of rank " +
                     std::to_string(self.rank) + " " + step.text;
    result.steps.push_back(std::move(step));
  }

  void run_thread(int thread) {
    const auto number = index(thread);
    if (number < workgroups_.size()) return run_workgroup(thread, *workgroups_[number]);
    const std::size_t rest = number - workgroups_.size();
    if (rest < hosts_.size()) return run_host(thread, *hosts_[rest]);
    run_queue(thread, *queues_[rest - hosts_.size()]);
  }

  void run_host(int thread, Host& host) {
    const std::int64_t round = round_ + 1;
    for (std::size_t i = 0; i < host.items->size(); ++i) {
      const StreamItem& item = (*host.items)[i];
      host.started[i].store(round, std::memory_order_release);
      if (item.kind == StreamItem::Kind::event_record)
        events_.at({host.rank, item.index}).store(round, std::memory_order_release);
      threads_->advance();
      const bool passed = threads_->wait(
          thread,
          [&] {
            if (item.kind == StreamItem::Kind::event_wait) {
              const auto event = events_.find({host.rank, item.index});
              return event != events_.end() &&
                     event->second.load(std::memory_order_acquire) >= round;
            }
            return host.ended[i].load(std::memory_order_acquire) >= round * host.workgroups[i];
          },
          "the end of a kernel or an event");
      if (!passed) return;
    }
  }

  void run_queue(int thread, Queue& queue) {
    while (true) {
      const bool passed = threads_->wait(
          thread,
          [&] {
            return queue.posted.load(std::memory_order_acquire) > queue.taken ||
                   running_.load(std::memory_order_acquire) == 0;
          },
          "descriptors");
      if (!passed) return;
      Primitive descriptor;
      {
        const std::lock_guard lock(queue.mutex);
        if (queue.descriptors.empty()) return;  // all workgroups have ended
        descriptor = std::move(queue.descriptors.front());
        queue.descriptors.pop_front();
      }
      ++queue.taken;
      std::uint64_t random = mix(options_.seed, static_cast<std::uint64_t>(thread),
                                 static_cast<std::uint64_t>(queue.taken));
      if (options_.delays) delay(random);
      if (descriptor.bytes > 0 && !descriptor.src.empty() && !move(thread, descriptor)) return;
      queue.completed.fetch_add(1, std::memory_order_release);
      for (std::size_t i = 0; i < descriptor.semaphores.size(); ++i)
        semaphore(descriptor.semaphores[i])
            .fetch_add(descriptor.values[i], std::memory_order_acq_rel);
      threads_->advance();
    }
  }

  void run_workgroup(int thread, Workgroup& self) {
    Host& host = *hosts_[self.host];
    const bool started = threads_->wait(
        thread, [&] { return host.started[self.item].load(std::memory_order_acquire) > round_; },
        "its kernel to start");
    if (!started) return;
    std::uint64_t random =
        mix(options_.seed, static_cast<std::uint64_t>(round_), static_cast<std::uint64_t>(thread));
    self.open.clear();
    while (self.cursor.next(self.current)) {
      if (options_.delays) delay(random);
      if (!execute(thread, self)) return;
    }
    if (!settle(thread, self)) return;
    host.ended[self.item].fetch_add(1, std::memory_order_release);
    running_.fetch_sub(1, std::memory_order_acq_rel);
    threads_->advance();
  }

  /// False: the run is being stopped.
  bool execute(int thread, Workgroup& self) {
    const Primitive& primitive = self.current;
    if (primitive.kind == PrimitiveKind::wait) {
      for (std::size_t i = 0; i < primitive.semaphores.size(); ++i)
        self.open.push_back(
            {i, primitive.semaphores[i], primitive.values[i], primitive.consume, primitive.op});
      return true;
    }
    if (primitive.kind == PrimitiveKind::signal) return signal(thread, self);
    if (!settle(thread, self, primitive.thread)) return false;
    switch (primitive.kind) {
      case PrimitiveKind::move:
        if (primitive.exchanges) return data_.exchange(primitive) || outside();
        if (program_.program().computation != nullptr && (primitive.posted || primitive.made >= 0))
          return primitive.posted ? load_operand(self) : store_results(self);
        return move(thread, primitive);
      case PrimitiveKind::compute:
        compute(self);
        return true;
      case PrimitiveKind::barrier:
        return barrier(thread, self);
      case PrimitiveKind::post:
        post(self);
        return true;
      case PrimitiveKind::flush:
        for (const auto& [queue, posted] : self.posted)
          if (!threads_->wait(
                  thread,
                  [&, number = queue, count = posted] {
                    return queues_[number]->completed.load(std::memory_order_acquire) >= count;
                  },
                  "the proxy"))
            return false;
        return true;
      default:  // sync, fence: a workgroup is one thread
        return true;
    }
  }

  bool outside() {
    const std::lock_guard lock(fault_mutex_);
    fault_ = "an operation touches memory outside its buffer";
    threads_->stop();
    return false;
  }

  bool load_operand(Workgroup& self) {
    const program::Span& span = self.current.src.front();
    if (!data_.exists(span, self.current.bytes)) return outside();
    data_.read(span, self.current.bytes, self.loaded.emplace_back());
    return true;
  }

  /// What was loaded is multiplied or added up, and added to results that are not stored.
  void compute(Workgroup& self) {
    const auto& ops = program_.bodies()[index(self.body)].ops;
    const program::MatrixProduct& values = ops[index(self.current.op)].values;
    if (program_.program().computation != nullptr)
      ProgramData::compute(program_.program().computation->kind, values, self.loaded, self.results);
    self.loaded.clear();
  }

  bool store_results(Workgroup& self) {
    const program::Span& span = self.current.dst.front();
    const auto count = index(ProgramData::count(self.current.bytes));
    if (count != self.results.size() || !data_.exists(span, self.current.bytes)) return outside();
    data_.write(span, self.current.bytes, self.results.data());
    self.results.clear();
    return true;
  }

  bool reached(const OpenWait& wait) {
    std::atomic<std::int64_t>& counter = semaphore(wait.semaphore);
    std::int64_t value = counter.load(std::memory_order_acquire);
    if (!wait.consume) return value >= wait.value;
    while (value >= wait.value)
      if (counter.compare_exchange_weak(value, value - wait.value, std::memory_order_acq_rel))
        return true;
    return false;
  }

  /// Ends open waits of a thread of the workgroup, in order; of all threads with `of` -1.
  bool settle(int thread, Workgroup& self, std::ptrdiff_t of = -1) {
    for (std::size_t i = 0; i < self.open.size();) {
      const OpenWait wait = self.open[i];
      if (of >= 0 && static_cast<std::ptrdiff_t>(wait.thread) != of) {
        ++i;
        continue;
      }
      if (!threads_->wait(
              thread, [&] { return reached(wait); }, "a semaphore"))
        return false;
      self.open.erase(self.open.begin() + static_cast<std::ptrdiff_t>(i));
    }
    return true;
  }

  /// Threads that have no open wait signal at once, the others when theirs have ended.
  bool signal(int thread, Workgroup& self) {
    const Primitive& primitive = self.current;
    std::vector<std::size_t> later;
    const auto add = [&](std::size_t i) {
      semaphore(primitive.semaphores[i]).fetch_add(primitive.values[i], std::memory_order_acq_rel);
    };
    for (std::size_t i = 0; i < primitive.semaphores.size(); ++i) {
      const bool waits =
          std::ranges::any_of(self.open, [&](const OpenWait& wait) { return wait.thread == i; });
      waits ? later.push_back(i) : add(i);
    }
    threads_->advance();
    for (const std::size_t i : later) {
      if (!settle(thread, self, static_cast<std::ptrdiff_t>(i))) return false;
      add(i);
      threads_->advance();
    }
    return true;
  }

  bool barrier(int thread, Workgroup& self) {
    const std::int64_t size = self.current.workgroups;
    std::atomic<std::int64_t>& count =
        barriers_[index(self.rank) * index(program_.barriers()) + index(self.current.barrier_id)];
    const std::int64_t mine = count.fetch_add(1, std::memory_order_acq_rel);
    const std::int64_t target = (mine / size + 1) * size;
    threads_->advance();
    return threads_->wait(
        thread, [&] { return count.load(std::memory_order_acquire) >= target; },
        "other workgroups at a barrier");
  }

  void post(Workgroup& self) {
    const std::size_t number = queue_of_.at({self.rank, peer_of(self, self.current)});
    Queue& queue = *queues_[number];
    {
      const std::lock_guard lock(queue.mutex);
      queue.descriptors.push_back(self.current);
      self.posted[number] = queue.posted.fetch_add(1, std::memory_order_acq_rel) + 1;
    }
    threads_->advance();
  }

  /// Sources are reduced element by element, and the result is stored everywhere.
  bool move(int thread, const Primitive& primitive) {
    const std::vector<ProgramData::Elements> sources = data_.elements(primitive.src);
    const std::vector<ProgramData::Elements> destinations = data_.elements(primitive.dst);
    const std::int64_t count = ProgramData::count(primitive.bytes);
    for (const auto* list : {&sources, &destinations}) {
      for (const ProgramData::Elements& end : *list)
        if (end.first < 0 || end.first + count > end.memory->elements) return outside();
    }
    bool stored_packets = false;
    for (std::int64_t e = 0; e < count; ++e) {
      float result = 0;
      const auto add = [&](const ProgramData::Elements& source, float value) {
        result = &source == &sources.front() ? value : reduced(primitive.reduce, result, value);
      };
      for (const ProgramData::Elements& source : sources) {
        if (!source.packets) {
          add(source, source.memory->plain[index(source.first + e)]);
          continue;
        }
        std::uint64_t word = 0;
        if (!threads_->wait(
                thread,
                [&] {
                  word = source.memory->packets[index(source.first + e)].load(
                      std::memory_order_acquire);
                  return word >> 32 == static_cast<std::uint32_t>(source.flag);
                },
                "a packet"))
          return false;
        add(source, value_of(word));
      }
      for (const ProgramData::Elements& destination : destinations) {
        const auto at = index(destination.first + e);
        if (destination.packets) {
          destination.memory->packets[at].store(packet(result, destination.flag),
                                                std::memory_order_release);
          stored_packets = true;
        } else {
          destination.memory->plain[at] = result;
        }
      }
    }
    if (stored_packets) threads_->advance();
    return true;
  }

  const program::Bound& program_;
  const ExecuteOptions options_;
  ProgramData data_;
  std::deque<std::atomic<std::int64_t>> semaphores_;  ///< by rank and index
  std::deque<std::atomic<std::int64_t>> barriers_;    ///< by rank and id: arrivals, without end
  std::vector<std::unique_ptr<Workgroup>> workgroups_;
  std::vector<std::unique_ptr<Host>> hosts_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::map<std::pair<int, int>, std::size_t> queue_of_;  ///< by rank and peer
  std::map<std::pair<int, std::int32_t>, std::atomic<std::int64_t>> events_;
  std::atomic<std::int64_t> running_{0};
  std::mutex fault_mutex_;
  std::string fault_;
  Threads* threads_ = nullptr;
  int round_ = 0;
};

}  // namespace

Execution execute(const program::Bound& program, const ExecuteOptions& options) {
  const SourceLocation where{program.source(), 0, 0, ""};
  if (program.chunk_bytes() <= 0 || program.size().count <= 0)
    throw Failure("the program has no size yet", where, "bind it to a size first");
  if (program.type() != DataType::float32 || program.op() != ReduceOp::sum)
    throw Failure(
        "programs run here on sums of float only", where,
        program.program().fixed_type ? "--param dtype=float32" : "--dtype float --op sum");
  if (!has_postcondition(program))
    throw Failure("the result of this collective is not known", where,
                  "check it without real data");
  return ProgramExecution(program, options).run();
}

}  // namespace hemiola::verify
