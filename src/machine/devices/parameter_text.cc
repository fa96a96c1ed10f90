#include "machine/devices/parameter_text.h"

#include "core/lists.h"
#include "machine/devices/parameters.h"

namespace hemiola::machine {
namespace {

bool within(std::int64_t value, std::int64_t least, std::int64_t most) {
  return value >= least && value <= most;
}

}  // namespace

std::optional<Rate> parse_hardware_rate(std::string_view text) {
  constexpr Rate kLeast{1'000'000};
  const auto rate = parse_rate(text);
  return rate && (rate->is_ideal() || *rate >= kLeast) ? rate : std::nullopt;
}

bool store(std::int64_t& field, std::string_view text, std::int64_t least, std::int64_t most) {
  const auto value = parse_count(text);
  return store_if(field, value, value && within(*value, least, most));
}
bool store(Bytes& field, std::string_view text, std::int64_t least, std::int64_t most) {
  const auto value = parse_bytes(text);
  return store_if(field, value, value && within(value->count, least, most));
}
bool store(Time& field, std::string_view text, std::int64_t least, std::int64_t most) {
  const auto value = parse_time(text);
  return store_if(field, value, value && within(value->fs, least, most));
}
bool store(Rate& field, std::string_view text, std::int64_t, std::int64_t) {
  return store_if(field, parse_hardware_rate(text));
}
bool store(Frequency& field, std::string_view text, std::int64_t, std::int64_t) {
  const auto value = parse_frequency(text);
  return store_if(field, value, value && value->hertz > 0);
}
bool store(Arbitration& field, std::string_view text, std::int64_t, std::int64_t) {
  return store_if(field, parse_arbitration(trimmed(text)));
}
bool store(bool& field, std::string_view text, std::int64_t, std::int64_t) {
  if (trimmed(text) != "true" && trimmed(text) != "false") return false;
  field = trimmed(text) == "true";
  return true;
}

}  // namespace hemiola::machine
