// Attributions that can be believed: no interval is negative, and they sum to the time, on every
// shipped machine, with every template and kernel, in every engine.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "plan/template.h"
#include "program/built_in.h"
#include "program/kernel.h"
#include "sim/compare_results.h"
#include "sim/test_machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

/// What is wrong with an attribution; empty: nothing.
std::string wrong_in(const Result& result) {
  for (std::size_t rank = 0; rank < result.attribution.size(); ++rank) {
    const Attribution& attribution = result.attribution[rank];
    for (std::size_t r = 0; r < kReasons; ++r) {
      if (attribution[r] < 0)
        return std::string(name_of(static_cast<Reason>(r))) + " of rank " + std::to_string(rank) +
               " is " + to_string(Time{attribution[r]});
    }
    if (sum(attribution) != result.time.fs)
      return "rank " + std::to_string(rank) + " sums to " + to_string(Time{sum(attribution)}) +
             ", not to " + to_string(result.time);
  }
  return {};
}

/// The first ranks of a machine, as many as a test can afford. No skew between its ports.
machine::Machine part_of(const std::string& name, int most, const Settings& settings = {}) {
  machine::Machine machine = machine::load(name, {.set = settings});
  std::vector<int> ranks;
  for (int rank = 0; rank < std::min(machine.ranks(), most); ++rank) ranks.push_back(rank);
  machine.place(ranks);
  return machine;
}

/// Which were simulated, of how many.
struct Tried {
  int simulated = 0, refused = 0;
};

/// All engines; the exact ones agree.
void expect_sound(const machine::Machine& machine, const std::string& name, Bytes size,
                  Options options, Tried& tried) {
  program::Program program;
  try {
    program = built_in(name, machine, size);
  } catch (const Failure&) {
    ++tried.refused;  // not for this machine, or not of this size
    return;
  }
  ++tried.simulated;
  options.engine = Engine::line;
  const Result line = simulate(machine, program, options);
  EXPECT_EQ(wrong_in(line), "") << name << " on " << machine.name << ", line";
  options.engine = Engine::fluid;
  EXPECT_EQ(wrong_in(simulate(machine, program, options)), "")
      << name << " on " << machine.name << ", fluid";
  if (machine.ranks() > 4) return;  // the reference takes its time
  options.engine = Engine::reference;
  EXPECT_EQ(differs(simulate(machine, program, options), line), "")
      << name << " on " << machine.name;
}

std::vector<std::string> collectives_and_kernels() {
  std::vector<std::string> names = program::built_in_names();
  for (const program::KernelInfo& kernel : program::kernels()) names.push_back(kernel.name);
  return names;
}

class Attributions : public testing::TestWithParam<const char*> {};

TEST_P(Attributions, are_nowhere_negative_and_sum_to_the_time) {
  Tried tried;
  for (const int ranks : {2, 4}) {
    const machine::Machine machine = part_of(GetParam(), ranks);
    for (const std::string& name : collectives_and_kernels())
      expect_sound(machine, name, KiB(4), {}, tried);
  }
  EXPECT_GT(tried.simulated, tried.refused) << tried.refused << " were not simulated";
}

INSTANTIATE_TEST_SUITE_P(OfMachines, Attributions,
                         testing::Values("dgx-a100", "dgx-h100", "dgx1-v100", "gb200-nvl72",
                                         "hgx-b200", "hgx-h200", "mi300x-8", "mi355x-8",
                                         "clos:2x2x2", "switch:4", "ring:4", "torus:2x2",
                                         "astra3:4"));

}  // namespace
}  // namespace hemiola::sim
