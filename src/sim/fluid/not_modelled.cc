#include "sim/fluid/not_modelled.h"

#include <string_view>

#include "machine/devices/parameters.h"

namespace hemiola::sim {
namespace {

std::string of_gpus(const machine::GpuModel& model) {
  const auto given = [&](std::string_view name) {
    for (const machine::Parameter& parameter : machine::gpu_parameters())
      if (parameter.name == name) return "gpu." + std::string(name) + '=' + parameter.get(model);
    return "gpu." + std::string(name);
  };
  if (model.sync_wait != machine::WaitPolicy::spin) return given("sync.wait");
  if (model.sync_uncached) return given("sync.uncached");
  if (model.l2_copies) return given("l2.copies");
  if (model.noc_arbitration != machine::Arbitration::fifo) return given("noc.arbitration");
  // Parts of packets that are found in the L1 take the L2's latency: it is the longer one.
  const bool meshed = model.noc_kind == machine::NocKind::mesh;
  const std::int64_t past_l1 =
      2 * (meshed ? model.noc_hop_latency : model.noc_latency).fs + model.l2_latency.fs;
  if (model.l1_size.count > 0 && model.l1_latency.fs > past_l1) return given("l1.latency");
  return {};
}

}  // namespace

std::string not_modelled_by_fluid(const machine::Machine& machine) {
  for (const machine::GpuModel& model : machine.models)
    if (std::string name = of_gpus(model); !name.empty()) return name;
  for (const machine::LinkClass& link : machine.link_classes) {
    if (link.arbitration != machine::Arbitration::fifo)
      return "link." + link.name + ".arbitration=" + std::string(name_of(link.arbitration));
    if (link.credits > 0) return "link." + link.name + ".credits=" + std::to_string(link.credits);
  }
  for (const machine::Node& node : machine.nodes)
    if (node.kind == machine::NodeKind::switch_ && node.switch_model.queue > 0)
      return "switch.queue=" + std::to_string(node.switch_model.queue);
  return {};
}

}  // namespace hemiola::sim
