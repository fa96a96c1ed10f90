// What a library does, as job files: its collectives and its products (docs/jobs.md).
#pragma once

#include <string>
#include <string_view>

#include "explore/operator.h"
#include "machine/gemm_model.h"

namespace hemiola::explore {

// Lines of a job file, one for each launch.
std::string collective_launch(std::string_view name, Collective collective, Bytes size);
std::string product_launch(std::string_view name, const machine::GemmShape& shape);
/// A job of such lines, one after the other on one stream.
std::string job_of(std::string_view name, DataType type, const std::string& launches);

/// The library's collective alone.
std::string collective_job(Collective collective, Bytes size, DataType type);
/// The library's product alone, on every GPU.
std::string product_job(const machine::GemmShape& shape);
/// Both, one after the other, in the order of the operator.
std::string serial_job(const Operator& op);

}  // namespace hemiola::explore
