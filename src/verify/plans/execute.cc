// Plans on real data, a thread for each stream and each compute.
#include <algorithm>
#include <memory>

#include "plan/launches.h"
#include "plan/tiles.h"
#include "verify/execute.h"
#include "verify/plans/data.h"
#include "verify/threads.h"

namespace hemiola::verify {

namespace {

constexpr std::int64_t kMostElements = std::int64_t{1} << 26;
constexpr std::int32_t kMostThreads = 512;

class PlanExecution {
 public:
  PlanExecution(const plan::Plan& plan, const ExecuteOptions& options)
      : plan_(plan),
        options_(options),
        unrolled_(plan),
        data_(unrolled_, kMostElements),
        completed_(index(unrolled_.streams())),
        arrived_(unrolled_.meetings().size()),
        met_(unrolled_.meetings().size()) {
    for (int rank = 0; rank < plan.ranks; ++rank)
      for (const plan::Compute& compute : plan.code(rank).computes)
        kernels_.push_back(std::make_unique<Kernel>(plan, rank, compute));
    connect_launches();
    for (const auto& kernel : kernels_) find_arrivals(*kernel);
  }

  Execution run() {
    Execution result;
    const std::int64_t threads = unrolled_.streams() + std::ssize(kernels_);
    if (threads > kMostThreads)
      throw Failure("plan '" + plan_.name + "' needs " + std::to_string(threads) + " threads", {},
                    "at most " + std::to_string(kMostThreads) + " are run here: fewer ranks");
    result.threads = static_cast<int>(threads);
    data_.poison();
    if (options_.monitor != nullptr) options_.monitor->begin(options_.rounds);
    for (round_ = 0; round_ < options_.rounds; ++round_) {
      if (options_.monitor != nullptr) options_.monitor->done.store(round_);
      data_.begin(mix(options_.seed, static_cast<std::uint64_t>(round_)));
      Threads threads(result.threads);
      threads_ = &threads;
      const auto body = [&](int thread) {
        thread < unrolled_.streams()
            ? run_stream(thread)
            : run_kernel(thread, *kernels_[index(thread - unrolled_.streams())]);
      };
      const bool ended = threads.run(body, options_.monitor);
      if (!ended) {
        result.outcome = Outcome::hang;
        result.summary = who(threads.stuck()) + " waits for ever for " + threads.stuck_in();
        return result;
      }
      if (const std::int32_t number = disagreed_.load(std::memory_order_acquire); number >= 0) {
        result.outcome = Outcome::wrong;
        result.summary = unrolled_.disagreement(unrolled_.meetings()[index(number)]);
        return result;
      }
      const std::string wrong = data_.compare(result.compared);
      if (wrong.empty()) continue;
      result.outcome = Outcome::wrong;
      result.summary = "call " + std::to_string(round_ + 1) + ": " + wrong;
      return result;
    }
    result.summary = std::to_string(result.compared) + " elements are right in " +
                     std::to_string(options_.rounds) + " rounds of " +
                     std::to_string(result.threads) + " threads";
    return result;
  }

 private:
  /// A compute of one rank.
  struct Kernel {
    Kernel(const plan::Plan& plan, int owner, const plan::Compute& what)
        : rank(owner), compute(what), done(index(count_tiles(what))) {
      for (std::int64_t tile = 0; tile < std::ssize(done); ++tile) {
        const plan::Rect box = tile_box(what, tile);
        auto& reads = areas.emplace_back();
        auto& writes = results.emplace_back();
        for (const plan::ComputeOperand& operand : what.operands)
          (operand.use == plan::Use::read ? reads : writes)
              .push_back(operand_area(plan, operand, box, owner));
        for (const plan::ComputeOperand& operand : what.operands)
          if (operand.use == plan::Use::add)
            reads.push_back(operand_area(plan, operand, box, owner));
      }
    }
    bool waits_by_tiles() const { return compute.waits == plan::Waits::tiles; }

    int rank;
    const plan::Compute& compute;
    std::vector<const Kernel*> before;              ///< of a launch: those that it comes after
    std::vector<TransferId> after;                  ///< of a launch
    std::atomic<std::int64_t> finished{0};          ///< rounds
    std::vector<std::atomic<std::int64_t>> done;    ///< by tile: rounds
    std::vector<std::vector<plan::Area>> areas;     ///< by tile: what it reads
    std::vector<std::vector<plan::Area>> results;   ///< by tile: what it writes
    std::vector<std::vector<TransferId>> arrivals;  ///< by tile: what it waits for
  };

  void connect_launches() {
    std::size_t first = 0;  // kernel of a rank
    for (int rank = 0; rank < plan_.ranks; ++rank) {
      const plan::Code& code = plan_.code(rank);
      const plan::LaunchOrder order(code);
      for (std::size_t c = 0; c < code.computes.size(); ++c) {
        Kernel& kernel = *kernels_[first + c];
        for (const std::int32_t other : order.directly_before(static_cast<std::int32_t>(c)))
          kernel.before.push_back(kernels_[first + index(other)].get());
        for (const plan::Dependency& dependency : kernel.compute.after)
          if (dependency.on_transfer())
            kernel.after.push_back(unrolled_.target(dependency, {.rank = rank}));
      }
      first_kernel_.push_back(first);
      first += code.computes.size();
    }
  }

  void find_arrivals(Kernel& kernel) {
    kernel.arrivals.resize(kernel.done.size());
    if (!kernel.waits_by_tiles()) return;
    unrolled_.each_arrival([&](int rank, const plan::Area& area, TransferId id) {
      if (rank != kernel.rank) return;
      for (std::size_t tile = 0; tile < kernel.areas.size(); ++tile)
        if (std::ranges::any_of(kernel.areas[tile],
                                [&](const plan::Area& read) { return overlap(read, area); }))
          kernel.arrivals[tile].push_back(id);
    });
  }

  std::string who(int thread) const {
    if (thread < unrolled_.streams())
      return "stream " + std::to_string(unrolled_.index_of(thread)) + " of rank " +
             std::to_string(unrolled_.rank_of(thread));
    const Kernel& kernel = *kernels_[index(thread - unrolled_.streams())];
    return "compute '" + kernel.compute.name + "' of rank " + std::to_string(kernel.rank);
  }

  /// Counters go on over rounds.
  bool is_complete(TransferId id) const {
    return completed_[index(id.stream)].load(std::memory_order_acquire) >
           static_cast<std::int64_t>(round_) * unrolled_.transfers(id.stream) + id.number;
  }

  bool is_finished(const Kernel& kernel) const {
    return kernel.finished.load(std::memory_order_acquire) > round_;
  }

  bool is_met(const plan::Dependency& dependency, const Indices& at) const {
    if (dependency.on_transfer()) return is_complete(unrolled_.target(dependency, at));
    if (dependency.compute) {
      const std::size_t first = first_kernel_[index(dependency.rank(at))];
      return is_finished(*kernels_[first + index((*dependency.compute)(at))]);
    }
    const plan::Area area = evaluate(*dependency.computed, at);
    for (const auto& kernel : kernels_) {
      if (kernel->rank != dependency.rank(at) || is_finished(*kernel)) continue;
      for (std::size_t tile = 0; tile < kernel->done.size(); ++tile) {
        const bool done = kernel->done[tile].load(std::memory_order_acquire) > round_;
        if (done && kernel->waits_by_tiles()) continue;
        for (const plan::Area& result : kernel->results[tile])
          if (overlap(result, area)) return false;
      }
    }
    return true;
  }

  void run_stream(std::int32_t stream) {
    std::uint64_t random = mix(options_.seed, static_cast<std::uint64_t>(round_),
                               static_cast<std::uint64_t>(stream), 1);
    for (TransferId id{stream, 0}; id.number < unrolled_.transfers(stream); ++id.number) {
      if (options_.delays) delay(random);
      const plan::Transfer& transfer = unrolled_.transfer(id);
      const Indices at = unrolled_.at(id);
      for (const plan::Dependency& dependency : transfer.after)
        if (!threads_->wait(
                stream, [&] { return is_met(dependency, at); },
                dependency.computed  ? "tiles"
                : dependency.compute ? "a launch"
                                     : "a transfer"))
          return;
      if (transfer.kind == plan::TransferKind::collective) {
        if (!meet(stream, unrolled_.meeting_of(id))) return;
      } else {
        for (const Movement& movement : unrolled_.movements(id)) move(movement);
      }
      completed_[index(stream)].fetch_add(1, std::memory_order_release);
      threads_->advance();
    }
  }

  bool meet(std::int32_t stream, std::int32_t number) {
    const auto index = static_cast<std::size_t>(number);
    const Meeting& meeting = unrolled_.meetings()[index];
    const std::int64_t round = round_ + 1;
    if (arrived_[index].fetch_add(1, std::memory_order_acq_rel) + 1 ==
        round * std::ssize(meeting.members)) {
      if (!unrolled_.disagreement(meeting).empty()) {
        disagreed_.store(number, std::memory_order_release);
        threads_->stop();
        return false;
      }
      for (const auto& [movement, values] : sums(unrolled_.movements(meeting)))
        store(movement, values);
      met_[index].store(round, std::memory_order_release);
      threads_->advance();
      return true;
    }
    return threads_->wait(
        stream, [&] { return met_[index].load(std::memory_order_acquire) >= round; },
        "the other members of its group");
  }

  void move(const Movement& movement) {
    std::vector<std::pair<const float*, std::vector<std::int64_t>>> sources;
    for (const auto& [rank, area] : movement.sources)
      sources.emplace_back(data_.tensor(rank, area.tensor), elements(plan_, area));
    float* destination = data_.tensor(movement.rank, movement.destination.tensor);
    const std::vector<std::int64_t> places = elements(plan_, movement.destination);
    for (std::size_t i = 0; i < places.size(); ++i) {
      float sum = 0;
      for (const auto& [source, positions] : sources) sum += source[positions[i]];
      destination[places[i]] = sum;
    }
  }

  /// Collectives may work in place: all is read before anything is written.
  std::vector<std::pair<Movement, std::vector<float>>> sums(std::vector<Movement> movements) {
    std::vector<std::pair<Movement, std::vector<float>>> all;
    for (Movement& movement : movements) {
      std::vector<float> values(index(movement.destination.elements()));
      for (const auto& [rank, area] : movement.sources) {
        const float* source = data_.tensor(rank, area.tensor);
        const std::vector<std::int64_t> positions = elements(plan_, area);
        for (std::size_t i = 0; i < values.size(); ++i) values[i] += source[positions[i]];
      }
      all.emplace_back(std::move(movement), std::move(values));
    }
    return all;
  }
  void store(const Movement& movement, const std::vector<float>& values) {
    float* destination = data_.tensor(movement.rank, movement.destination.tensor);
    const std::vector<std::int64_t> places = elements(plan_, movement.destination);
    for (std::size_t i = 0; i < places.size(); ++i) destination[places[i]] = values[i];
  }

  /// What a launch comes after is done, and its memory ready.
  bool start(int thread, const Kernel& kernel) {
    if (!kernel.compute.is_launch()) return true;
    const bool started = threads_->wait(
        thread,
        [&] {
          return std::ranges::all_of(kernel.before,
                                     [&](const Kernel* other) { return is_finished(*other); }) &&
                 std::ranges::all_of(kernel.after, [&](TransferId id) { return is_complete(id); });
        },
        "what its launch comes after");
    if (started) data_.begin_launch(kernel.rank, kernel.compute);
    return started;
  }

  /// Tiles in a random order, but none that has to wait before one that need not.
  void run_kernel(int thread, Kernel& kernel) {
    if (!start(thread, kernel)) return;
    std::uint64_t random = mix(options_.seed, static_cast<std::uint64_t>(round_),
                               static_cast<std::uint64_t>(thread), 2);
    std::vector<std::size_t> left(kernel.done.size());
    for (std::size_t i = 0; i < left.size(); ++i) left[i] = i;
    for (std::size_t i = left.size(); i > 1; --i) {
      random = mix(random, i);
      std::swap(left[i - 1], left[random % i]);
    }
    while (!left.empty()) {
      if (options_.delays) delay(random);
      std::size_t chosen = 0;
      const bool found = threads_->wait(
          thread,
          [&] {
            for (chosen = 0; chosen < left.size(); ++chosen) {
              const std::vector<TransferId>& arrivals = kernel.arrivals[left[chosen]];
              if (std::ranges::all_of(arrivals, [&](TransferId id) { return is_complete(id); }))
                return true;
            }
            return false;
          },
          "what its tiles read");
      if (!found) return;
      data_.run_tile(kernel.rank, kernel.compute, static_cast<std::int64_t>(left[chosen]));
      kernel.done[left[chosen]].store(round_ + 1, std::memory_order_release);
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
      if (left.empty()) kernel.finished.store(round_ + 1, std::memory_order_release);
      threads_->advance();
    }
  }

  const plan::Plan& plan_;
  const ExecuteOptions options_;
  Unrolled unrolled_;
  PlanData data_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::size_t> first_kernel_;             ///< by rank
  std::vector<std::atomic<std::int64_t>> completed_;  ///< by stream: transfers, over all rounds
  std::vector<std::atomic<std::int64_t>> arrived_;    ///< by meeting: members, over all rounds
  std::vector<std::atomic<std::int64_t>> met_;        ///< by meeting: rounds
  std::atomic<std::int32_t> disagreed_{-1};           ///< a meeting
  Threads* threads_ = nullptr;
  int round_ = 0;
};

}  // namespace

Execution execute(const plan::Plan& plan, const ExecuteOptions& options) {
  return PlanExecution(plan, options).run();
}

}  // namespace hemiola::verify
