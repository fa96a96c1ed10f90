// hemiola plan: make programs from templates, look at programs, convert them between formats.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <optional>

#include "cli/cli.h"
#include "cli/notices.h"
#include "cli/options/inputs.h"
#include "core/lists.h"
#include "lift/lift.h"
#include "plan/plan_json.h"
#include "plan/shape.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/export.h"
#include "program/kernels/kernel.h"
#include "report/report.h"
#include "study/laboratory/preparation.h"

namespace hemiola::cli {
namespace {

struct PlanOptions {
  std::string input;
  std::string ranks;
  std::string mesh;
  MachineOptions machine;
  std::vector<std::string> parameters;
  std::string shape;
  std::string dtype = "half";
  std::int64_t axis = 0;
  std::string size;
  bool round_size = false;
  std::string format;
  std::string output;
  std::string graph;
  std::string rank;
  std::string waves;
};

/// "8" or "2x4": sizes of the mesh's axes.
std::vector<plan::MeshAxis> mesh_value(const std::string& text) {
  std::vector<plan::MeshAxis> mesh;
  for (const std::int64_t size : dimensions_value("--mesh", text))
    mesh.push_back({"axis " + std::to_string(mesh.size()),
                    static_cast<int>(std::min<std::int64_t>(size, INT32_MAX))});
  return mesh;
}

/// What --ranks, --mesh and --machine say together; 8 when they say nothing.
int ranks_of(const PlanOptions& options, const machine::SharedMachine& machine) {
  std::int64_t ranks = 8;
  if (machine != nullptr) ranks = machine->ranks();
  if (!options.ranks.empty() && machine == nullptr) {
    ranks = rank_count_value(options.ranks);
    if (ranks == 0)
      throw Failure("a list of ranks needs a machine", SourceLocation{.file = "--ranks"},
                    "for example --ranks 8");
  }
  if (options.mesh.empty()) return static_cast<int>(ranks);
  std::int64_t places = 1;
  for (const plan::MeshAxis& axis : mesh_value(options.mesh)) places *= axis.size;
  if ((machine != nullptr || !options.ranks.empty()) && places != ranks)
    throw Failure("a mesh of " + options.mesh + " has " + std::to_string(places) + " places for " +
                      std::to_string(ranks) + " ranks",
                  SourceLocation{.file = "--mesh"});
  return static_cast<int>(places);
}

/// Null where none is given.
machine::SharedMachine machine_of(const PlanOptions& options, Session& session) {
  if (options.machine.machine.empty()) {
    refuse_typed(session, {"--set", "--gpu"}, "needs a machine", "add --machine NAME");
    return nullptr;
  }
  MachineOptions with_ranks = options.machine;
  with_ranks.ranks = options.ranks;
  machine::SharedMachine machine =
      session.laboratory.machine(machine_choice(with_ranks, one_setting(options.machine.set)));
  Notices(session).show(machine->warnings);
  return machine;
}

/// `ranks`: how many, without a machine.
study::Experiment experiment_for(const PlanOptions& options, int ranks) {
  study::Experiment experiment = experiment_of(options.input, {.parameters = options.parameters});
  experiment.machine.ranks = std::to_string(ranks);
  return experiment;
}
program::LoadOptions options_for(const PlanOptions& options, Session& session,
                                 const machine::SharedMachine& machine) {
  return session.laboratory.load_options(experiment_for(options, ranks_of(options, machine)),
                                         machine, session.monitor.stop);
}

/// What `make` returns, which may be a search for the best plan: with a progress line, and Ctrl-C
/// leaves it. The line is gone before anything is printed.
template <class Make>
auto watched(const PlanOptions& options, Session& session, const Make& make) {
  Progress progress(session);
  progress.doing("making " + options.input);
  return make();
}

study::SharedProgram load_one_program(const PlanOptions& options, Session& session) {
  if (program_names(options.input, session).size() > 1) {
    throw Failure("'" + options.input + "' names a collective, not an algorithm", {},
                  "'hemiola plan show' lists the built-ins");
  }
  const machine::SharedMachine machine = machine_of(options, session);
  study::SharedProgram program = watched(options, session, [&] {
    return session.laboratory.program(experiment_for(options, ranks_of(options, machine)), machine,
                                      {.monitor = &session.monitor});
  });
  Notices(session).show(program->warnings);
  return program;
}

/// With --mesh, --shape, --dtype and --axis.
plan::Plan plan_as_shaped(const PlanOptions& options, plan::Plan plan) {
  if (!options.mesh.empty()) plan.mesh = mesh_value(options.mesh);
  if (options.shape.empty()) return plan;
  return plan::shaped(plan, dimensions_value("--shape", options.shape),
                      data_type_value(options.dtype), index(options.axis));
}

/// A plan file, or a template; nothing when it is neither.
std::optional<plan::Plan> load_plan(const PlanOptions& options, Session& session) {
  if (plan::find_template(options.input, &session.registry) == nullptr)
    return read_plan_file(options.input, session);
  const machine::SharedMachine machine = machine_of(options, session);
  const int ranks = ranks_of(options, machine);
  return plan_as_shaped(options, watched(options, session, [&] {
                          const program::LoadOptions load = options_for(options, session, machine);
                          return plan::make(options.input, ranks, load.parameters,
                                            load.machine.get(), program::judge_of_plans(load, {}),
                                            &session.monitor, &session.registry);
                        }));
}

/// A program at --size, or where it runs without one.
program::Bound bound_to_lift(const PlanOptions& options, Session& session,
                             const program::Program& program) {
  const DataType type = DataType::float32;
  Bytes size = study::default_size(program, type);
  if (options.size.empty()) {
    Notices(session).note("no --size is given: lifted as it runs at " + to_string(size));
  } else {
    const Bytes asked = size_values(options.size).front();
    size = options.round_size ? study::round_up(program, {.size = asked, .type = type}) : asked;
    if (size != asked) Notices(session).note(study::rounding_note(asked, size, program.name));
  }
  program::Bound bound = program::bind(program, nullptr, {.size = size, .type = type});
  Notices(session).show(bound.warnings());
  return bound;
}

/// A plan file, the plan of a template, or what a program does as a plan.
plan::Plan load_or_lift(const PlanOptions& options, Session& session) {
  if (std::optional<plan::Plan> plan = load_plan(options, session)) return *std::move(plan);
  return lift::lift(bound_to_lift(options, session, *load_one_program(options, session)));
}

/// As the format says it, or else as it says what the program does.
std::string converted(const PlanOptions& options, Session& session,
                      program::ExecutorFormat format) {
  const study::SharedProgram program = load_one_program(options, session);
  try {
    return program::write_as(format, *program);
  } catch (const Failure&) {
    const std::string_view name = program::format_name(format);
    if (program->format == name.substr(0, name.find(':'))) throw;
  }
  return lift::export_lifted(bound_to_lift(options, session, *program), format);
}

ExitCode write_as(const PlanOptions& options, Session& session, const std::string& format) {
  const std::vector<std::string>& executors = program::executor_format_names();
  std::vector<std::string> choices{"plan"};
  choices.insert(choices.end(), executors.begin(), executors.end());
  choice_value("--to", format, choices);
  if (format == "plan") {
    write_or_print(options.output, plan::write_plan(load_or_lift(options, session)));
    return ExitCode::done;
  }
  const auto executor = static_cast<program::ExecutorFormat>(std::ranges::find(executors, format) -
                                                             executors.begin());
  const machine::SharedMachine machine = machine_of(options, session);
  if (const std::optional<plan::Plan> plan = read_plan_file(options.input, session)) {
    write_or_print(
        options.output,
        program::export_plan(*plan, executor, parameter_values(options.parameters), machine.get()));
  } else if (const auto built_in = watched(options, session, [&] {
               return program::plan_of_built_in(
                   options.input, options_for(options, session, machine), &session.monitor);
             })) {
    write_or_print(options.output,
                   program::export_plan(plan_as_shaped(options, built_in->plan), executor,
                                        built_in->lowering, machine.get()));
  } else {
    write_or_print(options.output, converted(options, session, executor));
  }
  return ExitCode::done;
}

ExitCode make(const PlanOptions& options, Session& session) {
  if (plan::find_template(options.input, &session.registry) == nullptr) {
    if (program::find_kernel(options.input, &session.registry) != nullptr)
      throw Failure("'" + options.input + "' is a program without a plan", {},
                    "run, check and replay take it");
    const std::vector<std::string> names = names_of(plan::templates(&session.registry));
    throw Failure("'" + options.input + "' is not a template", {},
                  suggest(options.input, names, "'hemiola plan show' lists them"));
  }
  return write_as(options, session, options.format.empty() ? "plan" : options.format);
}

ExitCode convert(const PlanOptions& options, Session& session) {
  if (options.format.empty()) {
    throw Failure("no format is given", SourceLocation{.file = "--to"},
                  "there are: plan, " + joined(program::executor_format_names()));
  }
  return write_as(options, session, options.format);
}

void print_parameters(const std::vector<plan::ParameterInfo>& parameters) {
  for (const plan::ParameterInfo& parameter : parameters) {
    std::cout << "    " << parameter.name << '=' << parameter.default_value << "  "
              << parameter.description;
    for (std::size_t i = 0; i < parameter.choices.size(); ++i)
      std::cout << (i == 0 ? ": " : "|") << parameter.choices[i];
    std::cout << '\n';
  }
}

void print_templates(const Session& session) {
  for (const plan::TemplateInfo& info : plan::templates(&session.registry)) {
    std::cout << info.name << ": " << info.description << '\n';
    print_parameters(program::parameters_of(info.name, &session.registry));
  }
}

ExitCode list(const PlanOptions&, Session& session) {
  std::vector<std::pair<std::string, std::string>> all;
  for (const plan::TemplateInfo& info : plan::templates(&session.registry))
    all.emplace_back(info.name, info.description);
  for (const program::KernelInfo& info : program::kernels(&session.registry))
    all.emplace_back(info.name, info.description);
  std::size_t width = 0;
  for (const auto& [name, description] : all) width = std::max(width, name.size());
  for (const auto& [name, description] : all)
    std::cout << name << std::string(width + 2 - name.size(), ' ') << description << '\n';
  return ExitCode::done;
}

ExitCode show_plan(const PlanOptions& options, const plan::Plan& plan) {
  std::optional<int> rank;
  if (!options.rank.empty()) rank = int_value("--rank", options.rank, 0, plan.ranks - 1);
  if (!options.waves.empty()) {
    std::vector<std::string> names;
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      names.push_back(plan.tensors[t].name);
      if (names.back() != options.waves) continue;
      report::print_waves(std::cout, plan, rank.value_or(0), static_cast<std::int32_t>(t));
      return ExitCode::done;
    }
    throw Failure("the plan has no tensor '" + options.waves + "'",
                  SourceLocation{.file = "--waves"}, suggest(options.waves, names));
  }
  if (options.graph.empty()) {
    report::print_plan(std::cout, plan, rank);
    return ExitCode::done;
  }
  const std::string graph = choice_value("--graph", options.graph, {"mermaid", "dot"});
  std::cout << (graph == "dot" ? report::to_dot(plan, rank) : report::to_mermaid(plan, rank));
  return ExitCode::done;
}

void print_buffers(const program::Program& program) {
  for (const program::Buffer& buffer : program.buffers) {
    std::cout << "buffer " << buffer.name << ": ";
    if (buffer.kind == program::BufferKind::fifo) {
      std::cout << to_string(buffer.bytes);
    } else if (!buffer.chunks.empty()) {
      const auto [least, most] = std::ranges::minmax_element(buffer.chunks);
      std::cout << *least;
      if (*most > *least) std::cout << " to " << *most;
      std::cout << " chunks";
    }
    if (buffer.alias >= 0) {
      std::cout << " (shares memory with " << program.buffers[index(buffer.alias)].name << ")";
    }
    std::cout << '\n';
  }
}

void print_operations(const program::Program& program) {
  std::map<std::string, std::int64_t> operations;
  for (const program::Body& body : program.bodies)
    for (const program::Op& op : body.ops) ++operations[std::string(name_of(op.kind))];
  std::cout << "operations of " << program.bodies.size() << " bodies:";
  for (const auto& [name, count] : operations) std::cout << ' ' << name << ' ' << count;
  std::cout << '\n';
}

ExitCode show(const PlanOptions& options, Session& session) {
  if (options.input.empty()) {
    print_templates(session);
    return ExitCode::done;
  }
  // What is said of plans only is said of the plan that a program follows.
  if (!options.graph.empty() || !options.rank.empty() || !options.waves.empty())
    return show_plan(options, load_or_lift(options, session));
  if (const std::optional<plan::Plan> plan = load_plan(options, session))
    return show_plan(options, *plan);
  const study::SharedProgram loaded = load_one_program(options, session);
  const program::Program& program = *loaded;
  std::cout << program.name << ": " << name_of(program.collective) << ", " << program.ranks
            << " ranks, protocol " << name_of(program.protocol)
            << (program.in_place ? ", in place" : "") << ", format " << program.format << '\n';
  const DataType type = DataType::float32;
  std::cout << "sizes: multiples of " << to_string(program.next_legal_size({1}, type)) << " for "
            << name_of(type) << '\n';
  int least = INT32_MAX, most = 0;
  for (int rank = 0; rank < program.ranks; ++rank) {
    least = std::min(least, program.workgroups(rank));
    most = std::max(most, program.workgroups(rank));
  }
  std::cout << "workgroups per rank: " << least;
  if (most > least) std::cout << " to " << most;
  std::cout << '\n';
  print_buffers(program);
  print_operations(program);
  return ExitCode::done;
}

using PlanHandler = ExitCode (*)(const PlanOptions&, Session&);

CLI::App* add_plan_verb(CLI::App& parent, Session& session,
                        const std::shared_ptr<PlanOptions>& options, const char* name,
                        PlanHandler handler, const char* description, const char* examples) {
  CLI::App* verb = add_verb(parent, name, description, examples);
  on_call(*verb, session, options, handler);
  const AddOptions add(*verb);
  add("INPUT", options->input, "a file or a template", "");
  add("--ranks", options->ranks, "ranks of a template; 8 without a machine", "N");
  add("--mesh", options->mesh, "the ranks as a mesh: 8, 2x4", "AxB");
  add("-m,--machine", options->machine.machine,
      "a machine whose links rings, trees and synthesis follow", "NAME|FILE");
  add("--gpu", options->machine.gpu, "device model of GPUs whose file names none", "MODEL");
  add("--set", options->machine.set, "any parameter of the machine", "NAME=VALUE");
  add("--param", options->parameters, "parameter of a template: channels=8", "NAME=VALUE");
  add("--size", options->size, "of a program: the size at which it is lifted to a plan", "SIZE");
  verb->add_flag("--round-size", options->round_size,
                 "for a size that the program cannot take, the next one that it can");
  add("--shape", options->shape, "make it a plan of elements: shape of what nccl-tests calls size",
      "MxN");
  add("--dtype", options->dtype, "... of this type", "TYPE");
  verb->add_option("--axis", options->axis, "... cut into chunks along this axis")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_flag("--quiet", session.quiet, "no warnings");
  return verb;
}

}  // namespace

void add_plan(CLI::App& app, Session& session) {
  CLI::App* group = add_group(app, session, "plan", "make, show and convert plans and programs",
                              "  hemiola plan make all-gather/ring --ranks 4 -o plan.json\n"
                              "  hemiola plan convert plan.xml --to mscclpp -o plan.json",
                              "list, make, show, convert");
  const auto options = std::make_shared<PlanOptions>();
  on_call(*add_verb(*group, "list", "the built-in plans and kernels, each in a line",
                    "  hemiola plan list | grep all-to-all"),
          session, options, list);
  CLI::App* const made = add_plan_verb(
      *group, session, options, "make", make, "write the plan or program of a template",
      "  hemiola plan make all-gather/direct --mesh 4 --shape 16x2 --param transfer=pull\n"
      "  hemiola plan make all-reduce/ring --param channels=1 --to msccl -o ring.xml");
  CLI::App* const shown = add_plan_verb(
      *group, session, options, "show", show,
      "a plan as a table per rank or a graph, a program in short; without one, all templates",
      "  hemiola plan show all-reduce/ring --ranks 4 --rank 0\n"
      "  hemiola plan show plan.json --graph mermaid");
  const AddOptions add(*shown);
  add("--graph", options->graph, "mermaid|dot: transfers and what they wait for", "FORMAT");
  add("--rank", options->rank, "only this rank", "R");
  add("--waves", options->waves, "when the parts of this tensor arrive on --rank (0), in steps",
      "TENSOR");
  CLI::App* const converted = add_plan_verb(
      *group, session, options, "convert", convert,
      "write a plan or program for an executor, or a program as a plan",
      "  hemiola plan convert plan.xml --to mscclpp -o plan.json\n"
      "  hemiola plan convert all-gather/hierarchical --ranks 8 --to msccl > plan.xml");
  for (CLI::App* verb : {made, converted}) {
    const AddOptions add_output(*verb);
    add_output("--to", options->format,
               "plan|mscclpp|msccl|msccl:microsoft|msccl:rccl; all but the first of any plan "
               "that does not "
               "compute, within what their executors have room for",
               "FORMAT");
    add_output("-o,--output", options->output, "where to write; else standard output", "FILE");
  }
}

}  // namespace hemiola::cli
