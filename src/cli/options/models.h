// Options that say a model's iteration: what `workload make` and `workload search` share.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "workload/models/generate.h"
#include "workload/models/make_options.h"

namespace hemiola::cli {

struct ModelOptions {
  std::string model;
  workload::MakeWords words;
  workload::MakeRequest request{};  ///< what neither the model nor the words say
};

void add_model_options(CLI::App& verb, ModelOptions& options);
/// Failure with the option's name for what is no value; the model is loaded.
workload::MakeRequest make_request(const ModelOptions& options);

}  // namespace hemiola::cli
