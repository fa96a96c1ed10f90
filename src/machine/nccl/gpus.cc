#include "machine/nccl/gpus.h"

#include <array>

namespace hemiola::machine {
namespace {

// Sources: NVIDIA data sheets (V100 300 GB/s over 6 links, A100 600 over 12, H100 900 over 18, B200
// 1800 over 18, both ways); AMD data sheets (MI50 and MI100 92 GB/s per link both ways, MI200 100,
// MI300X 128, MI355X 153.6).
constexpr std::array kGenerations{
    Generation{"sm_60", "v100", false, 20'000},    Generation{"sm_70", "v100", true, 25'000},
    Generation{"sm_80", "a100", true, 25'000},     Generation{"sm_86", "a100", false, 14'063},
    Generation{"sm_90", "h100", true, 25'000},     Generation{"sm_100", "b200", true, 50'000},
    Generation{"gfx906", "mi300x", false, 46'000}, Generation{"gfx908", "mi300x", false, 46'000},
    Generation{"gfx90a", "mi300x", false, 50'000}, Generation{"gfx942", "mi300x", true, 64'000},
    Generation{"gfx950", "mi355x", true, 76'800},
};

/// PCI device ids of the GPUs in files without <gpu> elements (the PCI ID repository).
struct PciDevice {
  std::string_view vendor, device_prefix, architecture;
};
constexpr std::array kPciDevices{
    PciDevice{"0x10de", "0x1db", "sm_70"},  PciDevice{"0x10de", "0x20b", "sm_80"},
    PciDevice{"0x10de", "0x233", "sm_90"},  PciDevice{"0x10de", "0x290", "sm_100"},
    PciDevice{"0x1002", "0x74a", "gfx942"}, PciDevice{"0x1002", "0x74b", "gfx942"},
    PciDevice{"0x1002", "0x75a", "gfx950"},
};

/// Architectures of one vendor in order of age: a longer number is newer.
bool is_at_most(std::string_view known, std::string_view architecture) {
  return known.size() < architecture.size() ||
         (known.size() == architecture.size() && known <= architecture);
}

}  // namespace

std::string architecture_of(const std::string& sm, const std::string& gcn,
                            std::string_view pci_vendor, std::string_view pci_device) {
  if (!gcn.empty()) {
    std::string name = gcn.starts_with("gfx") ? gcn.substr(0, gcn.find(':')) : "gfx" + gcn;
    // RCCL writes 910 for gfx90a, and 940 and 941 are steppings of the MI300 before gfx942.
    if (name == "gfx910") return "gfx90a";
    if (name == "gfx940" || name == "gfx941") return "gfx942";
    return name;
  }
  if (!sm.empty()) return "sm_" + sm;
  for (const PciDevice& known : kPciDevices)
    if (known.vendor == pci_vendor && pci_device.starts_with(known.device_prefix))
      return std::string(known.architecture);
  return {};
}

const Generation* nearest_generation(std::string_view architecture) {
  const Generation* nearest = nullptr;
  for (const Generation& known : kGenerations) {
    if (known.architecture == architecture) return &known;
    if (known.architecture.substr(0, 3) != architecture.substr(0, 3)) continue;
    if (!nearest || is_at_most(known.architecture, architecture)) nearest = &known;
  }
  return nearest;
}

}  // namespace hemiola::machine
