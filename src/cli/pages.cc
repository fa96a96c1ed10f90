#include "cli/pages.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <set>
#include <sstream>

#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/lists.h"
#include "core/text.h"

namespace hemiola::cli {
namespace {

std::size_t terminal_width() {
  winsize size{};
  std::size_t width = 0;
  if (::isatty(STDOUT_FILENO) != 0 && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    width = size.ws_col;
  if (const char* columns = std::getenv("COLUMNS"); width == 0 && columns != nullptr)
    width = static_cast<std::size_t>(std::strtoul(columns, nullptr, 10));
  return std::clamp<std::size_t>(width == 0 ? 100 : width, 60, 140);
}

class Pages : public CLI::Formatter {
 public:
  Pages() : width_(terminal_width()) { column_width(28); }

  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(option->get_description());
  }
  std::string make_subcommand(const CLI::App* verb) const override {
    std::stringstream out;
    CLI::detail::format_help(out, verb->get_display_name(true), wrapped(verb->get_description()),
                             get_column_width());
    return out.str();
  }

 private:
  std::string wrapped(const std::string& text) const {
    const std::size_t most = width_ - get_column_width();
    std::string made, line;
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (!line.empty() && line.size() + 1 + word.size() > most) {
        made += line + '\n';
        line.clear();
      }
      line += (line.empty() ? "" : " ") + word;
    }
    return made + line;
  }

  std::size_t width_;
};

const std::set<std::string, std::less<>>& output_files() {
  static const std::set<std::string, std::less<>> kAll{
      "json",   "csv", "trace", "report",     "output",       "out",
      "record", "job", "emit",  "thresholds", "slurm-script", "database"};
  return kAll;
}

/// Where an option stands in help. All else is input.
const char* group_of(const std::string& name) {
  static const std::set<std::string, std::less<>> kMachine{"machine", "gpu", "ranks", "set"};
  static const std::set<std::string, std::less<>> kEngine{
      "engine",  "launch", "warmup",   "iterations",   "one-host",     "no-fold", "skew",
      "threads", "seed",   "no-check", "detail",       "collectives",  "compute", "calls",
      "network", "parts",  "slurm",    "slurm-option", "no-contention"};
  static const std::set<std::string, std::less<>> kOfOutputs{
      "trace-lines", "record-rank", "record-at", "to", "quiet", "strict", "graph"};
  if (kMachine.contains(name)) return "Machine";
  if (kEngine.contains(name)) return "Engine";
  return output_files().contains(name) || kOfOutputs.contains(name) ? "Output" : "Input";
}

/// CLI11 lists groups in the order in which they first come.
void group_options(CLI::App& app) {
  for (CLI::Option* option : app.get_options())
    if (!option->get_lnames().empty()) option->group(group_of(option->get_lnames().front()));
  for (CLI::App* verb : app.get_subcommands({})) group_options(*verb);
}

struct Words {
  std::string verb;  ///< "run", "plan make"; empty: the program
  std::vector<std::string> all;
};

void words_of(const CLI::App& app, const std::string& path, std::vector<Words>& found) {
  Words made{.verb = path, .all = {}};
  for (const CLI::App* verb : app.get_subcommands({})) made.all.push_back(verb->get_name());
  for (const CLI::Option* option : app.get_options())
    for (const std::string& name : option->get_lnames()) made.all.push_back("--" + name);
  found.push_back(std::move(made));
  for (const CLI::App* verb : app.get_subcommands({}))
    words_of(*verb, path.empty() ? verb->get_name() : path + ' ' + verb->get_name(), found);
}

std::string bash_completion(const std::vector<Words>& all) {
  std::string cases;
  for (const Words& one : all)
    cases += fmt::format("    '{}') words='{}' ;;\n", one.verb, joined(one.all, " "));
  return "_hemiola() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} verb= words= next\n"
         "  for ((i = 1; i < COMP_CWORD; ++i)); do\n"
         "    next=${COMP_WORDS[i]}\n"
         "    [[ $next == -* ]] && break\n"
         "    case \" " +
         joined(
             all, [](const Words& one) { return one.verb; }, "|") +
         "| \" in *\" ${verb:+$verb }$next|\"* | *\"|${verb:+$verb "
         "}$next|\"*) verb=\"${verb:+$verb }$next\" ;; "
         "*) break ;; esac\n"
         "  done\n"
         "  case $verb in\n" +
         cases +
         "  esac\n"
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
         "  [[ $current != -* ]] && COMPREPLY+=($(compgen -f -- \"$current\"))\n"
         "}\n"
         "complete -o filenames -F _hemiola hemiola\n";
}

std::string fish_completion(const std::vector<Words>& all) {
  std::string text;
  for (const Words& one : all) {
    const std::string where = one.verb.empty() ? "__fish_use_subcommand"
                                               : "__fish_seen_subcommand_from " +
                                                     one.verb.substr(one.verb.rfind(' ') + 1);
    for (const std::string& word : one.all)
      text += word.starts_with("--")
                  ? fmt::format("complete -c hemiola -n '{}' -l {}\n", where, word.substr(2))
                  : fmt::format("complete -c hemiola -n '{}' -f -a {}\n", where, word);
  }
  return text;
}

ExitCode print_completion(const std::string& shell, const CLI::App& app) {
  std::vector<Words> all;
  words_of(app, "", all);
  if (shell == "fish")
    std::cout << fish_completion(all);
  else if (shell == "zsh")
    std::cout << "autoload -Uz bashcompinit && bashcompinit\n" << bash_completion(all);
  else if (shell == "bash")
    std::cout << bash_completion(all);
  else
    throw Failure("'" + shell + "' is no shell that completions are for", {},
                  "bash, zsh and fish; for example: eval \"$(hemiola completion bash)\"");
  return ExitCode::done;
}

/// A line of a man page: what troff would take for a request, or for an escape, stands as it is.
std::string troff(const std::string& text) {
  std::string made;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) made += "\\&";
    if (c == '\\') {
      made += "\\e";
    } else if (c == '-') {
      made += "\\-";
    } else {
      made += c;
    }
    begins = c == '\n';
  }
  return made;
}

std::string man_page(const CLI::App& verb, const std::string& name) {
  std::string text = fmt::format(
      ".TH {} 1 \"\" \"hemiola {}\"\n.SH NAME\n{} \\- {}\n", name, HEMIOLA_VERSION, troff(name),
      troff(verb.get_description().substr(0, verb.get_description().find('\n'))));
  std::string options;
  for (const CLI::Option* option : verb.get_options())
    options += fmt::format(".TP\n.B {}\n{}\n", troff(option->get_name(true, true)),
                           troff(option->get_description()));
  if (!options.empty()) text += ".SH OPTIONS\n" + options;
  std::string verbs;
  for (const CLI::App* one : verb.get_subcommands({}))
    verbs += fmt::format(".TP\n.B {}\n{}\n", troff(one->get_name()), troff(one->get_description()));
  if (!verbs.empty()) text += ".SH VERBS\n" + verbs;
  if (!verb.get_footer().empty())
    text += ".SH EXAMPLES\n.nf\n" + troff(verb.get_footer()) + "\n.fi\n";
  return text;
}

void write_pages(const CLI::App& verb, const std::string& name, const std::string& folder) {
  write_file((std::filesystem::path(folder) / (name + ".1")).string(), man_page(verb, name));
  for (const CLI::App* one : verb.get_subcommands({}))
    write_pages(*one, name + '-' + one->get_name(), folder);
}

}  // namespace

bool is_output_file(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return (type == "FILE" || type == "PREFIX") && !option.get_lnames().empty() &&
         output_files().contains(option.get_lnames().front());
}

void format_help(CLI::App& app) {
  app.formatter(std::make_shared<Pages>());
  group_options(app);
  for (CLI::App* verb : app.get_subcommands({})) format_help(*verb);
}

void add_completion(CLI::App& app, Session& session) {
  CLI::App* verb = add_verb(app, "completion", "completions for bash, zsh or fish",
                            "  eval \"$(hemiola completion bash)\"     # in ~/.bashrc\n"
                            "  hemiola completion fish > ~/.config/fish/completions/hemiola.fish");
  const auto shell = std::make_shared<std::string>("bash");
  verb->add_option("SHELL", *shell, "bash, zsh or fish");
  verb->callback([&session, shell, &app] {
    session.action = [shell, &app] { return print_completion(*shell, app); };
  });
}

void add_man(CLI::App& app, Session& session) {
  CLI::App* verb = add_verb(app, "man", "write the man pages of all verbs into a folder",
                            "  hemiola man ~/.local/share/man/man1 && man hemiola-run");
  const auto folder = std::make_shared<std::string>(".");
  verb->add_option("FOLDER", *folder, "a folder; else this one");
  verb->callback([&session, folder, &app] {
    session.action = [folder, &app] {
      std::error_code failed;
      std::filesystem::create_directories(*folder, failed);
      write_pages(app, "hemiola", *folder);
      return ExitCode::done;
    };
  });
}

}  // namespace hemiola::cli
