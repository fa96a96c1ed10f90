#include "machine/network_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "machine/infragraph/infragraph.h"

namespace hemiola::machine {
namespace {

/// How many of the pairs from one leaf to the other take each of the ways.
std::vector<int> pairs_by_way(const Machine& machine) {
  std::vector<int> pairs(4, 0);
  for (int from = 0; from < 4; ++from) {
    for (int to = 4; to < 8; ++to)
      ++pairs.at(
          static_cast<std::size_t>(path_of_messages(machine, machine.routes(from, to), from, to)));
  }
  return pairs;
}

TEST(NetworkRouting, of_pairs_is_even_and_ecmp_is_not) {
  Machine machine = load("clos:2x4x4");
  ASSERT_EQ(machine.routes(0, 4).count, 4);
  EXPECT_EQ(pairs_by_way(machine), (std::vector<int>{4, 4, 4, 4}));
  machine.set("fabric.routing", "ecmp");
  const std::vector<int> pairs = pairs_by_way(machine);
  EXPECT_GT(*std::max_element(pairs.begin(), pairs.end()), 4) << "pairs meet by chance";
}

TEST(NetworkRouting, sprays_messages_but_never_chooses_for_lines) {
  Machine machine = load("clos:2x4x4");
  machine.set("fabric.routing", "spray");
  EXPECT_EQ(path_of_messages(machine, machine.routes(0, 4), 0, 4), -1);
  const Machine node = load("dgx-h100");
  EXPECT_EQ(path_of_messages(node, node.routes(0, 4), 0, 4), -1);
}

TEST(NetworkRouting, stands_in_files) {
  Machine machine = load("clos:2x2x2");
  machine.set("fabric.routing", "ecmp");
  const Machine again = from_infragraph(to_infragraph(machine), "machine.yaml", {});
  EXPECT_EQ(network_routing(again), NetworkRouting::ecmp);
}

}  // namespace
}  // namespace hemiola::machine
