#include "machine/fabric_parameters.h"

#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "core/lists.h"
#include "machine/devices/arbitration_names.h"
#include "machine/devices/parameter_text.h"
#include "machine/devices/parameters.h"

namespace hemiola::machine {
namespace {

constexpr std::string_view kRateHint = "a rate from 1 MB/s such as 450 GB/s or 400 Gb/s, or inf";
constexpr std::string_view kTimeHint = "a positive time such as 500 ns";
constexpr std::string_view kZeroTimeHint = "a time such as 100 ns, or 0 ns";
constexpr std::string_view kSizeHint = "a positive size such as 128 B";
constexpr std::string_view kZeroSizeHint = "a size such as 16 B, or 0 B";
constexpr std::string_view kCountHint = "a whole number; 0 is unlimited";

/// A packet of a gigabyte is a mistake, and the cap keeps wire_bytes() far from overflow.
template <typename Value>
constexpr std::int64_t kMost = std::is_same_v<Value, Bytes> ? std::int64_t{1} << 30 : INT64_MAX;

template <typename Target, typename Value>
Target owner_of(Value Target::*member);

/// Times and sizes are at least `least` femtoseconds and bytes.
template <auto member, std::int64_t least = 0, typename Target = decltype(owner_of(member))>
constexpr FabricParameter<Target> parameter(std::string_view name, std::string_view hint) {
  return {name, hint, [](const Target& target) { return text_of(target.*member); },
          [](Target& target, std::string_view text) {
            auto& field = target.*member;
            return store(field, text, least, kMost<std::decay_t<decltype(field)>>);
          }};
}

constexpr std::array kLink{
    parameter<&LinkClass::bandwidth>("bandwidth", kRateHint),
    parameter<&LinkClass::latency, 1>("latency", kTimeHint),
    parameter<&LinkClass::max_payload, 1>("max_payload", kSizeHint),
    parameter<&LinkClass::header>("header", kZeroSizeHint),
    parameter<&LinkClass::control>("control", kZeroSizeHint),
    parameter<&LinkClass::credits>("credits", kCountHint),
    parameter<&LinkClass::arbitration>("arbitration", kArbitrationHint),
};

constexpr std::array kSwitch{
    parameter<&SwitchModel::latency>("latency", kZeroTimeHint),
    parameter<&SwitchModel::queue>("queue", kCountHint),
    parameter<&SwitchModel::multicast>("multicast", "true or false"),
    parameter<&SwitchModel::reduce_rate>("reduce_rate", kRateHint),
    parameter<&SwitchModel::reduce_latency>("reduce_latency", kZeroTimeHint),
};

constexpr std::array kNicParameters{
    parameter<&NicModel::mtu, 1>("mtu", kSizeHint),
    parameter<&NicModel::message_time, 1>("message_time", kTimeHint),
    parameter<&NicModel::latency, 1>("latency", kTimeHint),
    parameter<&NicModel::rate>("rate", kRateHint),
};

/// "0.005" and also "5e-3", which floats of other tools may be written as.
std::string plain_decimal(std::string_view number) {
  const bool has_exponent = number.find_first_of("eE") != std::string_view::npos;
  double value = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (!has_exponent || problem != std::errc{} || end != number.data() + number.size())
    return std::string(number);
  std::array<char, 400> text{};
  const auto written =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed);
  return std::string(text.data(), written.ptr);
}

}  // namespace

template <>
std::span<const FabricParameter<LinkClass>> fabric_parameters<LinkClass>() {
  return kLink;
}
template <>
std::span<const FabricParameter<SwitchModel>> fabric_parameters<SwitchModel>() {
  return kSwitch;
}
template <>
std::span<const FabricParameter<NicModel>> fabric_parameters<NicModel>() {
  return kNicParameters;
}

template <typename Target>
void set_fabric_parameter(Target& target, std::string_view name, std::string_view value,
                          const std::string& prefix, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const auto& parameter : fabric_parameters<Target>()) {
    if (parameter.name != name) {
      names.push_back(prefix + std::string(parameter.name));
      continue;
    }
    if (parameter.set(target, value)) return;
    throw Failure("'" + std::string(value) + "' is no value for " + prefix + std::string(name),
                  where, "it takes " + std::string(parameter.hint));
  }
  const std::string full = prefix + std::string(name);
  throw Failure("unknown parameter '" + full + "'", where,
                suggest(full, names, "known are " + joined(names, " ")));
}

template void set_fabric_parameter(LinkClass&, std::string_view, std::string_view,
                                   const std::string&, const SourceLocation&);
template void set_fabric_parameter(SwitchModel&, std::string_view, std::string_view,
                                   const std::string&, const SourceLocation&);
template void set_fabric_parameter(NicModel&, std::string_view, std::string_view,
                                   const std::string&, const SourceLocation&);

Time time_in(std::string_view number, std::string_view unit, const SourceLocation& where) {
  const auto value = parse_time(plain_decimal(number) + " " + std::string(unit));
  if (!value || value->fs <= 0) {
    throw Failure("'" + std::string(number) + "' is no latency", where,
                  "a positive number in " + std::string(unit));
  }
  return *value;
}

Rate rate_in(std::string_view number, std::string_view unit, const SourceLocation& where) {
  const auto value = parse_hardware_rate(plain_decimal(number) + " " + std::string(unit));
  if (!value) {
    throw Failure("'" + std::string(number) + "' is no bandwidth", where,
                  "a positive number in " + std::string(unit) + ", of at least 1 MB/s");
  }
  return *value;
}

}  // namespace hemiola::machine
