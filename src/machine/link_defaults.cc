#include "machine/link_defaults.h"

#include <array>
#include <cctype>
#include <stdexcept>

namespace hemiola::machine {
namespace {

constexpr LinkDefault link(std::string_view words, std::string_view name,
                           std::int64_t megabytes_per_second, bool per_gpu, std::int64_t latency_ns,
                           std::int64_t max_payload, std::int64_t header, std::string_view source) {
  const Rate bandwidth{megabytes_per_second * 1'000'000};  // 0 is ideal
  return {words,         name,     bandwidth, per_gpu, Time::from_ns(latency_ns),
          {max_payload}, {header}, source};
}
constexpr LinkDefault pcie(std::string_view words, std::string_view name,
                           std::int64_t megabytes_per_second) {
  return link(words, name, megabytes_per_second, false, 150, 256, 24, "PCI-SIG");
}

// Bandwidths are raw data-sheet rates per direction; goodput follows from the packet format. The
// first row of which a word fits is taken. Latencies are assumed, per link, propagation and serdes,
// as in data/machines; NVLink's must stay below PCIe's, or routes of as many hops would mix the
// two. PCIe: GT/s x 16 lanes x 128/130 / 8 (PCI-SIG base specifications; Gen1 and Gen2 8b/10b, Gen6
// flits of 242 in 256 B), a TLP of 256 B with a header of 24 B (4 DW header, sequence number, LCRC,
// framing). NVLink: 128 B and 16 B give the 88 % that copy engines reach (396 of 450 GB/s on an
// H200). xGMI: 64 B and 20 B give 76 %, measured 45-48 of 64 GB/s. Ethernet: RoCEv2 over a 4096 B
// MTU with 82 B of headers, preamble and gap.
constexpr std::array kDefaults{
    link("c2c", "NVLink-C2C", 450'000, true, 50, 128, 16,
         "NVIDIA Grace Hopper data sheet: 900 GB/s both ways"),
    link("nvlink nvl xpu_fabric ualink scaleup scale-up ici", "NVLink 4", 450'000, true, 64, 128,
         16, "NVIDIA H100 data sheet: 900 GB/s both ways"),
    link("xgmi", "xGMI (Infinity Fabric)", 64'000, false, 120, 64, 20,
         "AMD MI300X data sheet: 128 GB/s both ways per link"),
    pcie("gen1", "PCIe Gen1 x16", 4'000),
    pcie("gen2", "PCIe Gen2 x16", 8'000),
    pcie("gen3", "PCIe Gen3 x16", 15'754),
    pcie("gen4", "PCIe Gen4 x16", 31'508),
    pcie("gen6", "PCIe Gen6 x16", 121'000),
    pcie("pcie pci-e pci gen5", "PCIe Gen5 x16", 63'015),
    link("cpu_fabric cpu-fabric fabric infinity upi qpi", "CPU socket link", 40'000, false, 150, 64,
         16, "what NCCL takes for the newest Xeons (ERP_QPI_BW, src/graph/topo.h)"),
    link("serdes electrical internal circuitry trace", "wiring inside a device", 0, false, 5, 4096,
         82, "assumed not to limit"),
    link("", "Ethernet", 12'500, false, 500, 4096, 82, "the default of astra-sim-service"),
};

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

const LinkDefault* match(const std::string& text) {
  for (const LinkDefault& candidate : kDefaults) {
    std::string_view words = candidate.words;
    while (!words.empty()) {
      const std::size_t end = words.find(' ');
      if (text.find(words.substr(0, end)) != std::string::npos) return &candidate;
      words.remove_prefix(end == std::string_view::npos ? words.size() : end + 1);
    }
  }
  return nullptr;
}

}  // namespace

const LinkDefault& link_default(std::string_view name, std::string_view description) {
  const std::string lower_name = lower(name), lower_description = lower(description);
  const LinkDefault* by_name = match(lower_name);
  // "pcie" says less than a description such as "PCI Express PCIE_GEN4 x16".
  if (by_name && lower_name.find("pci") != std::string::npos) {
    const LinkDefault* by_both = match(lower_description);
    return by_both && by_both->name.substr(0, 4) == "PCIe" ? *by_both : *by_name;
  }
  if (by_name) return *by_name;
  const LinkDefault* by_description = match(lower_description);
  return by_description ? *by_description : kDefaults.back();
}

const LinkDefault& link_default_named(std::string_view name) {
  for (const LinkDefault& candidate : kDefaults)
    if (candidate.name == name) return candidate;
  throw std::out_of_range("no link default named " + std::string(name));
}

}  // namespace hemiola::machine
