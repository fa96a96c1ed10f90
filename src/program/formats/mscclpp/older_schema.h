// MSCCL++ execution plans as they were written before August 2025.
#pragma once

#include "core/diagnostics.h"
#include "core/json.h"

namespace hemiola::program {

/// The plan `json` in today's words, if it has any of the older schema's; null otherwise. One
/// warning in `warnings` says what was converted (core/lenient.h). Thread blocks and operations
/// keep their places. Failure, with the place in the file, for what does not say what the older
/// schema needs.
///
/// Source: microsoft/mscclpp src/executor/execution_plan.cc and src/include/execution_kernel.hpp
/// before "New DSL implementation (#579)" of August 2025 (commit be6a941f). `colletive` was the
/// key until December 2024 (88d28e07), channels were called `sm` and `proxy` until January 2025
/// (3565bfdf).
nlohmann::json convert_older_schema(const nlohmann::json& json, const JsonFile& file,
                                    Diagnostics& warnings);

}  // namespace hemiola::program
