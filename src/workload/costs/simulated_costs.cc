#include "workload/costs/simulated_costs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/index.h"
#include "core/names.h"
#include "study/support/digest.h"
#include "workload/costs/cache_footprint.h"
#include "workload/costs/launch_job.h"
#include "workload/costs/scene.h"
#include "workload/costs/scene_times.h"

namespace hemiola::workload {
namespace {

/// What a launch takes in a pass in which it is not known: such a pass is there to find all
/// launches, and does so whatever they take.
constexpr Time kGuess{1'000'000'000};

class Simulations : public SimulatedCosts {
 public:
  Simulations(const Workload& workload, const Places& places, machine::SharedMachine machine,
              study::Laboratory& laboratory, CostOptions options)
      : workload_(workload),
        machine_(std::move(machine)),
        options_(std::move(options)),
        programs_(workload, machine_, laboratory, options_),
        places_(places),
        scenes_(workload, places, *machine_, programs_),
        touched_(cache_footprint(workload, machine_, programs_)),
        timer_(workload, machine_, laboratory, options_, programs_, scenes_, touched_) {}

  Time alone(const LaunchKind& kind, Follows follows) override {
    const SceneTimes* times = times_alone(kind);
    if (times == nullptr) return kGuess;
    if (follows == Follows::nothing) return times->first;
    return follows == Follows::own_stream ? times->next : times->after;
  }

  Time latency(const LaunchKind& kind) override {
    const SceneTimes* times = times_alone(kind);
    return times == nullptr ? Time{} : times->latency;
  }

  const std::vector<Traffic>& traffic(const LaunchKind& kind) override {
    static const std::vector<Traffic> unknown;
    const SceneTimes* times = times_alone(kind);
    return times == nullptr ? unknown : times->traffic;
  }

  void in_passes(const std::function<void()>& pass) override {
    do {
      used_.clear();
      launches_.clear();
      has_unknown_launches_ = false;
      is_in_pass_ = true;
      try {
        pass();
      } catch (...) {
        is_in_pass_ = false;
        throw;
      }
      is_in_pass_ = false;
      if (missing_.empty()) return;
      simulate_missing();
    } while (true);
  }

  /// Of two launches they are simulated; of more each has the speed that all others leave it, one
  /// by one.
  std::vector<std::int64_t> speeds(std::int32_t rank_class,
                                   const std::vector<LaunchKind>& kinds) override {
    std::vector<std::int64_t> result(kinds.size(), kFullSpeed);
    // While launches alone are not known, what meets what is not known either.
    if (!options_.contention || has_unknown_launches_) return result;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      for (std::size_t other = k + 1; other < kinds.size(); ++other) {
        if (disturbs_nobody(kinds[k]) || disturbs_nobody(kinds[other])) continue;
        const auto [one, two] = speeds_of_pair(rank_class, kinds[k], kinds[other]);
        result[k] = result[k] * one / kFullSpeed;
        result[other] = result[other] * two / kFullSpeed;
      }
    }
    for (std::int64_t& speed : result) speed = std::max<std::int64_t>(speed, kFullSpeed / 50);
    return result;
  }

  Bytes buffer(const LaunchKind& kind) override {
    const auto [at, is_new] = buffers_.try_emplace(kind);
    if (is_new) {
      const std::vector<int>& pair = places_.place(kind.place).groups.front();
      const std::int64_t bytes = call_of(workload_, kind.kind, kind.work).bytes;
      const program::Program& program = *programs_.call(kind, bytes, pair).program;
      at->second = {program.fifo.step.count * program.fifo.slots * program.inbound};
    }
    return at->second;
  }

  std::int64_t simulations() const override {
    std::int64_t sum = 0;
    for (const SceneTimes* times : used_) sum += times->simulations;
    return sum;
  }

 private:
  // --- Scenes, each simulated once.

  struct Task {
    std::string key;
    Scene scene;
    bool is_alone = false;
    Level level = Level::fluid;  ///< of one that is alone
  };

  SceneTimes simulate(const Task& task) {
    return task.is_alone ? timer_.alone(task.scene, task.level) : timer_.at_once(task.scene);
  }

  std::string key_of(const Task& task) {
    return (task.is_alone ? fmt::format("{} alone: ", name_of(task.level)) : "at once: ") +
           scenes_.key_of(task.scene) + fmt::format(" of {} B touched", touched_);
  }

  /// Null: not known yet. It is once the pass is over.
  const SceneTimes* times_of(Task task) {
    task.key = key_of(task);
    auto known = known_.find(task.key);
    if (known == known_.end()) {
      if (is_in_pass_) {
        if (asked_.insert(task.key).second) missing_.push_back(std::move(task));
        return nullptr;
      }
      SceneTimes times = simulate(task);
      known = known_.emplace(std::move(task.key), std::move(times)).first;
    }
    used_.insert(&known->second);
    return &known->second;
  }

  /// Together with other processes where there are any.
  void simulate_missing() {
    std::vector<Task> tasks = std::exchange(missing_, {});
    asked_.clear();
    // Long ones first: then processes end together.
    std::ranges::stable_sort(tasks, [](const Task& one, const Task& other) {
      return one.scene.ranks.size() > other.scene.ranks.size();
    });
    if (options_.parts == nullptr) {
      for (const Task& task : tasks) known_[task.key] = simulate(task);
      return;
    }
    std::vector<std::string> names;
    for (const Task& task : tasks)
      names.push_back(
          study::digest(fmt::format("{} on {}", task.key, fmt::join(task.scene.ranks, " "))));
    study::make_together(
        *options_.parts, 1, names, [&](std::size_t i) { return text_of(simulate(tasks[i])); },
        options_.monitor == nullptr ? nullptr : options_.monitor->stop);
    for (std::size_t i = 0; i < tasks.size(); ++i)
      known_[tasks[i].key] = scene_times_of(options_.parts->part_of_made(names[i]));
  }

  // --- Launches alone.

  Level level_of(const LaunchKind& kind) const {
    if (kind.kind != NodeKind::collective) return options_.level;
    const auto known = options_.detail.find(workload_.collectives[index(kind.work)].kind);
    return known == options_.detail.end() ? options_.level : known->second;
  }

  /// Of groups that are not alike on the machine the slowest counts: all of them go on together.
  /// Null: not known yet.
  const SceneTimes* times_alone(const LaunchKind& kind) {
    const auto [at, is_new] = launches_.emplace(kind, std::nullopt);
    if (is_new) at->second = alone_on_all(kind);
    return at->second ? &*at->second : nullptr;
  }

  std::optional<SceneTimes> alone_on_all(const LaunchKind& kind) {
    SceneTimes worst;
    bool is_known = true;
    for (const int rank : scenes_.representative_ranks(kind)) {
      const auto one = alone_at(rank, kind);
      is_known = is_known && one.has_value();
      if (one && one->next > worst.next) worst = *one;
    }
    has_unknown_launches_ = has_unknown_launches_ || !is_known;
    return is_known ? std::optional(std::move(worst)) : std::nullopt;
  }

  std::optional<SceneTimes> alone_at(int rank, const LaunchKind& kind) {
    Task task{.scene = scenes_.alone(rank, kind), .is_alone = true, .level = level_of(kind)};
    if (is_long(task)) return time_of_long(std::move(task));
    const SceneTimes* times = times_of(std::move(task));
    return times == nullptr ? std::nullopt : std::optional(*times);
  }

  /// Long calls in small groups inside a node go on as they began: two sizes tell of all. (In large
  /// groups the pieces of a ring are still short at these sizes.)
  static constexpr std::int64_t kLongCall = 32 << 20;
  bool is_long(const Task& task) const {
    const ScenePart& part = task.scene.parts.front();
    if (is_local(part.kind.kind) || task.level != Level::fluid ||
        has_product(workload_, part.kind.kind, part.kind.work) ||
        is_uneven(workload_, part.kind.kind, part.kind.work))
      return false;
    const std::vector<int> group = task.scene.real(part.groups.front());
    return part.bytes > 2 * kLongCall && group.size() <= 8 &&
           machine_->reach(group.front(), group.back()) == machine::Reach::load_store;
  }

  std::optional<SceneTimes> time_of_long(Task task) {
    const std::int64_t bytes = task.scene.parts.front().bytes;
    task.scene.parts.front().bytes = kLongCall / 2;
    const SceneTimes* half = times_of(task);
    task.scene.parts.front().bytes = kLongCall;
    const SceneTimes* whole = times_of(task);
    if (half == nullptr || whole == nullptr) return std::nullopt;
    const auto longer = [&](Time from, Time to) {
      const auto more = static_cast<__int128>((to - from).fs) * (bytes - kLongCall);
      return to + Time{static_cast<std::int64_t>(more / (kLongCall / 2))};
    };
    SceneTimes times{.first = longer(half->first, whole->first),
                     .next = longer(half->next, whole->next),
                     .after = longer(half->after, whole->after),
                     .latency = whole->latency,
                     .traffic = whole->traffic};
    for (Traffic& one : times.traffic)
      one.wire_bytes *= static_cast<double>(bytes) / static_cast<double>(kLongCall);
    return times;
  }

  // --- Situations.

  /// Messages between two ranks are few, and what a FIFO holds is little; those of a ring are under
  /// way as long as its kernels are.
  bool disturbs_nobody(const LaunchKind& kind) const {
    if (kind.kind == NodeKind::receive) return true;
    if (kind.kind != NodeKind::send) return false;
    const std::int32_t family = workload_.messages[index(kind.work)].family;
    return !is_ring(workload_.families[index(family)]);
  }

  std::pair<std::int64_t, std::int64_t> speeds_of_pair(std::int32_t rank_class,
                                                       const LaunchKind& one,
                                                       const LaunchKind& two) {
    const int rank = workload_.classes[index(rank_class)].ranks.front();
    const SceneTimes* both = times_of({.scene = scenes_.situation(rank, {one, two})});
    const std::optional<Time> first = alone_in_situation(rank, one);
    const std::optional<Time> second = alone_in_situation(rank, two);
    if (both == nullptr || !first || !second) return {kFullSpeed, kFullSpeed};
    // Both begin at once. Until the first has ended both had their speed; the second does the rest
    // alone.
    const auto& lengths = both->lengths;
    const std::int64_t together = std::max<std::int64_t>(1, std::min(lengths[0], lengths[1]).fs);
    const auto speed = [&](Time length, Time alone) {
      const std::int64_t done = alone.fs - (length.fs - together);
      // What disturbs another one more is not known without its phase.
      return static_cast<std::int64_t>(std::clamp<__int128>(
          static_cast<__int128>(done) * kFullSpeed / together, kFullSpeed / 50, kFullSpeed));
    };
    return {speed(lengths[0], *first), speed(lengths[1], *second)};
  }

  /// From its begin to its end, where nothing was before it: as a situation's launches are.
  std::optional<Time> alone_in_situation(int rank, const LaunchKind& kind) {
    Task task{.scene = scenes_.situation(rank, {kind})};
    if (level_of(kind) == Level::fluid) {
      // All launches alone are known by now.
      task.is_alone = true;
      const auto known = known_.find(key_of(task));
      if (known != known_.end()) return known->second.first;
      task.is_alone = false;
    }
    const SceneTimes* times = times_of(std::move(task));
    return times == nullptr ? std::nullopt : std::optional(times->lengths.front());
  }

  const Workload& workload_;
  machine::SharedMachine machine_;
  CostOptions options_;
  LaunchPrograms programs_;
  const Places& places_;
  Scenes scenes_;
  std::int64_t touched_;  ///< by all launches: a part of what a simulation depends on
  SceneTimer timer_;
  std::map<std::string, SceneTimes> known_;
  std::vector<Task> missing_;
  std::set<std::string> asked_;  ///< keys of these
  bool is_in_pass_ = false;
  // Of the last pass.
  std::set<const SceneTimes*> used_;
  std::map<LaunchKind, std::optional<SceneTimes>> launches_;  ///< nothing: not known
  bool has_unknown_launches_ = false;
  std::map<LaunchKind, Bytes> buffers_;
};

}  // namespace

std::string_view name_of(Level level) {
  constexpr std::array<std::string_view, 4> kNames{"estimate", "fluid", "sampled", "line"};
  return name_in(kNames, level);
}

std::unique_ptr<SimulatedCosts> simulated_costs(const Workload& workload, const Places& places,
                                                machine::SharedMachine machine,
                                                study::Laboratory& laboratory,
                                                CostOptions options) {
  return std::make_unique<Simulations>(workload, places, std::move(machine), laboratory,
                                       std::move(options));
}

}  // namespace hemiola::workload
