// A command line as people type it, in the words of the parser: `help run`, `version`, and
// nccl-tests' own (`run all_reduce_perf -b 8 -e 128M -f 2 -g 8`).
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace hemiola::cli {

struct Typed {
  std::vector<std::string> words;  ///< for the parser
  std::vector<std::string> notes;  ///< what was taken for granted
};

/// `words`: the arguments, without the name of the program. Failure: a flag of nccl-tests that has
/// no meaning here, or is wrong.
Typed typed(std::vector<std::string> words);

/// `-` in place of a file: an input is what standard input has, until the program ends; an output
/// goes to standard output, and then nothing else does. Returns the name that the input has now.
/// Failure: two of a kind.
std::string take_dashes(CLI::App& app, std::vector<std::string>& words);

/// Behind `run`: "all_reduce_perf", "./build/alltoall_perf".
bool is_nccl_test(const std::string& word);
/// `words`: the name and the flags of nccl-tests, with options of `run` in their long form among
/// them (--machine, --json, ...). What nccl-tests reads of a flag is what it means.
Typed nccl_test(const std::vector<std::string>& words);

}  // namespace hemiola::cli
