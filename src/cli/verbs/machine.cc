// hemiola machine: look at machines, check them, list and convert them.
#include <algorithm>
#include <iostream>
#include <memory>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/lenient.h"
#include "report/machine_page.h"
#include "report/parts.h"
#include "report/report.h"

namespace hemiola::cli {
namespace {

struct MachineVerbOptions {
  MachineOptions machine;
  std::string output;
  std::string graph;  ///< "": a table
  std::string json;   ///< of --parts
  bool parts = false;
};

machine::SharedMachine load_one(const MachineVerbOptions& options) {
  return machine::share(
      study::load_machine(machine_choice(options.machine, one_setting(options.machine.set))));
}

ExitCode show(const MachineVerbOptions& options, Session& session) {
  if (options.parts) {
    refuse_typed(session, {"M", "--machine", "--gpu", "--ranks", "--set", "--graph", "--output"},
                 "is of a machine, and parts are of none", "leave it out");
    if (!options.json.empty())
      write_file(options.json, report::parts_json(session.registry, session.command));
    report::print_parts(std::cout, session.registry);
    return ExitCode::done;
  }
  refuse_typed(session, {"--json"}, "is of --parts", "--graph html makes a page of a machine");
  if (!options.graph.empty()) {
    choice_value("--graph", options.graph, {"html"});
    report::page::require_rendering();
  } else if (!options.output.empty()) {
    throw Failure("a table goes to standard output", {.file = "--output"},
                  "--graph html makes a file");
  }
  const machine::SharedMachine machine = load_one(options);
  if (session.strict) refuse_lenient(machine->warnings);
  if (options.graph.empty()) {
    report::print_machine(std::cout, *machine);  // with its warnings
    return ExitCode::done;
  }
  Notices(session).show(machine->warnings);
  write_or_print(options.output,
                 report::page::render(report::machine_page(*machine, session.command)));
  return ExitCode::done;
}

/// Loading finds what is wrong; what is left are pairs that only --ranks or forwarding rules part.
ExitCode validate(const MachineVerbOptions& options, Session& session) {
  const machine::SharedMachine machine = load_one(options);
  Notices(session).show(machine->warnings);
  for (int from = 0; from < machine->ranks(); ++from) {
    const int to = (from + 1) % machine->ranks();
    if (from != to && machine->reach(from, to) == machine::Reach::none) {
      throw Failure("rank " + std::to_string(from) + " cannot reach rank " + std::to_string(to),
                    SourceLocation{.file = options.machine.machine});
    }
  }
  std::cout << machine->name << ": valid, " << machine->ranks() << " GPUs, "
            << machine->nodes.size() << " nodes, " << machine->links.size() << " links, "
            << machine->warnings.items().size() << " warnings\n";
  return ExitCode::done;
}

ExitCode list(const MachineVerbOptions&, Session&) {
  const std::vector<machine::BuiltIn> machines = machine::built_in_machines();
  std::size_t width = 0;
  for (const machine::BuiltIn& built_in : machines) width = std::max(width, built_in.name.size());
  for (const machine::BuiltIn& built_in : machines) {
    std::cout << built_in.name << std::string(width + 2 - built_in.name.size(), ' ')
              << built_in.description << '\n';
  }
  std::cout << "\nGPU models (--gpu):";
  for (const std::string& name : machine::gpu_model_names()) std::cout << ' ' << name;
  std::cout << '\n';
  return ExitCode::done;
}

ExitCode convert(const MachineVerbOptions& options, Session& session) {
  const machine::SharedMachine machine = load_one(options);
  Notices(session).show(machine->warnings);
  write_or_print(options.output, machine::to_infragraph(*machine));
  return ExitCode::done;
}

}  // namespace

void add_machine(CLI::App& app, Session& session) {
  CLI::App* group = add_group(app, session, "machine", "show, validate, list and convert machines",
                              "  hemiola machine show dgx-h100\n"
                              "  hemiola machine convert topology.xml -o machine.yaml",
                              "show, validate, list, convert");
  const auto options = std::make_shared<MachineVerbOptions>();
  const auto add = [&](const char* name, auto run, const char* description, const char* examples) {
    CLI::App* verb = add_verb(*group, name, description, examples);
    on_call(*verb, session, options, run);
    return verb;
  };
  CLI::App* const shown = add(
      "show", show,
      "nodes, links, bandwidth and latency between GPUs, parameters with their sources",
      "  hemiola machine show dgx-h100\n"
      "  hemiola machine show dgx-h100:16 --set link.ib-ndr.latency=400ns --graph html -o m.html\n"
      "  hemiola machine show --parts --json parts.json");
  CLI::App* const validated =
      add("validate", validate, "read a machine and say what is wrong",
          "  hemiola machine validate fabric.yaml\n  hemiola machine validate torus:4x4");
  add("list", list, "the built-in machines and GPU models",
      "  hemiola machine list\n  hemiola machine list | grep h100");
  CLI::App* const converted =
      add("convert", convert, "write a machine as InfraGraph YAML",
          "  hemiola machine convert topology.xml -o machine.yaml\n"
          "  hemiola machine convert dgx-h100:2 --set switch.latency=200ns > two.yaml");
  for (CLI::App* verb : {shown, validated, converted}) {
    add_machine_options(*verb, options->machine);
    verb->add_option("M", options->machine.machine, "a built-in machine or a file")
        ->type_name("")
        ->excludes(verb->get_option("--machine"));
    verb->add_flag("--quiet", session.quiet, "no warnings");
  }
  AddOptions{*shown}("--graph", options->graph,
                     "html: a page with the machine drawn, and its tables", "FORMAT");
  shown->add_flag("--parts", options->parts,
                  "not a machine, but what is registered: algorithms, kernels, formats, readers, "
                  "rules, with their parameters and sources");
  AddOptions{*shown}("--json", options->json, "of --parts: the same as a file", "FILE");
  for (CLI::App* verb : {shown, converted})
    AddOptions{*verb}("-o,--output", options->output, "where to write; else standard output",
                      "FILE");
}

}  // namespace hemiola::cli
