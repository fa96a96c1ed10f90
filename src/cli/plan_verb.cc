// hemiola plan: make programs from templates, look at programs, convert them between formats.
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>

#include "cli/cli.h"
#include "cli/inputs.h"
#include "cli/notices.h"
#include "core/text.h"
#include "plan/template.h"
#include "program/built_in.h"

namespace hemiola::cli {
namespace {

struct PlanOptions {
  std::string input;
  std::string ranks = "8";
  std::vector<std::string> parameters;
  std::string format;
  std::string output;
};

program::Program load(const PlanOptions& options, const Session& session) {
  if (program_names(options.input).size() > 1) {
    throw Failure("'" + options.input + "' names a collective, not an algorithm", {},
                  "'hemiola plan show' lists the built-ins");
  }
  const int ranks = rank_count_value(options.ranks);
  if (ranks == 0) {
    throw Failure("must be a number here", SourceLocation{.file = "--ranks"},
                  "for example --ranks 8");
  }
  program::Program program =
      load_program(options.input, ProgramOptions{.parameters = options.parameters}, ranks);
  Notices(session.quiet).show(program.warnings);
  return program;
}

void write(const PlanOptions& options, const std::string& text) {
  if (options.output.empty()) {
    std::cout << text;
  } else {
    write_file(options.output, text);
  }
}

ExitCode write_program(const PlanOptions& options, const program::Program& program) {
  if (options.format.empty()) {
    throw Failure("no format is given", SourceLocation{.file = "--to"},
                  "there are: mscclpp, msccl");
  }
  const std::string format = choice_value("--to", options.format, {"mscclpp", "msccl"});
  write(options,
        format == "mscclpp" ? program::write_mscclpp(program) : program::write_msccl(program));
  return ExitCode::done;
}

ExitCode make(const PlanOptions& options, const Session& session) {
  if (!program::is_built_in(options.input)) {
    const std::string hint = suggest(options.input, program::built_in_names());
    throw Failure("'" + options.input + "' is not a built-in", {},
                  hint.empty() ? "'hemiola plan show' lists them" : hint);
  }
  return write_program(options, load(options, session));
}

ExitCode convert(const PlanOptions& options, const Session& session) {
  return write_program(options, load(options, session));
}

void print_templates() {
  for (const plan::TemplateInfo& info : plan::templates()) {
    std::cout << info.name << ": " << info.description << '\n';
    for (const plan::ParameterInfo& parameter : program::parameters_of(info.name)) {
      std::cout << "    " << parameter.name << '=' << parameter.default_value << "  "
                << parameter.description;
      for (std::size_t i = 0; i < parameter.choices.size(); ++i) {
        std::cout << (i == 0 ? ": " : "|") << parameter.choices[i];
      }
      std::cout << '\n';
    }
  }
}

void print_buffers(const program::Program& program) {
  for (const program::Buffer& buffer : program.buffers) {
    std::cout << "buffer " << buffer.name << ": ";
    if (buffer.kind == program::BufferKind::fifo) {
      std::cout << to_string(buffer.bytes);
    } else if (!buffer.chunks.empty()) {
      const auto [least, most] = std::minmax_element(buffer.chunks.begin(), buffer.chunks.end());
      std::cout << *least;
      if (*most > *least) std::cout << " to " << *most;
      std::cout << " chunks";
    }
    if (buffer.alias >= 0) {
      std::cout << " (shares memory with "
                << program.buffers[static_cast<std::size_t>(buffer.alias)].name << ")";
    }
    std::cout << '\n';
  }
}

void print_operations(const program::Program& program) {
  std::map<std::string, std::int64_t> operations;
  for (const program::Body& body : program.bodies) {
    for (const program::Op& op : body.ops) ++operations[std::string(name_of(op.kind))];
  }
  std::cout << "operations of " << program.bodies.size() << " bodies:";
  for (const auto& [name, count] : operations) std::cout << ' ' << name << ' ' << count;
  std::cout << '\n';
}

ExitCode show(const PlanOptions& options, const Session& session) {
  if (options.input.empty()) {
    print_templates();
    return ExitCode::done;
  }
  const program::Program program = load(options, session);
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

using Handler = ExitCode (*)(const PlanOptions&, const Session&);

CLI::App* add(CLI::App& parent, Session& session, const std::shared_ptr<PlanOptions>& options,
              const char* name, Handler handler, const char* description, const char* examples) {
  CLI::App* verb = add_verb(parent, name, description, examples);
  verb->callback([options, &session, handler] {
    session.action = [options, &session, handler] { return handler(*options, session); };
  });
  verb->add_option("PROGRAM", options->input, "a file or a built-in")->type_name("");
  verb->add_option("--ranks", options->ranks, "ranks of a built-in")
      ->type_name("N")
      ->capture_default_str();
  verb->add_option("--param", options->parameters, "parameter of a built-in: channels=8")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  verb->add_flag("--quiet", session.quiet, "no warnings");
  return verb;
}

}  // namespace

void add_plan(CLI::App& app, Session& session) {
  CLI::App* group = add_verb(app, "plan", "make, show and convert programs",
                             "  hemiola plan show\n"
                             "  hemiola plan convert plan.xml --to mscclpp -o plan.json");
  group->require_subcommand(0, 1);
  group->callback([&session, group] {
    if (!group->get_subcommands().empty()) return;
    session.action = []() -> ExitCode {
      throw Failure("'plan' needs a verb", {}, "there are: make, show, convert");
    };
  });
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* const made =
      add(*group, session, options, "make", make, "write a built-in as a file",
          "  hemiola plan make all-reduce/ring --param channels=1 --to msccl -o ring.xml\n"
          "  hemiola plan make all-gather/direct --ranks 4 --to mscclpp");
  add(*group, session, options, "show", show, "a program in short; without one, all built-ins",
      "  hemiola plan show\n  hemiola plan show plan.json");
  CLI::App* const converted =
      add(*group, session, options, "convert", convert, "write a program in another format",
          "  hemiola plan convert plan.xml --to mscclpp -o plan.json\n"
          "  hemiola plan convert plan.json --to msccl > plan.xml");
  for (CLI::App* verb : {made, converted}) {
    verb->add_option("--to", options->format, "mscclpp|msccl")->type_name("FORMAT");
    verb->add_option("-o,--output", options->output, "where to write; else standard output")
        ->type_name("FILE");
  }
}

}  // namespace hemiola::cli
