#include "compile/fuse/tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "compile/fuse/fusion.h"
#include "plan/area.h"
#include "plan/launches.h"
#include "plan/tiles.h"

namespace hemiola::compile {
namespace {

constexpr std::int64_t kMostTasks = 1'000'000;
constexpr const char* kNeedsKernel =
    "compile it with a kernel, or take a plan whose products wait in front: 'hemiola explore "
    "--bench DIR' compiles the fastest of them";

class TaskMaker {
 public:
  TaskMaker(const plan::Plan& plan, const std::string& file, const Fusions* fusions)
      : plan_(plan), file_(file), fusions_(fusions) {}

  std::vector<RankTasks> make() {
    check_size();
    for (int rank = 0; rank < plan_.ranks; ++rank) all_.push_back(without_order(rank));
    for (int rank = 0; rank < plan_.ranks; ++rank) add_order(rank);
    return std::move(all_);
  }

 private:
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw Failure(what, {.file = file_}, hint);
  }

  void check_size() const {
    std::int64_t tasks = plan::count_transfers(plan_);
    for (int rank = 0; rank < plan_.ranks; ++rank) tasks += std::ssize(plan_.code(rank).computes);
    if (tasks > kMostTasks)
      refuse(fmt::format("has {} transfers and launches over all ranks, more than {}", tasks,
                         kMostTasks),
             "take fewer ranks, or chunks that are larger");
  }

  void check_compute(const plan::Compute& compute) const {
    if (compute.kernel != "gemm")
      refuse(fmt::format("compute '{}' runs kernel '{}', which PyTorch has no call for",
                         compute.name, compute.kernel),
             "products ('gemm') are what compiles without a kernel");
    if (compute.waits == plan::Waits::tiles)
      refuse(fmt::format("compute '{}' waits for its data inside the kernel, tile by tile, which "
                         "needs a kernel",
                         compute.name),
             kNeedsKernel);
  }

  RankTasks without_order(int rank) const {
    const plan::Code& code = plan_.code(rank);
    RankTasks tasks;
    tasks.copies = static_cast<std::int32_t>(code.streams.size());
    for (const plan::Stream& stream : code.streams) {
      std::vector<Task> actor;
      plan::for_each_transfer(stream, rank, [&](const plan::Transfer& transfer, const Indices& at) {
        actor.push_back({.transfer = &transfer, .at = at});
      });
      tasks.actors.push_back(std::move(actor));
    }
    if (fusions_ != nullptr) {
      add_kernels(rank, tasks);
      return tasks;
    }
    for (const plan::Compute& compute : code.computes) check_compute(compute);
    const plan::LaunchOrder order(code);
    tasks.launches = order.sorted();
    tasks.places_of_launches.resize(code.computes.size());
    for (const std::vector<std::int32_t>& stream : order.streams()) {
      const auto actor = static_cast<std::int32_t>(tasks.actors.size());
      tasks.actors.emplace_back();
      for (const std::int32_t compute : stream) {
        tasks.places_of_launches[static_cast<std::size_t>(compute)] = {
            rank, actor, std::ssize(tasks.actors.back())};
        tasks.actors.back().push_back({.compute = compute});
      }
    }
    return tasks;
  }

  /// A launch for each grid. In front of it it waits for the one before, and for what needs room.
  void add_kernels(int rank, RankTasks& tasks) const {
    std::vector<Task> launches;
    for (const Fusion& fusion : *fusions_) {
      Task kernel{.compute = fusion.compute};
      const FusedRank& of_rank = fusion.ranks[static_cast<std::size_t>(rank)];
      kernel.after = of_rank.in_front;
      for (const FusedWave& wave : of_rank.waves)
        kernel.inside.insert(kernel.inside.end(), wave.needs.begin(), wave.needs.end());
      for (const FusedPiece& piece : of_rank.pieces)
        kernel.inside.insert(kernel.inside.end(), piece.needs.begin(), piece.needs.end());
      std::ranges::sort(kernel.inside);
      kernel.inside.erase(std::unique(kernel.inside.begin(), kernel.inside.end()),
                          kernel.inside.end());
      tasks.launches.push_back(fusion.compute);
      tasks.places_of_launches.push_back({rank, tasks.copies, std::ssize(launches)});
      launches.push_back(std::move(kernel));
      for (const auto& [transfer, parts] : fusion.part_waits) {
        if (transfer.rank != rank) continue;
        std::vector<PartWait>& all = tasks
                                         .actors[static_cast<std::size_t>(transfer.actor)]
                                                [static_cast<std::size_t>(transfer.position)]
                                         .parts;
        all.insert(all.end(), parts.begin(), parts.end());
      }
    }
    tasks.actors.push_back(std::move(launches));
  }

  void add_order(int rank) {
    for (std::vector<Task>& actor : all_[static_cast<std::size_t>(rank)].actors) {
      for (Task& task : actor) {
        const auto& after =
            task.transfer != nullptr
                ? task.transfer->after
                : plan_.code(rank).computes[static_cast<std::size_t>(task.compute)].after;
        Indices at = task.at;
        at.rank = rank;
        for (const plan::Dependency& dependency : after) add_points(task, dependency, at);
        // From the own rank backwards, so that ranks that do the same list it alike.
        std::ranges::sort(task.after, [&](const Point& a, const Point& b) {
          return std::tuple(distance(rank, a.rank), a) < std::tuple(distance(rank, b.rank), b);
        });
        task.after.erase(std::unique(task.after.begin(), task.after.end()), task.after.end());
      }
    }
  }

  int distance(int own, int other) const { return (own - other + plan_.ranks) % plan_.ranks; }

  void add_points(Task& task, const plan::Dependency& dependency, const Indices& at) const {
    const auto rank = static_cast<int>(dependency.rank(at));
    const std::vector<Point>& launches = all_[static_cast<std::size_t>(rank)].places_of_launches;
    if (fusions_ != nullptr && !dependency.on_transfer()) return;  // a part of the kernel
    if (dependency.on_transfer()) {
      task.after.push_back({rank, dependency.stream, dependency.transfer(at)});
    } else if (dependency.compute) {
      task.after.push_back(launches[static_cast<std::size_t>((*dependency.compute)(at))]);
    } else {
      const plan::Area area = plan::evaluate(*dependency.computed, at);
      const std::vector<plan::Compute>& computes = plan_.code(rank).computes;
      for (std::size_t i = 0; i < computes.size(); ++i) {
        for (const plan::ComputeOperand& operand : computes[i].operands)
          if (plan::makes(operand.use) &&
              plan::overlap(plan::operand_area(plan_, operand, plan::whole_box(computes[i]), rank),
                            area))
            task.after.push_back(launches[i]);
      }
    }
  }

  const plan::Plan& plan_;
  const std::string& file_;
  const Fusions* fusions_;
  std::vector<RankTasks> all_;
};

}  // namespace

std::vector<RankTasks> tasks_of(const plan::Plan& plan, const std::string& file,
                                const Fusions* fusions) {
  return TaskMaker(plan, file, fusions).make();
}

}  // namespace hemiola::compile
