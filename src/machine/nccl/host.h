// What a host's PCIe and socket links carry, by what an NCCL topology says of them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/diagnostics.h"
#include "core/units.h"

namespace hemiola::machine {

struct PcieLink {
  std::string name;  ///< of the link class: "pcie-gen4-x16"
  Rate rate;         ///< per direction, after the line code
  bool assumed;      ///< speed or width is missing in the file
};
/// "16.0 GT/s PCIe" of "16" lanes. An empty speed, and a width that is empty or 0, mean what NCCL
/// takes them for: 8 GT/s, 16 lanes. Failure at `where`.
PcieLink pcie_link_of(const std::string& speed, const std::string& width,
                      const SourceLocation& where);

/// NCCL takes all CPUs of a host to be joined, at a rate by vendor and model
/// (ncclTopoGetInterCpuBw).
std::int64_t socket_megabytes(std::string_view arch, std::string_view vendor, std::int64_t model);

}  // namespace hemiola::machine
