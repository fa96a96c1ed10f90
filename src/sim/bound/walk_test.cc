// The walk of classes finds what the walk of all workgroups finds.
#include "sim/bound/walk.h"

#include <gtest/gtest.h>

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "machine/machine.h"
#include "program/bind/bound.h"
#include "program/program.h"
#include "program/walk/rotation.h"
#include "sim/alike/classes.h"
#include "sim/model/addresses.h"

namespace hemiola::sim {
namespace {

struct Case {
  std::string program, machine;
  std::int64_t mib;
  std::vector<std::pair<std::string, std::string>> parameters{};
  friend std::ostream& operator<<(std::ostream& out, const Case& one) {
    return out << one.program << " on " << one.machine << ", " << one.mib << " MiB";
  }
};

class ClassWalk : public testing::TestWithParam<Case> {};

TEST_P(ClassWalk, is_the_walk_of_all) {
  const auto& [name, machine_name, mib, parameters] = GetParam();
  const machine::SharedMachine machine = machine::share(machine::load(machine_name));
  const program::Bound bound = program::bind(program::load(name, {.ranks = machine->ranks(),
                                                                  .parameters = parameters,
                                                                  .machine = machine,
                                                                  .size = MiB(mib)}),
                                             machine, {.size = MiB(mib)});
  const Options options;
  const Addresses addresses(bound, program::rotation_of(bound, machine->model(0).line_size.count));
  const Classes classes(*machine, bound, options, AlikeBy::time);
  ASSERT_TRUE(classes.folded());
  const LowerBound all = BoundWalk(*machine, bound, options, addresses, bound.ranks(), true).run();
  const LowerBound one = BoundWalk(*machine, bound, options, addresses, classes).run();
  // The first of a class is dispatched first; and of links of like nodes one has the mean.
  EXPECT_LE(one.latency.fs, all.latency.fs);
  EXPECT_GT(one.latency.fs, all.latency.fs * 97 / 100);
  EXPECT_LE(one.bandwidth.fs, all.bandwidth.fs + all.bandwidth.fs / 100'000);
  EXPECT_GT(one.bandwidth.fs, all.bandwidth.fs * 97 / 100);
  // Ends of what does not divide by ranks are no reason to tell ranks apart.
  EXPECT_NEAR(static_cast<double>(one.moved_bytes), static_cast<double>(all.moved_bytes),
              1e-3 * static_cast<double>(all.moved_bytes));
  EXPECT_EQ(one.posted_bytes, all.posted_bytes);
}

const std::vector<std::pair<std::string, std::string>> tree{{"algorithm", "tree"},
                                                            {"protocol", "simple"}};

INSTANTIATE_TEST_SUITE_P(Programs, ClassWalk,
                         testing::Values(Case{"all-reduce/nccl", "dgx-h100", 64},
                                         Case{"all-reduce/nccl", "dgx-h100:8", 64},
                                         Case{"all-reduce/nccl", "gb200-nvl72", 32},
                                         Case{"all-reduce/nccl", "dgx-a100:4", 64, tree},
                                         Case{"all-reduce/nccl", "mi300x-8:4", 64, tree},
                                         Case{"all-reduce/nccl", "mi300x-8:2", 64},
                                         Case{"all-reduce/two-shot", "dgx-a100:2", 4},
                                         Case{"reduce-scatter/collective", "dgx-h100:4", 16},
                                         Case{"all-to-all/nccl", "mi355x-8:2", 64},
                                         Case{"all-to-all/nccl", "clos:2x2x4", 4},
                                         Case{"broadcast/nccl", "dgx-h100:2", 256}));

}  // namespace
}  // namespace hemiola::sim
