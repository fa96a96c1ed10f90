// hemiola VERB [INPUT] [options]: reads the command line, carries out the verb and renders what
// went wrong. Results go to standard output, everything else to standard error.
#include <algorithm>
#include <exception>
#include <iostream>
#include <memory>
#include <new>

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/notices.h"
#include "cli/pages.h"
#include "cli/typed.h"
#include "hemiola/command.h"

namespace hemiola::cli {
namespace {

constexpr const char* kProgramExamples =
    "Examples:\n"
    "  hemiola run all-reduce/ring --machine dgx-h100 --size 1KiB:1GiB:x2\n"
    "  hemiola check plan.json\n"
    "Exit codes: 0 done; 1 internal error; 2 bad usage or input; 3 the program is wrong;\n"
    "4 a wait that cannot end; 5 a limit that was asked for is exceeded (diff --fail-above);\n"
    "6 not proven, or not judged (check, compile; --allow-partial makes it 0);\n"
    "130 (of the shell) after Ctrl-C.";

std::string version() {
  return "hemiola " HEMIOLA_VERSION "\nbuild type: " HEMIOLA_BUILD_TYPE
         "\ncompiler: " HEMIOLA_COMPILER;
}

/// The command line as it stands in results: without the path of the program, so that it is the
/// same wherever that is installed.
std::string command_text(int argc, char** argv) {
  std::string text = "hemiola";
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool plain =
        !argument.empty() && argument.find_first_of(" \t\n'\"\\$&|;<>()*?") == std::string::npos;
    text += ' ' + (plain ? argument : "'" + argument + "'");
  }
  return text;
}

std::unique_ptr<CLI::App> make_parser(Session& session) {
  auto app = std::make_unique<CLI::App>(
      "A workbench for communication inside and between GPUs: checks collective programs and "
      "times\n"
      "them on a machine, cache line by cache line.",
      "hemiola");
  app->set_version_flag("--version", version());
  app->footer(kProgramExamples);
  app->allow_extras();
  app->require_subcommand(0, 1);
  add_run(*app, session);
  add_check(*app, session);
  add_machine(*app, session);
  add_plan(*app, session);
  add_validate(*app, session);
  add_sweep(*app, session);
  add_replay(*app, session);
  add_diff(*app, session);
  add_explore(*app, session);
  add_compile(*app, session);
  add_tune(*app, session);
  add_workload(*app, session);
  add_completion(*app, session);
  add_man(*app, session);
  add_strict(*app, session);
  format_help(*app);
  return app;
}

ExitCode carry_out(int argc, char** argv, Session& session) {
  if (!session.registry.problems().empty()) throw Failure(session.registry.problems());
  session.command = command_text(argc, argv);
  session.program = argv[0];
  session.words.assign(argv + 1, argv + argc);
  const std::unique_ptr<CLI::App> app = make_parser(session);
  Typed words = typed(session.words);
  session.remarks = words.notes;
  take_standard_input(*app, session);
  std::reverse(words.words.begin(), words.words.end());  // as the parser takes them
  try {
    app->parse(words.words);
  } catch (const CLI::Success& asked) {  // --help, --version
    app->exit(asked);
    return ExitCode::done;
  } catch (const CLI::ParseError& error) {
    throw Failure(error.what(), {},
                  "'hemiola --help' and 'hemiola VERB --help' show what there is");
  }
  reject_extras(*app);
  take_outputs(*app);
  session.verb = app.get();
  while (!session.verb->get_subcommands().empty())
    session.verb = session.verb->get_subcommands().front();
  if (!session.action) {
    std::cerr << app->help();
    return ExitCode::bad_input;
  }
  for (const std::string& remark : session.remarks) Notices(session).note(remark);
  return session.action();
}

}  // namespace

}  // namespace hemiola::cli

int hemiola::command(int argc, char** argv, const parts::Registry& registry) {
  using namespace cli;
  ExitCode code = ExitCode::internal;
  Session session(registry);
  try {
    code = carry_out(argc, argv, session);
    if (!std::cout.flush())
      throw Failure("standard output cannot be written", {}, {}, ExitCode::bad_input);
  } catch (const Failure& failure) {
    std::cout.flush();
    std::cerr << with_typed_names(failure.what(), session) << '\n';
    code = failure.code();
  } catch (const Interrupted&) {
    std::cout.flush();
    std::cerr << where_it_stood(session) << '\n';
    end_interrupted();
  } catch (const std::bad_alloc&) {
    std::cerr << "error: out of memory\n";
  } catch (const std::exception& error) {
    std::cerr << "internal error: " << error.what() << '\n';
  }
  return static_cast<int>(code);
}
