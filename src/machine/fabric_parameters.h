// The parameters of links, switches and NICs by the names that --set and annotations use.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "core/diagnostics.h"
#include "machine/machine.h"

namespace hemiola::machine {

template <typename Target>
struct FabricParameter {
  std::string_view name;
  std::string_view hint;  ///< what a good value looks like
  std::string (*get)(const Target&);
  bool (*set)(Target&, std::string_view text);  ///< false: malformed or out of range
};

/// LinkClass: bandwidth, latency, max_payload, header, control, credits, arbitration. SwitchModel:
/// latency, queue, multicast, reduce_rate, reduce_latency. NicModel: mtu, message_time, latency,
/// rate.
template <typename Target>
std::span<const FabricParameter<Target>> fabric_parameters();
template <>
std::span<const FabricParameter<LinkClass>> fabric_parameters<LinkClass>();
template <>
std::span<const FabricParameter<SwitchModel>> fabric_parameters<SwitchModel>();
template <>
std::span<const FabricParameter<NicModel>> fabric_parameters<NicModel>();

/// Sets one of them. `prefix` ("switch.") stands before the names in messages. Throws Failure.
template <typename Target>
void set_fabric_parameter(Target& target, std::string_view name, std::string_view value,
                          const std::string& prefix, const SourceLocation& where);

/// A number of an annotation of astra-sim-service ("0.005"), in `unit` ("ms"). Throws Failure.
Time time_in(std::string_view number, std::string_view unit, const SourceLocation& where);
Rate rate_in(std::string_view number, std::string_view unit, const SourceLocation& where);

}  // namespace hemiola::machine
