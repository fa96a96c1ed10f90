// Verbs that several processes carry out together (docs/scale.md).
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/cli.h"
#include "study/support/parts.h"

namespace hemiola::cli {

struct TogetherOptions {
  std::string parts;                       ///< folder; empty: see Together
  std::optional<int> slurm;                ///< how many tasks of an array
  std::string slurm_script;                ///< where to write it only; empty: it is submitted
  std::vector<std::string> slurm_options;  ///< lines #SBATCH
};
/// --parts and those of Slurm.
void add_together(CLI::App& verb, TogetherOptions& options);

/// What the options, and whoever started the processes, say.
class Together {
 public:
  /// `usual`: the folder beside an output, where none is given; empty: there is no output. Failure
  /// for several processes without a folder.
  Together(const TogetherOptions& options, const Session& session, std::string usual);

  /// Whether the command was to be written, or submitted, as a Slurm array: then this was done, and
  /// there is nothing left to do. Failure: sbatch is not there, or refuses.
  bool submitted() const;

  bool shares() const { return !folder_.empty(); }
  /// The folder, open; null: this process is alone. `head`: all that results depend on.
  std::unique_ptr<study::Parts> open(std::string_view head) const;
  /// The head of a verb whose results depend on its arguments, the files that these name and what
  /// `more` says: arguments that say where results go to do not count.
  std::string head_of_arguments(std::string_view more) const;
  /// Of several processes one prints and writes.
  bool is_first() const { return team_.rank == 0; }

 private:
  std::string script(int tasks) const;

  const TogetherOptions& options_;
  const Session& session_;
  study::Team team_;
  std::string folder_;  ///< empty: alone
};

}  // namespace hemiola::cli
