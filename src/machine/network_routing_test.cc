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

TEST(NetworkRouting, by_destination_and_by_pairs_is_even_and_ecmp_is_not) {
  Machine machine = load("clos:2x4x4");
  ASSERT_EQ(machine.routes(0, 4).count, 4);
  EXPECT_EQ(pairs_by_way(machine), (std::vector<int>{4, 4, 4, 4}));
  machine.set("fabric.routing", "pairs");
  EXPECT_EQ(pairs_by_way(machine), (std::vector<int>{4, 4, 4, 4}));
  machine.set("fabric.routing", "ecmp");
  const std::vector<int> pairs = pairs_by_way(machine);
  EXPECT_GT(*std::max_element(pairs.begin(), pairs.end()), 4) << "pairs meet by chance";
}

/// Of all links, the most messages that pass one where each rank sends to the one `distance`
/// further.
int most_on_a_link(const Machine& machine, int distance) {
  std::vector<int> messages(machine.links.size());
  for (int from = 0; from < machine.ranks(); ++from) {
    const int to = (from + distance) % machine.ranks();
    const Routes& routes = machine.routes(from, to);
    if (routes.reach != Reach::network) continue;
    for (const LinkId link : routes.path(path_of_messages(machine, routes, from, to)))
      ++messages.at(static_cast<std::size_t>(link));
  }
  return *std::max_element(messages.begin(), messages.end());
}

TEST(NetworkRouting, by_destination_nobody_meets_where_each_rank_sends_to_another) {
  for (const char* name : {"dgx-a100:4", "dgx-h100:8", "mi300x-8:2", "clos:4x4x4"}) {
    const Machine machine = load(name);
    for (int distance = 1; distance < machine.ranks(); ++distance)
      ASSERT_LE(most_on_a_link(machine, distance), 1) << name << ", to the rank " << distance;
  }
  Machine pairs = load("dgx-a100:4");
  pairs.set("fabric.routing", "pairs");
  EXPECT_GT(most_on_a_link(pairs, 1), 1);
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
