// Simulations of scenes. Private to the costs.
#pragma once

#include <string>
#include <vector>

#include "core/time.h"
#include "machine/machine.h"
#include "program/jobs/job.h"
#include "study/laboratory/experiment.h"
#include "workload/costs/launch_job.h"
#include "workload/costs/scene.h"
#include "workload/costs/simulated_costs.h"
#include "workload/costs/traffic.h"

namespace hemiola::workload {

/// What simulating a scene says.
struct SceneTimes {
  // Of a launch alone.
  Time first{};    ///< from the beginning of its stream to its end, where nothing was before
  Time next{};     ///< behind another one
  Time after{};    ///< from the end of what it waits for on another stream
  Time latency{};  ///< of the first
  std::vector<Traffic> traffic{};
  /// Of launches that begin at once: from the begin to the end of each part.
  std::vector<Time> lengths{};
  int simulations = 0;  ///< that were made for this
};

/// As a text from which the same times come back, for other processes.
std::string text_of(const SceneTimes& times);
/// Failure for a text that is none of these.
SceneTimes scene_times_of(const std::string& text);

/// All that is given outlives this. `touched`: by all launches of the iteration
/// (cache_footprint.h).
class SceneTimer {
 public:
  SceneTimer(const Workload& workload, machine::SharedMachine machine,
             study::Laboratory& laboratory, const CostOptions& options, LaunchPrograms& programs,
             const Scenes& scenes, std::int64_t touched)
      : workload_(workload),
        machine_(std::move(machine)),
        laboratory_(laboratory),
        options_(options),
        programs_(programs),
        scenes_(scenes),
        touched_(touched) {}

  /// Of a scene of one part.
  SceneTimes alone(const Scene& scene, Level level);
  /// Of parts that begin at once, by `fluid`.
  SceneTimes at_once(const Scene& scene);

 private:
  LaunchPrograms::Made program_of(const ScenePart& part, const std::vector<int>& ranks);
  void begin(const Scene& scene);
  sim::Result simulate(const Scene& scene, int times, sim::Engine engine, bool after);
  void add_launches(program::Job& job, const Scene& scene, const ScenePart& part,
                    const std::string& stream, const std::string& name);
  SceneTimes large(const Scene& scene, sim::Engine engine);
  SceneTimes estimate(const Scene& scene);

  const Workload& workload_;
  machine::SharedMachine machine_;
  study::Laboratory& laboratory_;
  const CostOptions& options_;
  LaunchPrograms& programs_;
  const Scenes& scenes_;
  std::int64_t touched_;
};

}  // namespace hemiola::workload
