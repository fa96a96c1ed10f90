#include "workload/simulated_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>
#include <utility>

#include "core/index.h"
#include "core/units.h"
#include "sim/simulate.h"
#include "workload/launch_job.h"
#include "workload/stand_in.h"
#include "workload/traffic.h"

namespace hemiola::workload {
namespace {

struct Alone {
  Time first{};    ///< from the beginning of its stream to its end, where nothing was before
  Time next{};     ///< behind another one
  Time after{};    ///< from the end of what it waits for on another stream
  Time latency{};  ///< of the first
  std::vector<Traffic> traffic;
};

/// A launch with the groups that are simulated, as positions among the ranks that are.
struct Part {
  LaunchKind kind;
  std::int64_t bytes = 0;  ///< of a collective or message, as it is simulated
  /// A kernel that is known by its bytes, in a situation: one stands for all.
  bool is_any_kernel = false;
  std::vector<std::vector<int>> groups;
};

/// In a situation a call counts without its phase and its length, so those that are long, and those
/// that are about as long as each other, are one.
std::int64_t bytes_in_situation(std::int64_t bytes) {
  constexpr std::int64_t kLeast = 64 << 10, kMost = 64 << 20;
  if (bytes <= kLeast) return bytes;
  std::int64_t power = kLeast;
  while (power * 2 <= std::min(bytes, kMost)) power *= 2;
  return power;
}

sim::Engine engine_of(Level level) {
  switch (level) {
    case Level::sampled:
      return sim::Engine::sampled;
    case Level::line:
      return sim::Engine::line;
    case Level::estimate:
    case Level::fluid:
      break;
  }
  return sim::Engine::fluid;
}

}  // namespace

std::string_view name_of(Level level) {
  switch (level) {
    case Level::estimate:
      return "estimate";
    case Level::fluid:
      return "fluid";
    case Level::sampled:
      return "sampled";
    case Level::line:
      return "line";
  }
  return "";
}

struct SimulatedCosts::Implementation {
  Implementation(const Workload& workload, const Places& places, machine::SharedMachine machine,
                 study::Laboratory& laboratory, CostOptions options)
      : workload_(workload),
        places_(places),
        machine_(std::move(machine)),
        laboratory_(laboratory),
        options_(std::move(options)),
        programs_(workload, machine_, laboratory, options_) {}

  /// The ranks that are simulated for the sake of one, and the launches on them.
  struct Scene {
    std::vector<int> ranks;  ///< of the machine, ascending
    std::vector<Part> parts;
  };

  const std::vector<std::size_t>& groups_of(std::int32_t place, int rank) {
    const auto [at, is_new] = groups_.emplace(std::pair(place, rank), std::vector<std::size_t>());
    if (is_new) at->second = groups_for(*machine_, places_.place(place), rank);
    return at->second;
  }

  Scene scene_of(int rank, const std::vector<LaunchKind>& kinds, bool is_situation) {
    std::set<int> ranks{rank};
    std::vector<Part> parts;
    for (const LaunchKind& kind : kinds) {
      Part part{.kind = kind};
      part.is_any_kernel = is_situation && is_kernel(kind.kind) &&
                           workload_.computes[index(kind.work)].kind == Compute::Kind::other;
      if (!is_kernel(kind.kind)) {
        part.bytes = call_of(workload_, kind.kind, kind.work).bytes;
        if (is_situation) part.bytes = bytes_in_situation(part.bytes);
        const Place& place = places_.place(kind.place);
        for (const std::size_t g : groups_of(kind.place, rank)) {
          part.groups.push_back(place.groups[g]);
          ranks.insert(place.groups[g].begin(), place.groups[g].end());
        }
      }
      parts.push_back(std::move(part));
    }
    // Kernels run on all of these ranks that do the same.
    for (Part& part : parts) {
      if (!part.groups.empty()) continue;
      for (const int one : ranks) {
        if (places_.class_of(one) == places_.class_of(rank)) part.groups.push_back({one});
      }
    }
    Scene scene{.ranks = {ranks.begin(), ranks.end()}, .parts = std::move(parts)};
    for (Part& part : scene.parts) {
      for (auto& group : part.groups) {
        for (int& one : group)
          one = static_cast<int>(std::lower_bound(scene.ranks.begin(), scene.ranks.end(), one) -
                                 scene.ranks.begin());
      }
    }
    return scene;
  }

  /// As ranks of the machine.
  static std::vector<int> real(const Scene& scene, const std::vector<int>& group) {
    std::vector<int> ranks;
    for (const int position : group) ranks.push_back(scene.ranks[index(position)]);
    return ranks;
  }

  LaunchPrograms::Made program_of(const Part& part, const std::vector<int>& ranks) {
    if (part.is_any_kernel) return programs_.any_kernel(ranks.front());
    if (is_kernel(part.kind.kind)) return programs_.kernel(part.kind.work, ranks.front());
    return programs_.call(part.kind, part.bytes, ranks);
  }

  /// Equal for scenes that take the same time.
  using SceneKey = std::vector<std::int64_t>;
  SceneKey key_of(const Scene& scene) {
    SceneKey key{static_cast<std::int64_t>(scene.ranks.size())};
    for (const Part& part : scene.parts) {
      key.push_back(static_cast<std::int64_t>(part.kind.kind));
      key.push_back(part.is_any_kernel          ? -1
                    : is_kernel(part.kind.kind) ? part.kind.work
                                                : program_number(part));
      key.push_back(static_cast<std::int64_t>(part.groups.size()));
      for (const auto& group : part.groups) {
        key.insert(key.end(), group.begin(), group.end());
        key.push_back(static_cast<std::int64_t>(programs_.ways_between(real(scene, group))));
      }
    }
    return key;
  }

  /// Of collectives and messages that run the same: equal.
  std::int64_t program_number(const Part& part) {
    const auto [kind, type] = run_as(workload_, part.kind.kind, part.kind.work);
    return numbers_
        .emplace(std::tuple(kind, type, part.bytes), static_cast<std::int64_t>(numbers_.size()))
        .first->second;
  }

  std::string text_of(const Scene& scene) const {
    std::string text;
    for (const Part& part : scene.parts)
      text += (text.empty() ? "" : " beside ") + workload::text_of(workload_, part.kind);
    return text + " on " + std::to_string(scene.ranks.size()) + " GPUs";
  }
  /// Each part on a stream of its own, `times` times one after the other. The launch of part p's
  /// first group that comes r-th is p * times + r of the result. `after`: of one part, then a short
  /// kernel and, on a stream that waits for it, the part once more; both are in the result.
  sim::Result simulate(const Scene& scene, int times, sim::Engine engine, bool after = false) {
    if (options_.monitor != nullptr) options_.monitor->leave_if_stopping();
    if (options_.on_simulation) options_.on_simulation(text_of(scene));
    auto job = std::make_shared<program::Job>();
    job->name = "launches of " + workload_.name;
    job->source = workload_.source;
    std::vector<std::size_t> own;
    for (std::size_t p = 0; p < scene.parts.size(); ++p) {
      const std::string stream = "stream " + std::to_string(p);
      for (int t = 0; t < times; ++t) {
        own.push_back(job->launches.size());
        add_launches(*job, scene, scene.parts[p], stream, stream + " " + std::to_string(t));
      }
    }
    if (after) {
      std::vector<std::int32_t> last;
      for (std::size_t l = own.back(); l < job->launches.size(); ++l)
        last.push_back(static_cast<std::int32_t>(l));
      const LaunchPrograms::Made probe = programs_.short_kernel(scene.ranks.front());
      own.push_back(job->launches.size());
      std::vector<int> all(scene.ranks.size());
      std::iota(all.begin(), all.end(), 0);
      job->launches.push_back({.name = "probe",
                               .program = probe.program,
                               .options = probe.options,
                               .ranks = std::move(all),
                               .alone = true,
                               .stream = "probe",
                               .after = std::move(last)});
      own.push_back(job->launches.size());
      add_launches(*job, scene, scene.parts.front(), "after", "after");
      for (std::size_t l = own.back(); l < job->launches.size(); ++l)
        job->launches[l].after = {static_cast<std::int32_t>(own.back()) - 1};
    }
    const machine::SharedMachine ranks = machine::select_ranks(machine_, scene.ranks);
    const program::Bound bound = program::link(std::move(job), ranks);
    sim::Result result = laboratory_.simulate(bound, {.engine = engine, .launch = options_.launch});
    ++simulations_;
    std::vector<sim::LaunchResult> launches;
    for (const std::size_t l : own) launches.push_back(result.launches[l]);
    result.launches = std::move(launches);
    return result;
  }

  /// One for each group of the part; kernels of the same program are one launch of all ranks.
  void add_launches(program::Job& job, const Scene& scene, const Part& part,
                    const std::string& stream, const std::string& name) {
    const std::size_t first = job.launches.size();
    for (std::size_t g = 0; g < part.groups.size(); ++g) {
      const LaunchPrograms::Made made = program_of(part, real(scene, part.groups[g]));
      if (is_kernel(part.kind.kind) && job.launches.size() > first &&
          job.launches.back().program == made.program) {
        job.launches.back().ranks.push_back(part.groups[g].front());
        continue;
      }
      job.launches.push_back({.name = name + " " + std::to_string(g),
                              .program = made.program,
                              .options = made.options,
                              .ranks = part.groups[g],
                              .alone = is_kernel(part.kind.kind),
                              .stream = stream,
                              .communicator = "calls"});
    }
  }

  Level level_of(const LaunchKind& kind) const {
    if (kind.kind != NodeKind::collective) return options_.level;
    const auto known = options_.detail.find(workload_.collectives[index(kind.work)].kind);
    return known == options_.detail.end() ? options_.level : known->second;
  }

  /// Of groups that are not alike on the machine the slowest counts: all of them go on together.
  const Alone& alone(const LaunchKind& kind) {
    const auto quick = quick_.find(kind);
    if (quick != quick_.end()) return quick->second;
    Alone worst;
    for (const int rank : stand_ins(kind)) {
      const Alone one = known_time_of(scene_of(rank, {kind}, false));
      if (one.next > worst.next) worst = one;
    }
    return quick_[kind] = worst;
  }

  /// A rank for each way in which groups of the place are connected, or each model of GPU.
  std::vector<int> stand_ins(const LaunchKind& kind) {
    std::set<std::uint64_t> seen;
    std::vector<int> ranks;
    for (const auto& group : places_.place(kind.place).groups) {
      const std::uint64_t ways =
          group.size() > 1 ? programs_.ways_between(group)
                           : static_cast<std::uint64_t>(machine_->gpu_models[index(group.front())]);
      if (seen.insert(ways).second) ranks.push_back(group.front());
    }
    return ranks;
  }

  /// Long calls in small groups inside a node go on as they began: two sizes tell of all. (In large
  /// groups the pieces of a ring are still short at these sizes.)
  static constexpr std::int64_t kLongCall = 32 << 20;
  bool is_long(const Scene& scene) const {
    const Part& part = scene.parts.front();
    if (is_kernel(part.kind.kind) || level_of(part.kind) != Level::fluid) return false;
    const auto& group = part.groups.front();
    const auto rank = [&](int position) { return scene.ranks[index(position)]; };
    return part.bytes > 2 * kLongCall && group.size() <= 8 &&
           machine_->reach(rank(group.front()), rank(group.back())) == machine::Reach::load_store;
  }

  Alone time_of_long(Scene scene) {
    const std::int64_t bytes = scene.parts.front().bytes;
    scene.parts.front().bytes = kLongCall / 2;
    const Alone half = known_time_of(scene);
    scene.parts.front().bytes = kLongCall;
    const Alone whole = known_time_of(scene);
    const auto longer = [&](Time from, Time to) {
      const auto more = static_cast<__int128>((to - from).fs) * (bytes - kLongCall);
      return to + Time{static_cast<std::int64_t>(more / (kLongCall / 2))};
    };
    std::vector<Traffic> traffic = whole.traffic;
    for (Traffic& one : traffic)
      one.wire_bytes *= static_cast<double>(bytes) / static_cast<double>(kLongCall);
    return {longer(half.first, whole.first), longer(half.next, whole.next),
            longer(half.after, whole.after), whole.latency, std::move(traffic)};
  }

  Alone known_time_of(const Scene& scene) {
    const SceneKey key = key_of(scene);
    const auto known = alone_.find(key);
    if (known != alone_.end()) return known->second;
    const Alone found = time_of(scene);
    return alone_[key] = found;
  }

  /// A call of very many ranks and nothing else. As a program and not as a job the engines fold it:
  /// an all-reduce of 1,024 ranks takes a second, and as a job, where all pairs of ranks count,
  /// hours.
  static constexpr std::size_t kManyRanks = 64;
  static bool is_large(const Scene& scene) {
    const Part& part = scene.parts.front();
    return scene.parts.size() == 1 && scene.ranks.size() > kManyRanks && part.groups.size() == 1 &&
           part.groups.front().size() == scene.ranks.size();
  }

  Alone time_of_large(const Scene& scene, sim::Engine engine) {
    if (options_.monitor != nullptr) options_.monitor->leave_if_stopping();
    if (options_.on_simulation) options_.on_simulation(text_of(scene));
    const LaunchPrograms::Made made =
        program_of(scene.parts.front(), real(scene, scene.parts.front().groups.front()));
    const program::Bound bound =
        program::bind(made.program, machine::select_ranks(machine_, scene.ranks), made.options);
    sim::Options options{.engine = engine, .launch = options_.launch};
    const sim::Result alone = laboratory_.simulate(bound, options);
    const Time cold = alone.time;
    options.warmup = options.iterations = 1;
    const Time next = laboratory_.simulate(bound, options).time;
    simulations_ += 2;
    const machine::GpuModel& model = machine_->model(scene.ranks.front());
    const Time latency = options_.launch == sim::Launch::graph ? model.launch_graph_latency
                                                               : model.launch_stream_latency;
    const Time first = cold > latency ? cold - latency : Time{1};
    return {.first = first,
            .next = next,
            .after = first,
            .latency = latency,
            .traffic = traffic_of(alone, scene.ranks.size(), 1)};
  }

  Alone time_of(const Scene& scene) {
    if (is_long(scene)) return time_of_long(scene);
    if (is_large(scene) && level_of(scene.parts.front().kind) != Level::estimate)
      return time_of_large(scene, engine_of(level_of(scene.parts.front().kind)));
    Alone found;
    const Level level = level_of(scene.parts.front().kind);
    if (level == Level::estimate) {
      found = estimate(scene);
    } else {
      const sim::Result result = simulate(scene, 2, engine_of(level), true);
      const sim::LaunchResult& first = result.launches[0];
      const sim::LaunchResult& second = result.launches[1];
      found.after = result.launches[3].end - result.launches[2].end;
      found.next = second.end - first.end;
      found.first = first.end - first.begin;
      found.latency = first.begin;
      if (!is_kernel(scene.parts.front().kind.kind))
        found.traffic =
            traffic_of(result, scene.ranks.size(), 3);  // twice, and once after a kernel
    }
    found.next = std::max(found.next, Time{1});
    found.first = std::max(found.first, Time{1});
    found.after = std::max(found.after, Time{1});
    return found;
  }

  /// Products by their model, everything else by the bound that no engine is below.
  Alone estimate(const Scene& scene) {
    const Part& part = scene.parts.front();
    const std::vector<int> ranks = real(scene, part.groups.front());
    Time time{};
    if (is_kernel(part.kind.kind) && !options_.roofline &&
        workload_.computes[index(part.kind.work)].kind == Compute::Kind::product) {
      time = machine::estimate_gemm(machine_->model(ranks.front()),
                                    workload_.computes[index(part.kind.work)].product)
                 .time;
    } else {
      const LaunchPrograms::Made made = program_of(part, ranks);
      const program::Bound bound =
          program::bind(*made.program, machine::select_ranks(machine_, ranks), made.options);
      time = sim::lower_bound(bound, {.launch = options_.launch}).time();
    }
    return {.first = time, .next = time, .after = time, .latency = {}, .traffic = {}};
  }

  // --- Situations.

  /// Of two launches they are simulated; of more each has the speed that all others leave it, one
  /// by one. Messages between two ranks disturb nobody.
  std::vector<std::int64_t> speeds(std::int32_t rank_class, const std::vector<LaunchKind>& kinds) {
    std::vector<std::int64_t> result(kinds.size(), kFullSpeed);
    if (!options_.contention) return result;
    for (std::size_t k = 0; k < kinds.size(); ++k) {
      for (std::size_t other = k + 1; other < kinds.size(); ++other) {
        if (kinds[k].kind == NodeKind::send || kinds[other].kind == NodeKind::send) continue;
        const auto [one, two] = speeds_of_pair(rank_class, kinds[k], kinds[other]);
        result[k] = result[k] * one / kFullSpeed;
        result[other] = result[other] * two / kFullSpeed;
      }
    }
    for (std::int64_t& speed : result) speed = std::max<std::int64_t>(speed, kFullSpeed / 50);
    return result;
  }

  std::pair<std::int64_t, std::int64_t> speeds_of_pair(std::int32_t rank_class,
                                                       const LaunchKind& one,
                                                       const LaunchKind& two) {
    const int rank = workload_.classes[index(rank_class)].ranks.front();
    const Scene scene = scene_of(rank, {one, two}, true);
    const SceneKey key = key_of(scene);
    const auto known = speeds_.find(key);
    if (known != speeds_.end()) return known->second;
    const sim::Result run = simulate(scene, 1, sim::Engine::fluid);
    const auto length = [&](std::size_t k) {
      return (run.launches[k].end - run.launches[k].begin).fs;
    };
    // Both begin at once. Until the first has ended both had their speed; the second does the rest
    // alone.
    const std::int64_t together = std::max<std::int64_t>(1, std::min(length(0), length(1)));
    const auto speed = [&](std::size_t k, const LaunchKind& kind) {
      const std::int64_t done = alone_in_situation(rank, kind).fs - (length(k) - together);
      // What disturbs another one more is not known without its phase.
      return static_cast<std::int64_t>(std::clamp<__int128>(
          static_cast<__int128>(done) * kFullSpeed / together, kFullSpeed / 50, kFullSpeed));
    };
    return speeds_[key] = {speed(0, one), speed(1, two)};
  }

  /// From its begin to its end, where nothing was before it: as a situation's launches are.
  Time alone_in_situation(int rank, const LaunchKind& kind) {
    const Scene scene = scene_of(rank, {kind}, true);
    const SceneKey key = key_of(scene);
    if (level_of(kind) == Level::fluid) {
      const auto known = alone_.find(key);
      if (known != alone_.end()) return known->second.first;
    }
    Time& known = situation_[key];
    if (known.fs == 0) {
      const sim::Result run = simulate(scene, 1, sim::Engine::fluid);
      known = run.launches.front().end - run.launches.front().begin;
    }
    return known;
  }

  const Workload& workload_;
  const Places& places_;
  machine::SharedMachine machine_;
  study::Laboratory& laboratory_;
  CostOptions options_;
  LaunchPrograms programs_;
  std::map<std::pair<std::int32_t, int>, std::vector<std::size_t>> groups_;  ///< place and rank
  std::map<LaunchKind, Alone> quick_;
  std::map<SceneKey, Alone> alone_;
  std::map<SceneKey, std::pair<std::int64_t, std::int64_t>> speeds_;
  std::map<SceneKey, Time> situation_;
  std::map<std::tuple<Collective, DataType, std::int64_t>, std::int64_t> numbers_;
  std::int64_t simulations_ = 0;
};

SimulatedCosts::SimulatedCosts(const Workload& workload, const Places& places,
                               machine::SharedMachine machine, study::Laboratory& laboratory,
                               CostOptions options)
    : self_(std::make_unique<Implementation>(workload, places, std::move(machine), laboratory,
                                             std::move(options))) {}
SimulatedCosts::~SimulatedCosts() = default;

Time SimulatedCosts::alone(const LaunchKind& kind, Follows follows) {
  const Alone& alone = self_->alone(kind);
  if (follows == Follows::nothing) return alone.first;
  return follows == Follows::own_stream ? alone.next : alone.after;
}
Time SimulatedCosts::latency(const LaunchKind& kind) {
  return self_->alone(kind).latency;
}
std::vector<std::int64_t> SimulatedCosts::speeds(std::int32_t rank_class,
                                                 const std::vector<LaunchKind>& together) {
  return self_->speeds(rank_class, together);
}
const std::vector<Traffic>& SimulatedCosts::traffic(const LaunchKind& kind) {
  return self_->alone(kind).traffic;
}
std::int64_t SimulatedCosts::simulations() const {
  return self_->simulations_;
}

}  // namespace hemiola::workload
