// Options that say a model's iteration: what `workload make` and `workload search` share.
#pragma once

#include <CLI/CLI.hpp>

#include "workload/models/make_options.h"

namespace hemiola::cli {

void add_model_options(CLI::App& verb, ModelIteration& options);
/// As workload::make_request(); Failure where no model is named.
workload::MakeRequest make_request(const ModelIteration& options);

}  // namespace hemiola::cli
