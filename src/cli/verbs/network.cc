#include "cli/verbs/network.h"

#include <iostream>
#include <sstream>

#include "cli/notices.h"
#include "core/lists.h"
#include "core/text.h"
#include "plan/template.h"
#include "report/messages.h"
#include "study/network/messages.h"
#include "study/network/ns3_network.h"

namespace hemiola::cli {
namespace {

/// "ns-3", "ns-3:256KiB", "ns-3:256KiB,ack"
study::Ns3Options network_value(const std::string& text) {
  const std::size_t colon = text.find(':');
  choice_value("--network", text.substr(0, colon), {"ns-3"});
  study::Ns3Options options;
  std::istringstream words(colon == std::string::npos ? "" : text.substr(colon + 1));
  for (std::string word; std::getline(words, word, ',');) {
    if (word == "ack") {
      options.acknowledged = true;
      continue;
    }
    const auto queue = parse_size(word);
    if (!queue || queue->count <= 0)
      throw Failure("'" + word + "' is neither 'ack' nor the size of a queue",
                    {.file = "--network"},
                    "for example ns-3:256KiB; ns-3 alone has queues without a limit");
    options.queue = *queue;
  }
  return options;
}

plan::Plan plan_for(const ProgramOptions& program, const machine::SharedMachine& machine,
                    Session& session) {
  if (plan::find_template(program.program, &session.registry) != nullptr)
    return plan::make(program.program, machine->ranks(), parameters_of(program), machine.get(), {},
                      &session.monitor, &session.registry);
  if (auto plan = read_plan_file(program.program, session)) return *std::move(plan);
  throw Failure("'" + program.program + "' is no plan", {.file = "--network"},
                "a plan file, or a template with its algorithm: all-reduce/ring; 'hemiola plan "
                "convert' makes plans of programs");
}

}  // namespace

ExitCode run_network_verb(const std::string& network, const MachineOptions& machine_options,
                          const ProgramOptions& program, const std::string& json,
                          Session& session) {
  const study::Ns3Options options = network_value(network);
  const machine::SharedMachine machine =
      session.laboratory.machine(machine_choice(machine_options, one_setting(machine_options.set)));
  Notices(session).show(machine->warnings);
  const plan::Plan plan = plan_for(program, machine, session);
  if (plan.ranks != machine->ranks())
    throw Failure("the plan has " + std::to_string(plan.ranks) + " ranks, and the machine " +
                      std::to_string(machine->ranks()) + " GPUs",
                  {.file = "--machine"}, "choose some with --ranks");
  std::vector<Bytes> sizes = requested_sizes(program);
  if (sizes.empty()) sizes = {Bytes{1 << 20}};
  report::MessageTable table{.command = session.command,
                             .machine = machine->name,
                             .program = program.program,
                             .network = "ns-3: " + study::describe(*machine, options),
                             .ranks = plan.ranks,
                             .rows = {}};
  Progress progress(session);
  for (const Bytes size : sizes) {
    progress.doing("simulating " + to_string(size));
    const study::MessageGraph graph = study::messages_of(plan, size);
    study::Ns3Network over(*machine, options);
    const study::MessageRun run = study::run_messages(graph, over);
    const auto [packets, drops] = over.statistics();
    table.rows.push_back(report::message_row(graph, run, plan.collective, size, packets, drops));
  }
  report::print_messages(std::cout, table);
  if (!json.empty()) write_file(json, report::messages_json(table));
  return ExitCode::done;
}

}  // namespace hemiola::cli
