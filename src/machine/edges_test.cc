// Links that fail and links that are slow: what --set edge.FROM:TO.NAME does to a machine.
#include "machine/edges.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/testing/failure.h"

namespace hemiola::machine {
namespace {

/// The first line of the message, without its place.
std::string first_line_of(const std::function<void()>& action) {
  const std::string text = hemiola::test::message_of(action);
  const std::size_t begin = text.find("error: ") + 7;
  return text.substr(begin, text.find('\n') - begin);
}

std::size_t count_between(const Machine& machine, std::string_view from, std::string_view to) {
  std::size_t count = 0;
  for (const Link& link : machine.links) {
    count += machine.nodes[static_cast<std::size_t>(link.from)].name == from &&
             machine.nodes[static_cast<std::size_t>(link.to)].name == to;
  }
  return count;
}

TEST(Edge, that_fails_is_gone_in_both_directions_and_ways_lead_around_it) {
  Machine machine = load("dgx-h100:4");
  const std::int32_t ways = machine.routes(0, 9).count;
  EXPECT_EQ(ways, 4);
  machine.set("edge.leaf.0.switch.0:spine.1.switch.0.failed", "true");
  EXPECT_EQ(count_between(machine, "leaf.0.switch.0", "spine.1.switch.0"), 0U);
  EXPECT_EQ(count_between(machine, "spine.1.switch.0", "leaf.0.switch.0"), 0U);
  EXPECT_EQ(count_between(machine, "leaf.1.switch.0", "spine.1.switch.0"), 1U);
  EXPECT_EQ(machine.routes(0, 9).count, ways - 1);
  EXPECT_EQ(machine.routes(0, 9).hops, load("dgx-h100:4").routes(0, 9).hops);
}

TEST(Edge, of_a_nic_that_fails_leaves_the_way_over_the_next_nic) {
  Machine machine = load("dgx-h100:2");
  const std::int32_t hops = machine.routes(0, 8).hops;
  machine.set("edge.dgx_h100.0.nic.0:leaf.0.switch.0.failed", "true");
  EXPECT_EQ(machine.reach(0, 8), Reach::network);
  EXPECT_GT(machine.routes(0, 8).hops, hops);
}

TEST(Edge, whose_loss_parts_ranks_is_refused_with_both_ranks) {
  Machine machine = load("clos:2x2x2");
  const std::size_t links = machine.links.size();
  EXPECT_EQ(first_line_of([&] { machine.set("edge.leaf.0.*:spine.*.failed", "true"); }),
            "without the links of leaf.0.*:spine.* rank 0 has no way to rank 2");
  EXPECT_EQ(machine.links.size(), links);
}

TEST(Edge, that_is_slow_has_a_class_of_its_own) {
  Machine machine = load("dgx-h100:4");
  const std::size_t classes = machine.link_classes.size();
  machine.set("edge.leaf.*:spine.*.bandwidth", "25 GB/s");
  ASSERT_EQ(machine.link_classes.size(), classes + 1);
  EXPECT_EQ(machine.link_classes.back().name, "ib-ndr-2");
  EXPECT_EQ(machine.link_classes.back().bandwidth.bytes_per_second, 25'000'000'000);
  std::size_t slow = 0;
  for (const Link& link : machine.links)
    slow += link.link_class == static_cast<std::int32_t>(classes);
  EXPECT_EQ(slow, 2U * 8 * 4);  // both directions of 8 leaves to 4 spines
  machine.set("link.ib-ndr-2.latency", "1 us");
  EXPECT_EQ(machine.link_classes.back().latency, Time::from_ns(1000));
}

TEST(Edge, that_does_not_fail_changes_nothing) {
  Machine machine = load("clos:2x2x2");
  const std::size_t links = machine.links.size();
  machine.set("edge.leaf.0.switch.0:spine.0.switch.0.failed", "false");
  EXPECT_EQ(machine.links.size(), links);
}

TEST(Edge, bad_names_and_values_are_refused) {
  Machine machine = load("clos:2x2x2");
  const auto refused = [&](const char* parameter, const char* value) {
    return first_line_of([&] { machine.set(parameter, value); });
  };
  EXPECT_EQ(refused("edge.leaf.0.switch.0.bandwidth", "1 GB/s"),
            "unknown parameter 'edge.leaf.0.switch.0.bandwidth'");
  EXPECT_EQ(refused("edge.leaf.9.switch.0:spine.*.bandwidth", "1 GB/s"),
            "the machine has no node 'leaf.9.switch.0'");
  EXPECT_EQ(refused("edge.leaf.0.*:leaf.1.*.failed", "true"),
            "there is no link between the nodes of 'leaf.0.*:leaf.1.*'");
  EXPECT_EQ(refused("edge.leaf.*:spine.*.failed", "yes"), "'yes' is neither true nor false");
  EXPECT_EQ(refused("edge.leaf.*:spine.*.bandwith", "1 GB/s"),
            "unknown parameter 'edge.leaf.*:spine.*.bandwith'");
  EXPECT_EQ(refused("fabric.routing", "adaptive"), "'adaptive' is no routing");
}

}  // namespace
}  // namespace hemiola::machine
