// Attributions that can be believed: no interval is negative, and they sum to the time, on every
// shipped machine, with every template and kernel, in every engine.

#include <gtest/gtest.h>
#include <optional>

#include <algorithm>
#include <string>
#include <vector>

#include "core/testing/long_tests.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/kernels/kernel.h"
#include "sim/fluid/not_modelled.h"
#include "sim/testing/compare_results.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

/// Four ranks of a machine; of several nodes, two on each.
machine::Machine part_of(const std::string& name) {
  machine::Machine machine = machine::load(name);
  const bool nodes = name.ends_with(":2");
  machine.place(nodes ? std::vector<int>{0, 1, 8, 9} : std::vector<int>{0, 1, 2, 3});
  return machine;
}

/// Products and attention as small as they can be cut.
Settings small(const std::string& name, int ranks) {
  const std::string rows = std::to_string(32 * ranks);
  const std::string heads = std::to_string(ranks);
  const bool block = name.starts_with("block-");
  const Settings sizes{{"m", rows},
                       {"n", "64"},
                       {"k", "64"},
                       {"heads", block ? heads : "1"},
                       {"kv_heads", heads},
                       {"head", "32"},
                       {"sequence", rows},
                       {"h", std::to_string(64 * ranks)},
                       {"f", std::to_string(64 * ranks)}};
  Settings found;
  for (const plan::ParameterInfo& parameter : program::parameters_of(name)) {
    for (const auto& size : sizes)
      if (size.first == parameter.name) found.push_back(size);
  }
  return found;
}

/// Which were simulated, of how many.
struct Tried {
  int simulated = 0;
  std::vector<std::string> refused;
};

/// The engines line and fluid, and with `exact` the reference, which agrees with line.
void expect_sound(const machine::Machine& machine, const std::string& name, Bytes size,
                  Options options, bool exact, Tried& tried) {
  std::optional<program::Bound> made;
  try {
    const bool kernel = program::find_kernel(name) != nullptr;
    made = built_in(name, machine, size, kernel ? Settings{} : small(name, machine.ranks()));
  } catch (const Failure&) {
    tried.refused.push_back(name);  // not for this machine, or not of this size
    return;
  }
  program::Bound program = *made;
  ++tried.simulated;
  options.engine = Engine::line;
  const Result line = simulate(machine, program, options);
  EXPECT_EQ(wrong_in(line), "") << name << " on " << machine.name << ", line";
  options.engine = Engine::fluid;
  if (not_modelled_by_fluid(machine).empty()) {
    EXPECT_EQ(wrong_in(simulate(machine, program, options)), "")
        << name << " on " << machine.name << ", fluid";
  } else {
    EXPECT_THROW(simulate(machine, program, options), Failure) << name << ", fluid";
  }
  if (!exact) return;
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
  const std::string machine_name = GetParam();
  const machine::Machine machine = part_of(machine_name);
  // Everywhere in a long run: line_test.cc compares the exact engines on shipped and on random
  // machines.
  const bool exact = long_tests() || machine_name == "dgx1-v100" || machine_name == "dgx-h100:2";
  const bool products = long_tests() || machine_name == "mi300x-8" || machine_name == "clos:2x2x2";
  for (const std::string& name : collectives_and_kernels()) {
    const bool computes = !small(name, 4).empty();
    if (!computes || products)
      expect_sound(machine, name, KiB(4), {}, exact && (!computes || long_tests()), tried);
  }
  EXPECT_GT(tried.simulated, std::ssize(tried.refused))
      << ::testing::PrintToString(tried.refused) << " were not simulated";
}

INSTANTIATE_TEST_SUITE_P(OfMachines, Attributions,
                         testing::Values("dgx-a100", "dgx-h100", "dgx1-v100", "gb200-nvl72",
                                         "hgx-b200", "hgx-h200", "mi300x-8", "mi355x-8",
                                         "dgx-h100:2", "clos:2x2x2", "switch:4", "ring:4",
                                         "torus:2x2", "astra3:4"));

// Flags that go past the L2 act at the memory controller, and who waits for them is woken from
// there.
TEST(Attribution, is_nowhere_negative_where_flags_are_uncached_or_monitored) {
  Tried tried;
  for (const char* wait : {"spin", "monitor", "syncmon"}) {
    for (const char* uncached : {"false", "true"}) {
      const machine::Machine machine = machine::load(
          "clos:2x2x2", {.set = {{"gpu.sync.wait", wait}, {"gpu.sync.uncached", uncached}}});
      for (const char* name : {"all-reduce/ring", "all-reduce/two-shot", "all-gather/direct"})
        expect_sound(machine, name, KiB(4), {.warmup = 1, .iterations = 2}, true, tried);
    }
  }
  EXPECT_EQ(tried.simulated, 18);
}

// The NIC at the destination has nothing of a message but its own share, here 1 fs for each of
// them: what a packet's look-up in the L2 takes longer was once taken from it.
TEST(Attribution, of_a_message_leaves_its_look_up_to_the_l2) {
  const machine::Machine machine = machine::load("clos:2x2x4");
  const program::Bound program = built_in("all-reduce/ring", machine, MiB(1));
  const Result result = simulate(machine, program);
  for (std::size_t rank = 0; rank < 8; ++rank) {
    EXPECT_GT(spent_on(result, rank, Reason::nic), 0);
    EXPECT_LT(spent_on(result, rank, Reason::nic), Time::from_ns(1).fs);
  }
}

}  // namespace
}  // namespace hemiola::sim
