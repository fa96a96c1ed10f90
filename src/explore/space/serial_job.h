// What a library does, as job files: its collectives and its products (docs/jobs.md).
#pragma once

#include <string>

#include "explore/space/operator.h"
#include "machine/devices/gemm_model.h"

namespace hemiola::explore {

/// The library's collective alone.
std::string collective_job(Collective collective, Bytes size, DataType type);
/// The library's product alone, on every GPU.
std::string product_job(const machine::GemmShape& shape);
/// Both, one after the other, in the order of the operator.
std::string serial_job(const Operator& op);

}  // namespace hemiola::explore
