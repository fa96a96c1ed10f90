// What each rank of a plan does, with numbers in it: the tasks that become calls of PyTorch.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/plan.h"

namespace hemiola::compile {

struct Fusion;

/// Where a task stands. An *actor* does its tasks in order: first the streams of transfers of the
/// rank's code by number, then its streams of launches.
struct Point {
  int rank = 0;
  std::int32_t actor = 0;
  std::int64_t position = 0;
  auto operator<=>(const Point&) const = default;
};

/// visit(transfer, at, where it stands) of all transfers of a rank, in the order of their streams.
template <class Visit>
void for_each_transfer(const plan::Plan& plan, int rank, const Visit& visit) {
  const std::vector<plan::Stream>& streams = plan.code(rank).streams;
  for (Point point{.rank = rank}; point.actor < std::ssize(streams); ++point.actor) {
    point.position = 0;
    plan::for_each_transfer(streams[static_cast<std::size_t>(point.actor)], rank,
                            [&](const plan::Transfer& transfer, const Indices& at) {
                              visit(transfer, at, point);
                              ++point.position;
                            });
  }
}

/// A part of the tiles of a rank's kernel (fusion.h).
struct PartWait {
  int rank = 0;
  std::int32_t part = 0;  ///< parts of all grids of a rank are numbered together
  std::int32_t grid = 0;
  auto operator<=>(const PartWait&) const = default;
};

/// A transfer with the counters of its loops, or a launch.
struct Task {
  const plan::Transfer* transfer = nullptr;
  Indices at{};
  std::int32_t compute = -1;      ///< in the code of the rank; -1: a transfer
  std::vector<Point> after;       ///< beside the order of the actor; by rank, the own one first and
                                  ///< then backwards, by actor and by position, each once
  std::vector<Point> inside;      ///< of a kernel: transfers that its tiles wait for
  std::vector<PartWait> parts{};  ///< of a transfer: parts of kernels that it waits for
};

struct RankTasks {
  std::vector<std::vector<Task>> actors;
  std::int32_t copies = 0;                ///< so many of them are streams of transfers
  std::vector<std::int32_t> launches;     ///< computes, each after those before it
  std::vector<Point> places_of_launches;  ///< by compute
  const Task& at(const Point& point) const {
    return actors[static_cast<std::size_t>(point.actor)][static_cast<std::size_t>(point.position)];
  }
};

/// By rank. The plan outlives it. With `fusions` its computes are grids of the fused kernel, a
/// launch each, one after the other. Failure
/// at `file` for what PyTorch has no counterpart of without a kernel: computes that wait inside
/// their kernel or are not products; and for more than a million tasks.
std::vector<RankTasks> tasks_of(const plan::Plan& plan, const std::string& file,
                                const std::vector<Fusion>* fusions = nullptr);

}  // namespace hemiola::compile
