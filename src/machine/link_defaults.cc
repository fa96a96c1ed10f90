#include "machine/link_defaults.h"

#include <array>
#include <cctype>
#include <stdexcept>

namespace hemiola::machine {
namespace {

constexpr Rate megabytes(std::int64_t count) {
  return {count * 1'000'000};
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
    LinkDefault{"c2c",
                "NVLink-C2C",
                megabytes(450'000),
                true,
                Time::from_ns(50),
                {128},
                {16},
                "NVIDIA Grace Hopper data sheet: 900 GB/s both ways"},
    LinkDefault{"nvlink nvl xpu_fabric ualink scaleup scale-up ici",
                "NVLink 4",
                megabytes(450'000),
                true,
                Time::from_ns(64),
                {128},
                {16},
                "NVIDIA H100 data sheet: 900 GB/s both ways"},
    LinkDefault{"xgmi",
                "xGMI (Infinity Fabric)",
                megabytes(64'000),
                false,
                Time::from_ns(120),
                {64},
                {20},
                "AMD MI300X data sheet: 128 GB/s both ways per link"},
    LinkDefault{"gen1",
                "PCIe Gen1 x16",
                megabytes(4'000),
                false,
                Time::from_ns(150),
                {256},
                {24},
                "PCI-SIG"},
    LinkDefault{"gen2",
                "PCIe Gen2 x16",
                megabytes(8'000),
                false,
                Time::from_ns(150),
                {256},
                {24},
                "PCI-SIG"},
    LinkDefault{"gen3",
                "PCIe Gen3 x16",
                megabytes(15'754),
                false,
                Time::from_ns(150),
                {256},
                {24},
                "PCI-SIG"},
    LinkDefault{"gen4",
                "PCIe Gen4 x16",
                megabytes(31'508),
                false,
                Time::from_ns(150),
                {256},
                {24},
                "PCI-SIG"},
    LinkDefault{"gen6",
                "PCIe Gen6 x16",
                megabytes(121'000),
                false,
                Time::from_ns(150),
                {256},
                {24},
                "PCI-SIG"},
    LinkDefault{"pcie pci-e pci gen5",
                "PCIe Gen5 x16",
                megabytes(63'015),
                false,
                Time::from_ns(150),
                {256},
                {24},
                "PCI-SIG"},
    LinkDefault{"cpu_fabric cpu-fabric fabric infinity upi qpi",
                "CPU socket link",
                megabytes(40'000),
                false,
                Time::from_ns(150),
                {64},
                {16},
                "what NCCL takes for the newest Xeons (ERP_QPI_BW, src/graph/topo.h)"},
    LinkDefault{"serdes electrical internal circuitry trace",
                "wiring inside a device",
                Rate::ideal(),
                false,
                Time::from_ns(5),
                {4096},
                {82},
                "assumed not to limit"},
    LinkDefault{"",
                "Ethernet",
                megabytes(12'500),
                false,
                Time::from_ns(500),
                {4096},
                {82},
                "the default of astra-sim-service"},
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
  for (const LinkDefault& candidate : kDefaults) {
    if (candidate.name == name) return candidate;
  }
  throw std::out_of_range("no link default named " + std::string(name));
}

}  // namespace hemiola::machine
