#include "plan/node_paths.h"
#include "machine/network_routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "plan/templates/ring_search.h"

namespace hemiola::plan {
namespace {

/// Directions of links between GPUs of the first node, by how many of the paths take each.
std::vector<int> uses_of_links(const std::vector<std::vector<int>>& paths, int gpus) {
  std::vector<int> uses(static_cast<std::size_t>(gpus * gpus), 0);
  for (const std::vector<int>& path : paths) {
    for (std::size_t i = 1; i < path.size(); ++i)
      ++uses.at(static_cast<std::size_t>(path[i - 1] * gpus + path[i]));
  }
  return uses;
}

TEST(NodePaths, share_out_all_links_of_a_node_in_which_all_gpus_are_joined) {
  for (const char* name : {"mi300x-8:2", "mi355x-8:4"}) {
    const machine::Machine machine = machine::load(name);
    const std::vector<std::vector<int>> paths =
        node_paths(Fabric(machine), machine::nic_owners(machine, 8));
    ASSERT_EQ(paths.size(), 8U) << name;
    std::set<int> first, last;
    for (std::vector<int> path : paths) {
      first.insert(path.front());
      last.insert(path.back());
      std::sort(path.begin(), path.end());
      EXPECT_EQ(path, (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7})) << name;
    }
    EXPECT_EQ(first.size(), 8U) << name << ": a path enters at each NIC";
    EXPECT_EQ(last.size(), 8U) << name << ": and leaves at each";
    const std::vector<int> uses = uses_of_links(paths, 8);
    EXPECT_EQ(*std::max_element(uses.begin(), uses.end()), 1) << name;
    EXPECT_EQ(std::accumulate(uses.begin(), uses.end(), 0), 56) << name;
  }
}

TEST(NodePaths, begin_at_each_nic_and_go_round_through_switches) {
  const machine::Machine machine = machine::load("dgx-h100:2");
  const std::vector<std::vector<int>> paths = node_paths(Fabric(machine), {3, 0});
  ASSERT_EQ(paths.size(), 2U);
  EXPECT_EQ(paths.at(0), (std::vector<int>{3, 4, 5, 6, 7, 0, 1, 2}));
  EXPECT_EQ(paths.at(1), (std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(node_paths(Fabric(machine), {}).size(), 1U) << "links join no GPUs: one order";
}

TEST(NodePaths, of_two_gpus_that_share_a_nic_the_first_has_it) {
  const machine::Machine machine = machine::load("a100-4nic:2");
  EXPECT_EQ(machine::nic_owners(machine, 8).size(), 4U);
}

TEST(NodePaths, make_rings_over_nodes_that_cross_on_rails) {
  const machine::Machine machine = machine::load("mi300x-8:4");
  const std::vector<Ring> rings = find_rings(Fabric(machine));
  ASSERT_EQ(rings.size(), 8U);
  for (const Ring& ring : rings) {
    ASSERT_EQ(ring.size(), 32U);
    for (std::size_t i = 0; i < ring.size(); ++i) {
      const int from = ring[i], to = ring[(i + 1) % ring.size()];
      if (from / 8 != to / 8) {
        EXPECT_EQ(from % 8, to % 8) << from << " to " << to;
      }
    }
  }
}

}  // namespace
}  // namespace hemiola::plan
