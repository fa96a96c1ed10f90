// What the parser says of itself: help in groups and as wide as the terminal, completions of
// shells, man pages.
#pragma once

#include <CLI/CLI.hpp>

#include "cli/cli.h"

namespace hemiola::cli {

/// Options in the groups Input, Machine, Engine and Output; descriptions wrapped at the width of
/// the terminal (COLUMNS where it is none, else 100), which lies between 60 and 140.
void format_help(CLI::App& app);

/// Whether an option names a file that is written.
bool is_output_file(const CLI::Option& option);

/// `completion SHELL` and `man FOLDER`.
void add_completion(CLI::App& app, Session& session);
void add_man(CLI::App& app, Session& session);

}  // namespace hemiola::cli
