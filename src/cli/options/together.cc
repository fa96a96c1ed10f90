#include "cli/options/together.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <span>
#include <utility>

#include "cli/options/inputs.h"
#include "cli/options/values.h"
#include "core/lists.h"
#include "core/text.h"
#include "study/laboratory/database_head.h"
#include "study/support/digest.h"

namespace hemiola::cli {
namespace {

/// How a command is shared out, and where its results go: both change nothing of the results.
constexpr std::string_view kSharing[] = {"--slurm", "--slurm-script", "--slurm-option"};
constexpr std::string_view kOutputs[] = {
    "--parts", "--json",   "--csv",  "--report", "--trace",    "--threads", "--top",
    "-o",      "--output", "--emit", "--bench",  "--database", "--output"};

bool is_among(std::span<const std::string_view> names, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  return std::ranges::find(names, name) != names.end();
}

/// The words without options of these names and their values.
std::vector<std::string> without(const std::vector<std::string>& words,
                                 std::span<const std::string_view> names) {
  std::vector<std::string> kept;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (!is_among(names, words[i]))
      kept.push_back(words[i]);
    else if (words[i].find('=') == std::string::npos)
      ++i;
  return kept;
}

/// As one word of a shell.
std::string quoted(const std::string& word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

/// What `sbatch FILE` prints and ends with is its own.
int run_sbatch(const std::string& file) {
  const pid_t child = fork();
  if (child == 0) {
    execlp("sbatch", "sbatch", file.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return 127;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 127;
}

}  // namespace

void add_together(CLI::App& verb, TogetherOptions& options) {
  const AddOptions add(verb);
  add("--parts", options.parts,
      "folder in which processes share out the work (docs/scale.md); under mpirun and in a Slurm "
      "array beside the output",
      "FOLDER");
  add.count("--slurm", options.slurm, 1, 100'000,
            "submit this command as a Slurm array of so many tasks");
  add("--slurm-script", options.slurm_script, "... or only write its script", "FILE");
  add("--slurm-option", options.slurm_options,
      "a line of the script: '--partition=cpu'; repeatable", "OPTION");
}

Together::Together(const TogetherOptions& options, const Session& session, std::string usual)
    : options_(options), session_(session), team_(study::team_of_environment()) {
  folder_ = options.parts;
  // What processes that were killed have left is taken by the next command, whoever starts it.
  if (folder_.empty() && (team_.size > 1 || options.slurm || std::filesystem::is_directory(usual)))
    folder_ = std::move(usual);
  if (!folder_.empty()) return;
  if (options.slurm)
    throw Failure("the tasks of an array need a folder that all of them see", {.file = "--slurm"},
                  "for example --parts shared_folder");
  if (team_.size > 1)
    throw Failure(fmt::format("{} processes were started ({}), which need a folder to share the "
                              "work in",
                              team_.size, team_.said_by),
                  {.file = "--parts"}, "for example --parts shared_folder");
}

std::string Together::script(int tasks) const {
  std::string text =
      fmt::format("#!/bin/sh\n#SBATCH --job-name=hemiola\n#SBATCH --array=0-{}\n", tasks - 1);
  for (const std::string& option : options_.slurm_options) text += "#SBATCH " + option + '\n';
  text +=
      "# Tasks may be killed: the same command once more, with or without Slurm, makes what is "
      "left.\n";
  text += "exec " + quoted(session_.program);
  for (const std::string& word : without(session_.words, kSharing)) text += ' ' + quoted(word);
  return text + '\n';
}

bool Together::submitted() const {
  if (!options_.slurm) {
    if (!options_.slurm_script.empty() || !options_.slurm_options.empty())
      throw Failure("goes with --slurm N only", {.file = "--slurm-script, --slurm-option"});
    return false;
  }
  const bool only_written = !options_.slurm_script.empty();
  const std::string file = only_written ? options_.slurm_script : folder_ + ".sbatch";
  write_file(file, script(*options_.slurm));
  if (only_written) {
    std::cout << fmt::format("{}: an array of {} tasks; submit it with 'sbatch {}'\n", file,
                             *options_.slurm, file);
    return true;
  }
  const int status = run_sbatch(file);
  if (status == 127)
    throw Failure("cannot be submitted: there is no sbatch", {.file = file},
                  "the script is there: submit it where Slurm is");
  if (status != 0) throw Failure("was refused by sbatch", {.file = file});
  return true;
}

std::unique_ptr<study::Parts> Together::open(std::string_view head) const {
  if (folder_.empty()) return nullptr;
  return std::make_unique<study::Parts>(folder_, head);
}

std::string Together::head_of_arguments(std::string_view more) const {
  std::string head = fmt::format("{}\n{}\n", study::results_version(HEMIOLA_VERSION), more);
  for (const std::string& word : without(without(session_.words, kSharing), kOutputs)) {
    if (word == "--quiet") continue;
    head += word;
    const std::string file = word.substr(word.find('=') + 1);  // of "--measured=FILE" the file
    if (is_file(file)) head += ' ' + study::digest(read_file(file));
    head += '\n';
  }
  return head;
}

}  // namespace hemiola::cli
