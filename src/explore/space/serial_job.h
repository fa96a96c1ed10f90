// What a library does, as job files: its collectives and its products (docs/jobs.md).
#pragma once

#include <string>
#include <string_view>

#include "explore/space/operator.h"
#include "machine/devices/gemm_model.h"
#include "sim/simulate.h"
#include "study/laboratory/experiment.h"

namespace hemiola::explore {

// Lines of a job file, one for each launch.
std::string collective_launch(std::string_view name, Collective collective, Bytes size);
std::string product_launch(std::string_view name, const machine::GemmShape& shape);
/// A job of such lines, one after the other on one stream.
std::string job_of(std::string_view name, DataType type, const std::string& launches);

/// A job's text, and what it is called in messages; `alone`: each launch is timed alone, too.
struct JobText {
  std::string name, text;
  bool alone = false;
};
/// Simulated, unchecked, on one thread; of the options launch, warmup and iterations are asked.
sim::Result run_text(study::Laboratory& laboratory, const machine::SharedMachine& machine,
                     const JobText& job, const sim::Options& options, sim::Engine engine,
                     const study::Watch& watch);

/// The library's collective alone.
std::string collective_job(Collective collective, Bytes size, DataType type);
/// The library's product alone, on every GPU.
std::string product_job(const machine::GemmShape& shape);
/// Both, one after the other, in the order of the operator.
std::string serial_job(const Operator& op);

}  // namespace hemiola::explore
