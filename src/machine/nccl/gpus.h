// What NCCL's and RCCL's names of GPU architectures mean.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hemiola::machine {

/// What a GPU's architecture says. Link rates are raw, in MB/s per link and direction; NCCL's own
/// constants (src/graph/topo.h) are what its kernels reach, not what the wire carries.
struct Generation {
  std::string_view architecture;  ///< "sm_90", "gfx942"
  std::string_view model;
  bool exact;  ///< the model is this device, not its nearest relative
  std::int64_t link_megabytes;
};

/// "sm_90" or "gfx942" from the attributes of <gpu>, else from the PCI ids; "" where nothing says
/// it.
std::string architecture_of(const std::string& sm, const std::string& gcn,
                            std::string_view pci_vendor, std::string_view pci_device);

/// The generation itself, else the newest of its vendor that is not newer, else the vendor's
/// oldest; null for an unknown vendor.
const Generation* nearest_generation(std::string_view architecture);

}  // namespace hemiola::machine
