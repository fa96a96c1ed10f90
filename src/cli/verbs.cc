// What all verbs have in common: their shape in the parser, and arguments that nobody knows.
#include <string>
#include <vector>

#include "cli/cli.h"
#include "core/lists.h"

namespace hemiola::cli {
namespace {

std::vector<std::string> option_names(const CLI::App& verb) {
  std::vector<std::string> names;
  for (const CLI::Option* option : verb.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

std::vector<std::string> verb_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* verb : app.get_subcommands({})) names.push_back(verb->get_name());
  return names;
}

/// "hemiola machine show"
std::string full_name(const CLI::App& verb) {
  const std::string& name = verb.get_name();
  return verb.get_parent() == nullptr ? name : full_name(*verb.get_parent()) + ' ' + name;
}

[[noreturn]] void fail_verb(const CLI::App& app, const std::string& name) {
  const std::vector<std::string> verbs = verb_names(app);
  throw Failure("unknown verb '" + name + "'", {},
                suggest(name, verbs, "there are: " + joined(verbs)));
}

void reject_extras_of(const CLI::App& app) {
  const std::vector<std::string> extras = app.remaining();
  const bool has_verbs = !app.get_subcommands({}).empty();
  // The options of a verb that there is not are nobody's fault.
  if (has_verbs && !extras.empty() && !extras.front().starts_with('-'))
    fail_verb(app, extras.front());
  for (const std::string& extra : extras) {
    if (extra.size() < 2 || extra.front() != '-') continue;
    const std::string name = extra.substr(0, extra.find('='));
    throw Failure(
        "unknown option '" + name + "'", {},
        suggest(name, option_names(app), "'" + full_name(app) + " --help' shows the options"));
  }
  if (extras.empty()) return;
  if (has_verbs) fail_verb(app, extras.front());
  throw Failure("unexpected argument '" + extras.front() + "'");
}

}  // namespace

CLI::App* add_verb(CLI::App& app, const std::string& name, const std::string& description,
                   const std::string& examples) {
  CLI::App* verb = app.add_subcommand(name, description);
  verb->footer("Examples:\n" + examples);
  verb->allow_extras();
  return verb;
}

CLI::App* add_group(CLI::App& app, Session& session, const std::string& name,
                    const std::string& description, const std::string& examples,
                    const std::string& verbs) {
  CLI::App* group = add_verb(app, name, description, examples);
  group->require_subcommand(0, 1);
  group->callback([&session, group, verbs] {
    if (!group->get_subcommands().empty()) return;
    session.action = [name = group->get_name(), verbs]() -> ExitCode {
      throw Failure("'" + name + "' needs a verb", {}, "there are: " + verbs);
    };
  });
  return group;
}

void add_quiet(CLI::App& verb, Session& session) {
  if (verb.get_option_no_throw("--quiet") == nullptr)
    verb.add_flag("--quiet", session.quiet, "results only: no warnings, notes and progress");
}

void add_strict(CLI::App& app, Session& session) {
  if (app.get_option_no_throw("--quiet") != nullptr) {
    app.add_flag("--strict", session.strict,
                 "what a file has beside its format is an error, not ignored or converted");
  }
  for (CLI::App* verb : app.get_subcommands({})) add_strict(*verb, session);
}

void reject_extras(const CLI::App& app) {
  reject_extras_of(app);
  for (const CLI::App* verb : app.get_subcommands()) reject_extras(*verb);
}

bool is_typed(const Session& session, const char* option) {
  const CLI::Option* const known = session.verb->get_option_no_throw(option);
  return known != nullptr && known->count() > 0;
}

void refuse_typed(const Session& session, const std::vector<const char*>& options,
                  const std::string& message, const std::string& hint) {
  for (const char* option : options)
    if (is_typed(session, option)) throw Failure(message, {.file = option}, hint);
}

}  // namespace hemiola::cli
