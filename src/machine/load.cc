// The entrance: a built-in name or a file, recognised by its content.
#include <string>
#include <system_error>
#include <vector>

#include "core/lists.h"
#include "core/text.h"
#include "machine/builders.h"
#include "machine/infragraph/infragraph.h"
#include "machine/machine.h"
#include "machine/nccl/topology.h"
#include "machine/simai/topology.h"

namespace hemiola::machine {
namespace {

[[noreturn]] void neither_name_nor_file(const std::string& name) {
  const std::vector<std::string> names = names_of(built_in_machines());
  throw Failure("there is no built-in machine and no file named '" + name + "'", kOption,
                suggest(name, names, "`hemiola machine list` lists the built-in machines"));
}

constexpr const char* kMachineFiles =
    "a machine is InfraGraph YAML or JSON, an NCCL topology XML, or a SimAI topology";

Machine read(const std::string& file, const LoadOptions& options) {
  const std::string text = read_file(file);
  const Format format = recognise(text);
  switch (format) {
    case Format::infragraph:
      return from_infragraph(text, file, options);
    case Format::nccl_topology:
      return from_nccl_topology(text, file, options);
    case Format::simai_topology:
      return from_simai_topology(text, file, options);
    case Format::yaml:
    case Format::json:
    case Format::xml:
    case Format::unknown:
      // Malformed text gets the parser's message with its line, which says more than "unknown".
      if (format != Format::xml) infragraph::parse(text, file);
      throw Failure("this describes no machine", SourceLocation{file, 1, 1, {}}, kMachineFiles);
    default:
      throw Failure("this is " + std::string(describe(format)) + ", not a machine",
                    SourceLocation{file, 0, 0, {}}, kMachineFiles);
  }
}

/// A model for GPUs that name none, where there is such a GPU.
void check_is_used(const std::string& gpu, const Machine& machine) {
  std::vector<std::string> own;
  for (const GpuModel& model : machine.models) {
    if (model.name == gpu) return;
    own.push_back(model.name);
  }
  throw Failure("the GPUs of '" + machine.name + "' have a model (" + joined(own) + "): '" + gpu +
                    "' would not be used",
                SourceLocation{"--gpu", 0, 0, {}},
                "leave it out; for another device take another machine, such as switch:8, or --set "
                "gpu.NAME=VALUE for single parameters");
}

}  // namespace

Machine load(const std::string& name_or_file, const LoadOptions& options) {
  const std::string gpu = options.gpu.empty() ? std::string() : load_gpu_model(options.gpu).name;
  const auto finish = [&](Machine machine) {
    if (!gpu.empty()) check_is_used(gpu, machine);
    for (const auto& [parameter, value] : options.set) machine.set(parameter, value);
    return machine;
  };
  if (std::optional<Machine> built_in = make_built_in(name_or_file, options))
    return finish(std::move(*built_in));
  if (!is_there(name_or_file)) neither_name_nor_file(name_or_file);
  return finish(read(name_or_file, options));
}

}  // namespace hemiola::machine
