// What the values of include/hemiola point to: types of the inner layers.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hemiola/experiment.h"
#include "hemiola/job.h"
#include "hemiola/machine.h"
#include "hemiola/plan.h"
#include "hemiola/program.h"
#include "machine/machine.h"
#include "plan/plan.h"
#include "program/bind/bound.h"
#include "sim/result/options.h"
#include "sim/result/result.h"

namespace hemiola {

struct Machine::Implementation {
  machine::SharedMachine machine;
  Settings settings;  ///< all that was set
  std::vector<Diagnostic> warnings;
};

struct Plan::Implementation {
  std::shared_ptr<const plan::Plan> plan;
};

struct Job::Implementation {
  std::string file;
  std::string text;
};

struct Program::Implementation {
  std::string name;
  Settings parameters;
  /// Built-ins by name (several: the fastest is taken), or what was read from a file or given.
  std::vector<std::string> built_ins{};
  std::shared_ptr<const plan::Plan> plan{};
  std::shared_ptr<const program::Program> program{};
  std::optional<Job> job{};
};

struct Outcome::Implementation {
  program::Bound bound;
  sim::Options options;
  sim::Result result;
};

}  // namespace hemiola
