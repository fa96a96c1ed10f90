// Values of parameters as text with their units, written and read. Private to the layer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

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

/// Reads a value; false: it is malformed, or not from `least` to `most` (counts, bytes and
/// femtoseconds; of others these do not count).
bool store(std::int64_t& field, std::string_view text, std::int64_t least, std::int64_t most);
bool store(Bytes& field, std::string_view text, std::int64_t least, std::int64_t most);
bool store(Time& field, std::string_view text, std::int64_t least, std::int64_t most);
bool store(Rate& field, std::string_view text, std::int64_t least, std::int64_t most);
bool store(Frequency& field, std::string_view text, std::int64_t least, std::int64_t most);
bool store(Arbitration& field, std::string_view text, std::int64_t least, std::int64_t most);
bool store(bool& field, std::string_view text, std::int64_t least, std::int64_t most);
template <typename Value>
bool store_if(Value& field, const std::optional<Value>& value, bool is_within = true) {
  if (value && is_within) field = *value;
  return value && is_within;
}

}  // namespace hemiola::machine
