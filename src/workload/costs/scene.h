// What is simulated for the costs: launches on some ranks that stand for all. Private to the costs.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "workload/costs/launch_job.h"
#include "workload/scheduler/costs.h"
#include "workload/scheduler/places.h"
#include "workload/workload.h"

namespace hemiola::workload {

/// A launch with the groups that are simulated, as positions in Scene::ranks.
struct ScenePart {
  LaunchKind kind;
  std::int64_t bytes = 0;  ///< of a collective or message, as it is simulated
  /// A kernel that is known by its bytes, in a situation: one stands for all.
  bool is_any_kernel = false;
  std::vector<std::vector<int>> groups;
};

/// The ranks that are simulated for the sake of one, and the launches on them.
struct Scene {
  std::vector<int> ranks;  ///< of the machine, ascending
  std::vector<ScenePart> parts;

  /// Ranks of the machine.
  std::vector<int> real(const std::vector<int>& group) const;
};

/// All that is given outlives this.
class Scenes {
 public:
  Scenes(const Workload& workload, const Places& places, const machine::Machine& machine,
         LaunchPrograms& programs)
      : workload_(workload), places_(places), machine_(machine), programs_(programs) {}

  /// A launch alone, as `rank` takes part in it.
  Scene alone(int rank, const LaunchKind& kind) { return make(rank, {kind}, false); }
  /// Launches without their phases: calls that are long, and those that are about as long as each
  /// other, are one, and so are kernels that are known by their bytes.
  Scene situation(int rank, const std::vector<LaunchKind>& kinds) {
    return make(rank, kinds, true);
  }

  /// A rank for each way in which groups of the launch's place are connected, or each model of GPU.
  std::vector<int> representative_ranks(const LaunchKind& kind);

  /// Equal for scenes that take the same time; of what they are made, not of how a workload counts
  /// it.
  std::string key_of(const Scene& scene);
  /// For humans: "product 8192x4096x1024 beside all-reduce of 64 MiB on 8 GPUs"
  std::string text_of(const Scene& scene) const;

 private:
  Scene make(int rank, const std::vector<LaunchKind>& kinds, bool is_situation);
  const std::vector<std::size_t>& groups_of(std::int32_t place, int rank);

  const Workload& workload_;
  const Places& places_;
  const machine::Machine& machine_;
  LaunchPrograms& programs_;
  std::map<std::pair<std::int32_t, int>, std::vector<std::size_t>> groups_;  ///< place and rank
};

}  // namespace hemiola::workload
