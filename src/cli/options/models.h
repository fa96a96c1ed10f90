// Options that say a model's iteration: what `workload make` and `workload search` share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "workload/models/generate.h"

namespace hemiola::cli {

struct ModelOptions {
  std::string model;
  std::string tp = "1", pp = "1", dp = "1", cp = "1", ep = "1", zero = "0", shard = "0";
  bool sequence_parallel = false;
  std::string micro_batch = "0", global_batch = "0", sequence = "0", context = "0";
  std::string recompute = "none", dtype = "bf16", phase = "train", pipeline = "1f1b";
  std::string chunks = "1", gradient_bucket, prefetch = "1", attention = "flash", host_time;
  std::string context_parallel = "gather";
  bool no_overlap = false, uneven_stages = false, unfused_softmax = false;
  std::string optimizer_bytes = "12";
};

void add_model_options(CLI::App& verb, ModelOptions& options);
/// Failure with the option's name for what is no value; the model is loaded.
workload::MakeRequest make_request(const ModelOptions& options);

}  // namespace hemiola::cli
