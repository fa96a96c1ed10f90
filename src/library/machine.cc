#include "hemiola/machine.h"
#include "machine/devices/parameters.h"

#include <utility>

#include "library/implementations.h"
#include "machine/fabric_parameters.h"

namespace hemiola {
namespace {

std::shared_ptr<const Machine::Implementation> wrapped(machine::Machine inner, Settings settings) {
  if (inner.ranks() == 0)
    throw Failure(
        "the machine has no GPU, so nothing can run on it", {.file = inner.name},
        "it may be one device of a larger machine: `hemiola machine show` lists its nodes");
  std::vector<Diagnostic> warnings = inner.warnings.items();
  return std::make_shared<const Machine::Implementation>(Machine::Implementation{
      machine::share(std::move(inner)), std::move(settings), std::move(warnings)});
}

/// Its own copy, to change: a copy shares what is known of routes.
machine::Machine copy_of(const Machine& machine) {
  machine::Machine inner = *machine.implementation().machine;
  inner.forget_routes();
  return inner;
}

template <typename Target>
void add_fabric_parameters(std::vector<MachineParameter>& all, const std::string& prefix,
                           const Target& target, const std::string& source) {
  for (const auto& parameter : machine::fabric_parameters<Target>())
    all.push_back({prefix + std::string(parameter.name), parameter.get(target), source});
}

const machine::Node* first_of(const machine::Machine& inner, machine::NodeKind kind) {
  for (const machine::Node& node : inner.nodes)
    if (node.kind == kind) return &node;
  return nullptr;
}

}  // namespace

Machine Machine::load(const std::string& name_or_file, const MachineOptions& options) {
  machine::Machine inner = machine::load(name_or_file, {.gpu = options.gpu, .set = options.set});
  if (!options.ranks.empty()) inner.place(options.ranks);
  return Machine(wrapped(std::move(inner), options.set));
}

std::vector<Named> Machine::built_ins() {
  std::vector<Named> all;
  for (const machine::BuiltIn& built_in : machine::built_in_machines())
    all.push_back({built_in.name, built_in.description});
  return all;
}

std::vector<std::string> Machine::device_models() {
  return machine::gpu_model_names();
}

Machine Machine::with(const Settings& set) const {
  machine::Machine inner = copy_of(*this);
  Settings settings = self_->settings;
  for (const auto& [parameter, value] : set) {
    inner.set(parameter, value);
    settings.emplace_back(parameter, value);
  }
  return Machine(wrapped(std::move(inner), std::move(settings)));
}

Machine Machine::with_ranks(const std::vector<int>& ranks) const {
  machine::Machine inner = copy_of(*this);
  inner.place(ranks);
  return Machine(wrapped(std::move(inner), self_->settings));
}

const std::string& Machine::name() const {
  return self_->machine->name;
}
const std::string& Machine::description() const {
  return self_->machine->description;
}
const Settings& Machine::settings() const {
  return self_->settings;
}
int Machine::ranks() const {
  return self_->machine->ranks();
}
const std::vector<Diagnostic>& Machine::warnings() const {
  return self_->warnings;
}

std::vector<MachineParameter> Machine::parameters() const {
  const machine::Machine& inner = *self_->machine;
  std::vector<MachineParameter> all;
  const machine::GpuModel& model = inner.model(0);
  for (const machine::Parameter& parameter : machine::gpu_parameters()) {
    const std::string name(parameter.name);
    const auto source = model.sources.find(name);
    all.push_back({"gpu." + name, parameter.get(model),
                   source == model.sources.end() ? std::string() : source->second});
  }
  for (const machine::LinkClass& link : inner.link_classes)
    add_fabric_parameters(all, "link." + link.name + '.', link, link.assumed ? "assumed" : "");
  if (const machine::Node* node = first_of(inner, machine::NodeKind::switch_))
    add_fabric_parameters(all, "switch.", node->switch_model, "");
  if (const machine::Node* node = first_of(inner, machine::NodeKind::nic))
    add_fabric_parameters(all, "nic.", node->nic_model, "");
  return all;
}

std::string Machine::to_infragraph() const {
  return machine::to_infragraph(*self_->machine);
}

}  // namespace hemiola
