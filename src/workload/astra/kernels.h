// What a kernel takes in the ASTRA-sim model: a roofline of flop and bytes.
#pragma once

#include <cstdint>

#include "workload/astra/configuration.h"
#include "workload/workload.h"

namespace hemiola::workload::astra {

struct KernelWork {
  std::int64_t flop = 0;   ///< num_ops
  std::int64_t bytes = 0;  ///< tensor_size; 0: not known, or none
};

/// What the compute says; of products and attention that do not say it, what their shape says.
KernelWork work_of(const Compute& compute);

/// Rounded down. `bytes` is not 0. Without flop it is the time of the bytes, where ASTRA-sim
/// divides 0 by 0.
std::int64_t roofline_ns(const KernelWork& work, const AstraSystem& system);

}  // namespace hemiola::workload::astra
