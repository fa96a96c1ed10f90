// `hemiola VERB [INPUT] [options]` as a function: the program calls it, and the command that comes
// with the Python package.
#pragma once

namespace hemiola::cli {

/// Returns the exit code. Prints to standard output and standard error. Once a process: it handles
/// SIGINT and SIGTERM, and ends the process by one that came.
int command_line(int argc, char** argv);

}  // namespace hemiola::cli
