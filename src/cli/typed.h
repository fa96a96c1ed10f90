// A command line as people type it, in the words of the parser: `help run`, `version`, and
// nccl-tests' own (`run all_reduce_perf -b 8 -e 128M -f 2 -g 8`).
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hemiola::cli {

struct Session;

struct Typed {
  std::vector<std::string> words;  ///< for the parser
  std::vector<std::string> notes;  ///< what was taken for granted
};

/// `words`: the arguments, without the name of the program. Failure: a flag of nccl-tests that has
/// no meaning here, or is wrong.
Typed typed(std::vector<std::string> words);

/// `-` in place of a file that is read is what standard input has: the parser puts the name of a
/// file with that in its place, which is Session::input from then on. Failure: for two files.
void take_standard_input(CLI::App& app, Session& session);
/// What is read from standard input is called that.
std::string with_typed_names(std::string text, const Session& session);
/// Files that are written, behind the parser: `-` is standard output, and then nothing else goes
/// there. Failure, before a long run and not after it: two options write to one place, a file that
/// cannot be written, a page that this build cannot make. Nothing is created.
void take_outputs(const CLI::App& app);

/// Behind `run`: "all_reduce_perf", "./build/alltoall_perf".
bool is_nccl_test(const std::string& word);
/// `words`: the name and the flags of nccl-tests, with options of `run` in their long form among
/// them (--machine, --json, ...). What nccl-tests reads of a flag is what it means.
Typed nccl_test(const std::vector<std::string>& words);

}  // namespace hemiola::cli
