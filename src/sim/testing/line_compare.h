// What the tests of the line engine share: it gives what the reference engine gives.
#pragma once

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "sim/line/line.h"
#include "sim/testing/compare_results.h"
#include "sim/testing/random_cases.h"

namespace hemiola::sim::test {

/// Empty if both engines agree, folded and not; `result` is what they say.
inline std::string compare(const machine::Machine& machine, const program::Bound& program,
                           Options options, Result* result = nullptr) {
  options.engine = Engine::reference;
  options.fold = false;
  const Result a = simulate(machine, program, options);
  if (const std::string wrong = wrong_in(a); !wrong.empty()) return wrong;
  if (result != nullptr) *result = a;
  options.engine = Engine::line;
  std::string difference = differs(a, simulate(machine, program, options));
  options.fold = true;
  const Result folded = simulate(machine, program, options);
  if (difference.empty() && folded.simulated_ranks < program.ranks())
    difference = differs(a, folded);
  return difference;
}

/// Inside a property.
inline Result expect_equal(const machine::Machine& machine, const program::Bound& program,
                           const Options& options) {
  Result result;
  const std::string difference = compare(machine, program, options, &result);
  if (!difference.empty())
    RC_FAIL(machine.name + " " + program.name() + " " + std::to_string(program.size().count) +
            ": " + difference);
  return result;
}

/// Programs on machines as they are shipped: caches, many CUs, switches, links that GPUs share.
struct Shipped {
  const char* program;
  const char* machine;
  int ranks;
  std::vector<std::pair<std::string, std::string>> parameters;
  Bytes size;
  int iterations;
};

inline void PrintTo(const Shipped& shipped, std::ostream* out) {
  *out << shipped.program << " on " << shipped.machine;
}

inline void expect_equal(const Shipped& shipped) {
  machine::Machine machine = machine::load(shipped.machine);
  std::vector<int> first;
  for (int rank = 0; rank < shipped.ranks; ++rank) first.push_back(rank);
  machine.place(first);
  const program::Bound program =
      program::bind(program::load(shipped.program, {.ranks = shipped.ranks,
                                                    .parameters = shipped.parameters,
                                                    .machine = machine::share(machine)}),
                    machine::share(machine), {.size = shipped.size});
  Options options;
  options.launch = shipped.iterations > 0 ? Launch::graph : Launch::stream;
  options.warmup = shipped.iterations > 0 ? 1 : 0;
  options.iterations = shipped.iterations;
  EXPECT_EQ(Line::refuses(machine, program, options), "");
  EXPECT_EQ(compare(machine, program, options), "");
}

}  // namespace hemiola::sim::test
