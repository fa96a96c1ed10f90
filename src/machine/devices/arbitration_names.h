// The names of the arbitration policies at compile time. Private to the layer; others use
// arbitration.h.
#pragma once

#include <array>
#include <string_view>

namespace hemiola::machine {

inline constexpr std::array kArbitrationNames{
    std::string_view("fifo"),
#define HEMIOLA_ARBITRATION(name) std::string_view(#name),
#include "machine/devices/arbitration_list.h"
#undef HEMIOLA_ARBITRATION
};

#define HEMIOLA_ARBITRATION(name) ", " #name
inline constexpr std::string_view kArbitrationHint = "one of fifo"
#include "machine/devices/arbitration_list.h"
    ;
#undef HEMIOLA_ARBITRATION

}  // namespace hemiola::machine
