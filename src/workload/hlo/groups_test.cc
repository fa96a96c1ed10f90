// Replica groups in all notations, and what ids mean.
#include <gtest/gtest.h>

#include "workload/hlo/groups.h"
#include "workload/testing/hlo.h"

namespace hemiola::workload {
namespace {

using hlo::Groups;
using test::hlo_failure;

/// The groups of a collective with these attributes in a module of so many devices.
Groups groups_with(const std::string& attributes, int partitions, int replicas = 1,
                   const std::string& opcode = "all-reduce") {
  const hlo::Module module = hlo::parse(
      "m.txt", "HloModule m, num_partitions=" + std::to_string(partitions) +
                   ", replica_count=" + std::to_string(replicas) +
                   "\nadd {\n  a = f32[] parameter(0)\n}\nENTRY e {\n  p = f32[8] parameter(0)\n  "
                   "ROOT c = f32[8] " +
                   opcode + "(p), " + attributes + "\n}\n");
  return hlo::groups_of_ranks(module, module.entry_computation().root_instruction(),
                              hlo::devices_of(module));
}

const std::string kGlobal = "channel_id=1, use_global_device_ids=true, replica_groups=";

TEST(HloGroups, all_notations_say_the_same) {
  const Groups rows{{0, 1, 2, 3}, {4, 5, 6, 7}};
  EXPECT_EQ(groups_with(kGlobal + "{{0,1,2,3},{4,5,6,7}}", 8), rows);
  EXPECT_EQ(groups_with(kGlobal + "[2,4]<=[8]", 8), rows);
  EXPECT_EQ(groups_with(kGlobal + "mesh['a'=2,'b'=4] {'b'}", 8), rows);
  const Groups columns{{0, 4}, {1, 5}, {2, 6}, {3, 7}};
  EXPECT_EQ(groups_with(kGlobal + "{{0,4},{1,5},{2,6},{3,7}}", 8), columns);
  EXPECT_EQ(groups_with(kGlobal + "[4,2]<=[2,4]T(1,0)", 8), columns);
  EXPECT_EQ(groups_with(kGlobal + "mesh['a'=2,'b'=4] {'a'}", 8), columns);
  const Groups all{{0, 1, 2, 3, 4, 5, 6, 7}};
  EXPECT_EQ(groups_with(kGlobal + "{}", 8), all);
  EXPECT_EQ(groups_with(kGlobal + "[1,8]<=[8]", 8), all);
  EXPECT_EQ(groups_with(kGlobal + "mesh['x'=8] {'x'}", 8), all);
}

TEST(HloGroups, meshes_have_several_axes_parts_of_axes_and_orders_of_devices) {
  EXPECT_EQ(groups_with(kGlobal + "mesh['a'=2,'b'=2,'c'=2] {'a','c'}", 8),
            (Groups{{0, 1, 4, 5}, {2, 3, 6, 7}}));
  EXPECT_EQ(groups_with(kGlobal + "mesh['a'=2,'b'=2,'c'=2] {'c','a'}", 8),
            (Groups{{0, 4, 1, 5}, {2, 6, 3, 7}}))
      << "members in the order of the axes that are named";
  EXPECT_EQ(groups_with(kGlobal + "mesh['x'=8] {'x':(1)2}", 8),
            (Groups{{0, 4}, {1, 5}, {2, 6}, {3, 7}}));
  EXPECT_EQ(groups_with(kGlobal + "mesh['x'=8] {'x':(2)2}", 8),
            (Groups{{0, 2}, {1, 3}, {4, 6}, {5, 7}}));
  EXPECT_EQ(groups_with(kGlobal + "mesh['x'=8] {'x':(4)2}", 8),
            (Groups{{0, 1}, {2, 3}, {4, 5}, {6, 7}}));
  EXPECT_EQ(groups_with(kGlobal + "mesh['a'=2,'b'=2], device_ids=(0,2,1,3) {'b'}", 4),
            (Groups{{0, 2}, {1, 3}}));
  EXPECT_EQ(groups_with(kGlobal + "mesh['a'=2,'b'=2], device_ids=([2,2]T(1,0)) {'b'}", 4),
            (Groups{{0, 2}, {1, 3}}));
}

TEST(HloGroups, ids_are_of_replicas_partitions_or_devices) {
  // Three partitions of two replicas: partition p of replica r is rank 3 r + p.
  EXPECT_EQ(groups_with("replica_groups={{0,1}}", 3, 2), (Groups{{0, 3}, {1, 4}, {2, 5}}))
      << "without a channel, replicas";
  EXPECT_EQ(groups_with("channel_id=1, replica_groups={{0},{1}}", 3, 2),
            (Groups{{0, 1, 2}, {3, 4, 5}}))
      << "all partitions of the replicas";
  EXPECT_EQ(groups_with(kGlobal + "{{0,5},{1,4},{2,3}}", 3, 2), (Groups{{0, 5}, {1, 4}, {2, 3}}));
  EXPECT_EQ(groups_with("channel_id=1, replica_groups={{0,1,2}}", 3, 2, "all-to-all"),
            (Groups{{0, 1, 2}, {3, 4, 5}}))
      << "of an all-to-all, partitions";
}

TEST(HloGroups, what_is_no_group_is_refused) {
  const auto said = [](const std::string& groups) {
    return hlo_failure([&] { groups_with(kGlobal + groups, 4); });
  };
  const auto has = [&](const std::string& groups, const std::string& text) {
    EXPECT_NE(said(groups).find(text), std::string::npos) << said(groups);
  };
  has("{{0,1},{2,4}}", "has id 4, and there are 4");
  has("{{0,1},{1,2}}", "has id 1 twice");
  has("{{0,1},{2}}", "the groups of 'c' have different sizes, 2 and 1");
  has("{{0,1}}", "2 of 4 devices are in no group of 'c'");
  has("{{0,x},{2,3}}", "has 'x', which is no id");
  has("[2,2]", "is no [groups,size]<=[devices]");
  has("[2,2]<=[8]", "has more or fewer ids than groups times size");
  has("[2,2]<=[2,2]T(0,0)", "has a T(...) that is no order of its axes");
  has("[2,99999999999]<=[4]", "has an extent that is no number of devices");
  has("mesh['a'=2,'b'=2] {'c'}", "names ''c'', which is no axis of its mesh");
  has("mesh['a'=4] {'a':(3)2}", "has ''a':(3)2', which is no part of an axis");
  has("mesh['a'=0] {'a'}", "has ''a'=0', which is no axis of a mesh");
  has("tuple", "is in a notation that is not known");
  EXPECT_NE(said("tuple").find("hint: notations are {{0,1},{2,3}}, [2,2]<=[4]"), std::string::npos);
}

TEST(HloGroups, pairs_are_divided_so_that_no_rank_is_twice_in_a_set) {
  using Pairs = std::vector<std::pair<int, int>>;
  EXPECT_EQ(hlo::disjoint_pairs({{0, 1}, {1, 2}, {2, 3}, {3, 0}}),
            (std::vector<Pairs>{{{0, 1}, {2, 3}}, {{1, 2}, {3, 0}}}));
  EXPECT_EQ(hlo::disjoint_pairs({{0, 1}, {1, 2}, {2, 0}}),
            (std::vector<Pairs>{{{0, 1}}, {{1, 2}}, {{2, 0}}}));
  EXPECT_EQ(hlo::disjoint_pairs({{1, 0}, {2, 1}, {3, 3}}),
            (std::vector<Pairs>{{{2, 1}}, {{1, 0}}}));
  EXPECT_TRUE(hlo::disjoint_pairs({}).empty());
  for (int ranks = 2; ranks < 12; ++ranks) {
    Pairs ring;
    for (int rank = 0; rank < ranks; ++rank) ring.emplace_back(rank, (rank + 1) % ranks);
    std::size_t all = 0;
    for (const Pairs& set : hlo::disjoint_pairs(ring)) {
      std::vector<int> seen;
      for (const auto& [from, to] : set) seen.insert(seen.end(), {from, to});
      std::sort(seen.begin(), seen.end());
      EXPECT_EQ(std::adjacent_find(seen.begin(), seen.end()), seen.end()) << ranks;
      all += set.size();
    }
    EXPECT_EQ(all, ring.size()) << ranks;
  }
}

}  // namespace
}  // namespace hemiola::workload
