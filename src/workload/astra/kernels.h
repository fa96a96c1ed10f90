// What a kernel takes in the ASTRA-sim model: a roofline of flop and bytes.
#pragma once

#include <cstdint>

#include "workload/astra/configuration.h"
#include "workload/workload.h"

namespace hemiola::workload::astra {

/// Rounded down. `bytes` is not 0. Without flop it is the time of the bytes, where ASTRA-sim
/// divides 0 by 0.
std::int64_t roofline_ns(const Amounts& work, const AstraSystem& system);

}  // namespace hemiola::workload::astra
