// What names in recorded traces stand for: devices, and the kernels with which libraries other than
// NCCL communicate. data/traces.yaml is the table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hemiola::study {

struct KnownDevice {
  std::string model;  ///< of data/devices: "a100"
  std::int64_t memory =
      0;  ///< bytes of that model, where others of its name have less; 0: all alike
  bool is_variant = false;  ///< a card of that name (PCIe, NVL), with other clocks and memory
};
/// Of "NVIDIA A100-SXM4-80GB". Nothing: no model is of that device.
std::optional<KnownDevice> known_device(std::string_view name);

/// "DeepEP dispatch" of "void deep_ep::internode_ll::dispatch<...>(...)". Nothing: the kernel is
/// not known to communicate.
std::optional<std::string> library_call(std::string_view kernel);

}  // namespace hemiola::study
