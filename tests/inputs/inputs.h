// The real files beside the project, and the machines that they were written for.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "core/units.h"
#include "machine/machine.h"
#include "program/bind/bound.h"

namespace hemiola::test {

/// A collective program that is right.
struct Input {
  std::string file;  ///< below ../shared/inputs
  std::string machine;
  std::string gpu;          ///< device model, where the machine names none
  std::vector<int> ranks;   ///< placement; empty: as many as the machine has
  Bytes timed_up_to;        ///< larger sizes are only checked here, to keep the tests short
  bool long_proof = false;  ///< proven in tools/test long only
};
void PrintTo(const Input& input, std::ostream* out);

const std::vector<Input>& right_programs();

/// ../shared/inputs, or a folder or file of it.
std::filesystem::path shared_input(const std::string& name = {});
/// The files of a folder of it, in order.
std::vector<std::filesystem::path> files_of(const std::string& folder);
/// Whether the real files are there at all.
bool have_inputs();

machine::Machine machine_of(const Input& input);
/// Bound to `size` or the next one that it can take.
program::Bound bound_at(const program::Program& program, machine::SharedMachine machine,
                        Bytes size);

}  // namespace hemiola::test

/// First line of every test here.
#define SKIP_WITHOUT_INPUTS()                                          \
  if (!::hemiola::test::have_inputs())                                 \
  GTEST_SKIP() << "\n*** SKIPPED: the real input files are not here (" \
               << ::hemiola::test::shared_input() << ") ***\n"
