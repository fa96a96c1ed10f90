#include "workload/astra/kernels.h"

#include <algorithm>

namespace hemiola::workload::astra {

std::int64_t roofline_ns(const Amounts& work, const AstraSystem& system) {
  const double bandwidth = system.local_memory_bandwidth * 1e9, peak = system.peak_tflops * 1e12;
  const auto flop = static_cast<double>(work.flop), bytes = static_cast<double>(work.bytes);
  if (work.flop == 0) return static_cast<std::int64_t>(bytes / bandwidth * 1e9);
  const double rate = std::min(bandwidth * (flop / bytes), peak);
  return static_cast<std::int64_t>(flop / rate * 1e9);
}

}  // namespace hemiola::workload::astra
