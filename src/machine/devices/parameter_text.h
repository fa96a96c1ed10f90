// Values of parameters as text with their units. Private to the layer.
#pragma once

#include <cstdint>
#include <string>

#include "core/time.h"
#include "core/units.h"
#include "machine/devices/arbitration.h"

namespace hemiola::machine {

inline std::string text_of(std::int64_t value) {
  return std::to_string(value);
}
inline std::string text_of(bool value) {
  return value ? "true" : "false";
}
inline std::string text_of(Arbitration value) {
  return std::string(name_of(value));
}
template <typename Quantity>
std::string text_of(Quantity value) {
  return to_string(value);
}

}  // namespace hemiola::machine
