// The words of a schema's choices, in the order of their enumerations.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace hemiola::machine::infragraph {

enum class Choice : std::uint8_t { custom, device, cpu, xpu, nic, memory, port, switch_ };
constexpr std::array<std::string_view, 8> kChoiceNames{"custom", "device", "cpu",  "xpu",
                                                       "nic",    "memory", "port", "switch"};
enum class Scheme : std::uint8_t { one2one, many2many, ring };
constexpr std::array<std::string_view, 3> kSchemeNames{"one2one", "many2many", "ring"};

}  // namespace hemiola::machine::infragraph
