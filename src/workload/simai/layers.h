// Workload text of ASTRA-sim 1 and of SimAI, which grew out of it: a parallelism, a number of
// layers, a line for each layer. docs/simai.md states all fields.
//
// Sources: astra-sim/astra-sim, branch ASTRA-sim-1.0, inputs/workload/README.md and
// astra-sim/workload/Workload.cc; aliyun/SimAI,
// astra-sim-alibabacloud/astra-sim/workload/Workload.cc (initialize_workload()).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/data_type.h"
#include "core/time.h"
#include "workload/traces/assembly.h"

namespace hemiola::workload::simai {

enum class Parallelism : std::uint8_t {
  data,
  model,
  transformer,  ///< also with passes forward in the backward pass
  data_model,
  model_data,
  customized,  ///< of each layer its own
  dlrm,        ///< also the enhanced one: no layer in it waits for an input gradient
  micro,
  inference
};

enum Direction { kForward, kInputGradient, kWeightGradient, kDirections };

/// The end of a collective's name, which says in which group it is.
enum class Suffix : std::uint8_t { none, ep, dp_ep };

struct Pass {
  Time compute;
  std::optional<Collective> kind{};
  Suffix suffix = Suffix::none;
  std::int64_t bytes = 0;
};

struct Layer {
  int line = 0;
  std::string name;
  std::array<Pass, kDirections> passes;
  Time update;              ///< from the end of a collective until its result is there
  Parallelism parallelism;  ///< the text's, or with `customized` its own
  bool is_checkpoint = false;
  bool initiates = false;  ///< forward passes from the last checkpoint on, before its backward pass
};

struct LayerText {
  Parallelism parallelism = Parallelism::data;
  /// 0: the text does not say.
  std::int64_t model_parallel = 0, expert_parallel = 0, stages = 0, virtual_stages = 0,
               accumulation = 0, gpus = 0, stage_bytes = 0, last_bottom_layer = -1;
  bool is_simai = false;  ///< has fields that ASTRA-sim does not know
  std::vector<Layer> layers;
};

/// Failure with the line. Lenient: collectives that are not known are left out, as upstream does.
LayerText parse_layers(const std::string& file, std::string_view text, bool lenient, Tally& tally);

}  // namespace hemiola::workload::simai
