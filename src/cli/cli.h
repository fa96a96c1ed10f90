// The verbs of the command line. Each is one file with one function that adds it to the parser; its
// options live as long as the parser does.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <streambuf>
#include <string>
#include <type_traits>
#include <vector>

#include "core/diagnostics.h"
#include "core/monitor.h"
#include "study/laboratory/experiment.h"

namespace hemiola::cli {

/// What the parser leaves behind: the verb to carry out, and what every verb may need to know.
struct Session {
  explicit Session(const parts::Registry& known) : registry(known), laboratory(&known) {}

  const parts::Registry& registry;  ///< what names mean
  std::string command;              ///< "hemiola run ...", as it stands in results
  std::vector<std::string> words;   ///< its arguments, after the name of the program
  std::string input;                ///< what standard input was read into; empty: nobody asked
  std::shared_ptr<std::streambuf> named_output;  ///< standard output, where it is called so
  std::vector<std::string> remarks;              ///< what typed() took for granted
  std::string program;                           ///< that name, as it was called
  std::function<ExitCode()> action;              ///< empty: no verb was given
  const CLI::App* verb = nullptr;                ///< that verb, with what was typed
  bool quiet = false;                            ///< --quiet: no warnings, notes and progress
  bool strict = false;           ///< --strict: what a reader ignored or converted is an error
  study::Laboratory laboratory;  ///< what every verb runs its experiments in
  // Where it stands, for the progress line and for who interrupts it (notices.h).
  Monitor monitor;
  std::string doing;  ///< "simulating all-reduce/ring at 64 MiB"; empty: nothing long
  struct Parts {
    std::int64_t done = 0, all = 0;
    std::string kind;     ///< "runs"
  } parts;                ///< of which `doing` is at one; less than 2 are not worth a word
  std::string kept_safe;  ///< what an interrupted verb leaves behind; empty: nothing
};

void add_run(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_machine(CLI::App& app, Session& session);
void add_plan(CLI::App& app, Session& session);
void add_validate(CLI::App& app, Session& session);
void add_sweep(CLI::App& app, Session& session);
void add_replay(CLI::App& app, Session& session);
void add_diff(CLI::App& app, Session& session);
void add_explore(CLI::App& app, Session& session);
void add_compile(CLI::App& app, Session& session);
void add_tune(CLI::App& app, Session& session);
void add_workload(CLI::App& app, Session& session);

/// A verb, ready for its options: its help ends with the worked examples, and arguments it does not
/// know are collected for reject_extras().
CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& description,
                   const std::string& examples);
/// A verb that has only verbs of its own, whose names are `verbs`: "show, list".
CLI::App* add_group(CLI::App& app, Session& session, const std::string& name,
                    const std::string& description, const std::string& examples,
                    const std::string& verbs);

/// What the verb does: `run(options, session)`, when the parser has filled them.
template <class Options>
void on_call(CLI::App& verb, Session& session, const std::shared_ptr<Options>& options,
             std::type_identity_t<ExitCode (*)(const Options&, Session&)> run) {
  verb.callback([options, &session, run] {
    session.action = [options, &session, run] { return run(*options, session); };
  });
}

/// --quiet, where the verb has none yet.
void add_quiet(CLI::App& verb, Session& session);

/// A verb with what `add_options` adds, and --quiet.
template <class Options>
void add_verb(CLI::App& app, Session& session, const std::string& name,
              const std::string& description, const std::string& examples,
              std::type_identity_t<void (*)(CLI::App&, Options&, Session&)> add_options,
              std::type_identity_t<ExitCode (*)(const Options&, Session&)> run) {
  CLI::App* verb = add_verb(app, name, description, examples);
  const auto options = std::make_shared<Options>();
  add_options(*verb, *options, session);
  add_quiet(*verb, session);
  on_call(*verb, session, options, run);
}

/// Whether the verb has this option, and it stands on the command line.
bool is_typed(const Session& session, const char* option);
/// Failure with this message at the first of these options that is.
void refuse_typed(const Session& session, const std::vector<const char*>& options,
                  const std::string& message, const std::string& hint);

/// Adds --strict to every verb that reads files, which are those that can be --quiet about them.
void add_strict(CLI::App& app, Session& session);

/// Failure with a suggestion for an argument that neither the parser nor the verb in use knows.
void reject_extras(const CLI::App& app);

}  // namespace hemiola::cli
