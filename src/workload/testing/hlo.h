// For tests of HLO: the modules of tests/hlo, small ones as text, and what Failures say.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/diagnostics.h"
#include "core/text.h"
#include "workload/hlo/module.h"
#include "workload/hlo/reader.h"

namespace hemiola::workload::test {

inline std::string hlo_folder() {
  return std::string(HEMIOLA_SOURCE_DIR) + "/tests/hlo/";
}
inline std::string hlo_text(const std::string& name) {
  return read_file(hlo_folder() + name + ".txt");
}
inline hlo::Module hlo_module(const std::string& name) {
  return hlo::parse(name + ".txt", hlo_text(name));
}
inline Workload hlo_workload(const std::string& name, bool lenient = false) {
  return read_hlo({.lenient = lenient}, name + ".txt", hlo_text(name));
}

/// All that XLA dumped, and those written by hand.
inline const std::vector<std::string> kDumpedModules{
    "mlp_tensor_parallel", "mlp_sequence_parallel", "train_2d", "fsdp",       "scan_layers",
    "moe_dispatch",        "heads_to_rows",         "pipeline", "convolution"};
inline const std::vector<std::string> kGpuModules{"gpu_layer", "gpu_loop"};

/// A module of four partitions whose entry has these lines.
inline std::string small_hlo(const std::string& entry, const std::string& before = {}) {
  return "HloModule small, is_scheduled=true, num_partitions=4\n\n" + before +
         "\nENTRY %main (p: f32[8,16]) -> f32[8,16] {\n  %p = f32[8,16]{1,0} parameter(0)\n" +
         entry + "}\n";
}

/// What the Failure says.
inline std::string hlo_failure(const std::function<void()>& run,
                               ExitCode code = ExitCode::bad_input) {
  try {
    run();
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), code);
    return failure.what();
  }
  return "no failure";
}

inline const hlo::Instruction& hlo_instruction(const hlo::Module& module, std::string_view name) {
  for (const hlo::Computation& computation : module.computations) {
    for (const hlo::Instruction& one : computation.instructions)
      if (one.name == name) return one;
  }
  throw std::runtime_error("no such instruction");
}

}  // namespace hemiola::workload::test
