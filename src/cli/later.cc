// Verbs of the design that a later version brings: known, so that the answer is clear.
#include "cli/cli.h"

namespace hemiola::cli {

void add_later_verbs(CLI::App& app, Session& session) {
  struct Verb {
    const char* name;
    const char* description;
  };
  constexpr Verb kVerbs[] = {{"explore", "every overlap schedule of an operator on a machine"},
                             {"compile", "a Triton kernel and a plan into one fused kernel"},
                             {"tune", "choose the parameters of a fused kernel"}};
  for (const Verb& verb : kVerbs) {
    CLI::App* later = app.add_subcommand(verb.name, verb.description);
    later->group(kLaterGroup);
    later->allow_extras();
    later->footer("This verb comes with a later version.");
    later->callback([&session, name = std::string(verb.name)] {
      session.action = [name]() -> ExitCode {
        throw Failure("'" + name + "' comes with a later version", {},
                      "this one has: run, check, machine, plan, validate, sweep, replay");
      };
    });
  }
}

}  // namespace hemiola::cli
