#include "machine/fabric_parameters.h"

#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <vector>

#include "machine/devices/arbitration_names.h"

namespace hemiola::machine {
namespace {

constexpr std::string_view kRateHint = "a rate from 1 MB/s such as 450 GB/s or 400 Gb/s, or inf";
constexpr std::string_view kTimeHint = "a positive time such as 500 ns";
constexpr std::string_view kZeroTimeHint = "a time such as 100 ns, or 0 ns";
constexpr std::string_view kSizeHint = "a positive size such as 128 B";
constexpr std::string_view kZeroSizeHint = "a size such as 16 B, or 0 B";
constexpr std::string_view kCountHint = "a whole number; 0 is unlimited";

bool store(Rate& field, std::string_view text) {
  const auto value = parse_hardware_rate(text);
  if (value) field = *value;
  return value.has_value();
}

bool store(Time& field, std::string_view text, std::int64_t least) {
  const auto value = parse_time(text);
  if (!value || value->fs < least) return false;
  field = *value;
  return true;
}

bool store(Bytes& field, std::string_view text, std::int64_t least) {
  // A packet of a gigabyte is a mistake, and the cap keeps wire_bytes() far from overflow.
  const auto value = parse_bytes(text);
  if (!value || value->count < least || value->count > (std::int64_t{1} << 30)) return false;
  field = *value;
  return true;
}

bool store(std::int64_t& field, std::string_view text) {
  const auto value = parse_count(text);
  if (value) field = *value;
  return value.has_value();
}

bool store(bool& field, std::string_view text) {
  if (text != "true" && text != "false") return false;
  field = text == "true";
  return true;
}

bool store(Arbitration& field, std::string_view text) {
  const auto value = parse_arbitration(text);
  if (value) field = *value;
  return value.has_value();
}

constexpr std::array kLink{
    FabricParameter<LinkClass>{
        "bandwidth", kRateHint, [](const LinkClass& link) { return to_string(link.bandwidth); },
        [](LinkClass& link, std::string_view text) { return store(link.bandwidth, text); }},
    FabricParameter<LinkClass>{
        "latency", kTimeHint, [](const LinkClass& link) { return to_string(link.latency); },
        [](LinkClass& link, std::string_view text) { return store(link.latency, text, 1); }},
    FabricParameter<LinkClass>{
        "max_payload", kSizeHint, [](const LinkClass& link) { return to_string(link.max_payload); },
        [](LinkClass& link, std::string_view text) { return store(link.max_payload, text, 1); }},
    FabricParameter<LinkClass>{
        "header", kZeroSizeHint, [](const LinkClass& link) { return to_string(link.header); },
        [](LinkClass& link, std::string_view text) { return store(link.header, text, 0); }},
    FabricParameter<LinkClass>{
        "control", kZeroSizeHint, [](const LinkClass& link) { return to_string(link.control); },
        [](LinkClass& link, std::string_view text) { return store(link.control, text, 0); }},
    FabricParameter<LinkClass>{
        "credits", kCountHint, [](const LinkClass& link) { return std::to_string(link.credits); },
        [](LinkClass& link, std::string_view text) { return store(link.credits, text); }},
    FabricParameter<LinkClass>{
        "arbitration", kArbitrationHint,
        [](const LinkClass& link) { return std::string(name_of(link.arbitration)); },
        [](LinkClass& link, std::string_view text) { return store(link.arbitration, text); }},
};

constexpr std::array kSwitch{
    FabricParameter<SwitchModel>{
        "latency", kZeroTimeHint, [](const SwitchModel& model) { return to_string(model.latency); },
        [](SwitchModel& model, std::string_view text) { return store(model.latency, text, 0); }},
    FabricParameter<SwitchModel>{
        "queue", kCountHint, [](const SwitchModel& model) { return std::to_string(model.queue); },
        [](SwitchModel& model, std::string_view text) { return store(model.queue, text); }},
    FabricParameter<SwitchModel>{
        "multicast", "true or false",
        [](const SwitchModel& model) { return std::string(model.multicast ? "true" : "false"); },
        [](SwitchModel& model, std::string_view text) { return store(model.multicast, text); }},
    FabricParameter<SwitchModel>{
        "reduce_rate", kRateHint,
        [](const SwitchModel& model) { return to_string(model.reduce_rate); },
        [](SwitchModel& model, std::string_view text) { return store(model.reduce_rate, text); }},
    FabricParameter<SwitchModel>{
        "reduce_latency", kZeroTimeHint,
        [](const SwitchModel& model) { return to_string(model.reduce_latency); },
        [](SwitchModel& model, std::string_view text) {
          return store(model.reduce_latency, text, 0);
        }},
};

constexpr std::array kNicParameters{
    FabricParameter<NicModel>{
        "mtu", kSizeHint, [](const NicModel& nic) { return to_string(nic.mtu); },
        [](NicModel& nic, std::string_view text) { return store(nic.mtu, text, 1); }},
    FabricParameter<NicModel>{
        "message_time", kTimeHint, [](const NicModel& nic) { return to_string(nic.message_time); },
        [](NicModel& nic, std::string_view text) { return store(nic.message_time, text, 1); }},
    FabricParameter<NicModel>{
        "latency", kTimeHint, [](const NicModel& nic) { return to_string(nic.latency); },
        [](NicModel& nic, std::string_view text) { return store(nic.latency, text, 1); }},
    FabricParameter<NicModel>{
        "rate", kRateHint, [](const NicModel& nic) { return to_string(nic.rate); },
        [](NicModel& nic, std::string_view text) { return store(nic.rate, text); }},
};

/// "0.005" and also "5e-3", which floats of other tools may be written as.
std::string plain_decimal(std::string_view number) {
  const bool has_exponent = number.find_first_of("eE") != std::string_view::npos;
  double value = 0;
  const auto [end, problem] = std::from_chars(number.data(), number.data() + number.size(), value);
  if (!has_exponent || problem != std::errc{} || end != number.data() + number.size()) {
    return std::string(number);
  }
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
  std::string hint = suggest(full, names);
  if (hint.empty()) {
    hint = "known are";
    for (const std::string& known : names) hint += " " + known;
  }
  throw Failure("unknown parameter '" + full + "'", where, hint);
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
