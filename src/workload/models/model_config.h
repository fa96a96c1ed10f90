// config.json of Hugging Face's transformers, as far as a model's shape stands in it.
#pragma once

#include <string>
#include <string_view>

#include "workload/models/model.h"

namespace hemiola::workload {

/// A JSON object with `model_type` or `architectures`.
bool is_hugging_face_config(std::string_view text);

/// Names and defaults are those of src/transformers/models/*/configuration_*.py. Keys that say
/// nothing about the shape are not looked at. What a model computes differently from what is
/// generated (attention in a window, layers that predict further tokens) becomes a notice. Failure
/// as load_model().
Model parse_hugging_face_config(std::string_view text, const std::string& file);

}  // namespace hemiola::workload
