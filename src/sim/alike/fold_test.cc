// Ranks that behave alike, simulated once, give what simulating all of them gives.

#include "sim/alike/fold.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <optional>

#include "program/walk/rotation.h"
#include "sim/testing/compare_results.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;
using Parameters = std::vector<std::pair<std::string, std::string>>;

/// Empty if folding changes nothing; `ranks` is how many it simulated.
std::string compare_folded(const machine::Machine& machine, const program::Bound& program,
                           Options options, int& ranks) {
  options.fold = false;
  const Result all = simulate(machine, program, options);
  EXPECT_EQ(all.simulated_ranks, program.ranks());
  EXPECT_EQ(all.visited_hops, all.line_hops);
  options.fold = true;
  const Result folded = simulate(machine, program, options);
  ranks = folded.simulated_ranks;
  return differs(all, folded);
}

int simulated_ranks(const std::string& name, const std::string& topology, Bytes size,
                    const Options& options = {}, const Parameters& parameters = {}) {
  const machine::Machine machine = machine::load(topology);
  const program::Bound program = built_in(name, machine, size, parameters);
  int ranks = 0;
  EXPECT_EQ(compare_folded(machine, program, options, ranks), "") << name << " on " << topology;
  return ranks;
}

TEST(Fold, of_a_ring_at_a_switch_simulates_one_rank) {
  EXPECT_EQ(simulated_ranks("all-reduce/ring", "switch:8", KiB(64)), 1);
  EXPECT_EQ(simulated_ranks("all-reduce/ring", "dgx-h100", KiB(256)), 1);
  EXPECT_EQ(simulated_ranks("all-gather/direct", "dgx-h100", KiB(256)), 1);
  EXPECT_EQ(simulated_ranks("all-to-all/direct", "dgx-a100", KiB(256)), 1);
  EXPECT_EQ(simulated_ranks("all-reduce/two-shot", "switch:5", KiB(40)), 1);
}

TEST(Fold, simulates_a_period_where_ranks_differ_inside_it) {
  // Two rings, one each way round: chunks run backwards on the second.
  EXPECT_EQ(simulated_ranks("all-reduce/ring", "ring:8", KiB(64)), 4);
  EXPECT_EQ(simulated_ranks("all-gather/direct", "mesh:2x3", KiB(6)), 3);  // rows change places
}

// Rings enter every other node where they left the one before, and so stay on their rail.
TEST(Fold, of_rings_over_rails_simulates_two_nodes) {
  EXPECT_EQ(simulated_ranks("all-reduce/ring", "dgx-h100:4", KiB(64)), 16);
  EXPECT_EQ(simulated_ranks("reduce-scatter/ring", "dgx-h100:6", KiB(96)), 16);
}

/// Of a plan that computes; its size is one of its parameters.
int ranks_of_pipeline(const std::string& name, const std::string& topology, Parameters parameters,
                      const Parameters& sizes) {
  parameters.insert(parameters.end(), sizes.begin(), sizes.end());
  parameters.insert(parameters.end(), {{"workgroups", "2"}, {"compute_workgroups", "4"}});
  const machine::Machine machine = machine::load(topology);
  const program::Program program =
      program::load(name, {.ranks = machine.ranks(), .parameters = parameters});
  const program::Bound bound =
      program::bind(program, machine::share(machine), {.size = program.fixed_size});
  int ranks = 0;
  EXPECT_EQ(compare_folded(machine, bound, {}, ranks), "") << name << " on " << topology;
  return ranks;
}

int ranks_of_product(const std::string& name, const std::string& topology,
                     const Parameters& parameters = {}, const std::string& tile_m = "32") {
  return ranks_of_pipeline(name, topology, parameters,
                           {{"m", "512"},
                            {"n", "512"},
                            {"k", "512"},
                            {"tile_m", tile_m},
                            {"tile_n", "64"},
                            {"tile_k", "32"}});
}

TEST(Fold, of_products_with_their_collective_simulates_one_rank) {
  for (const char* name : {"ag-gemm/swizzle", "ag-gemm/ring", "gemm-rs/direct", "gemm-rs/ring",
                           "gemm-rs/collective", "a2a-gemm/direct"})
    EXPECT_EQ(ranks_of_product(name, "switch:8"), 1) << name;
  EXPECT_EQ(ranks_of_product("ag-gemm/swizzle", "switch:8", {{"transfer", "push"}}), 1);
  EXPECT_EQ(ranks_of_product("gemm-rs/direct", "switch:8", {{"transfer", "push"}}), 1);
  EXPECT_EQ(ranks_of_product("ag-gemm/ring", "switch:4", {{"realization", "co-located"}}), 1);
  EXPECT_EQ(ranks_of_product("ag-gemm/double-ring", "switch:8", {{"inner", "2"}}), 2);
}

// Launches with their gates and bells, too; where a step of the gather takes less than all rows of
// a rank, two do the same in turn.
TEST(Fold, of_sequences_of_launches_simulates_one_rank_or_two) {
  EXPECT_EQ(ranks_of_product("ag-gemm/serial", "switch:4"), 1);
  EXPECT_EQ(ranks_of_product("ag-gemm/sequence", "switch:4", {{"axis", "k"}, {"degree", "2"}}), 1);
  EXPECT_LE(ranks_of_product("ag-gemm/sequence", "switch:4", {{"degree", "2"}}), 2);
  for (const char* name : {"gemm-rs/sequence", "gemm-ar/sequence", "gemm-combine/sequence"}) {
    EXPECT_EQ(ranks_of_product(name, "switch:4", {{"degree", "2"}}), 1) << name;
    EXPECT_EQ(ranks_of_product(name, "switch:4", {{"degree", "2"}, {"steps", "hetero"}}), 1)
        << name;
  }
  EXPECT_EQ(ranks_of_product("gemm-rs/sequence", "switch:4", {{"realization", "copy-engine"}}), 1);
  EXPECT_EQ(ranks_of_product("gemm-rs/sequence", "switch:4", {{"placement", "copy"}}), 1);
}

TEST(Fold, of_attention_over_a_divided_sequence_simulates_one_rank_or_an_inner_group) {
  const auto ranks = [](const std::string& name, const Parameters& parameters) {
    return ranks_of_pipeline(
        name, "switch:8", parameters,
        {{"heads", "2"}, {"sequence", "512"}, {"head", "64"}, {"tile_q", "32"}, {"tile_kv", "16"}});
  };
  EXPECT_EQ(ranks("ring-attention/ring", {}), 1);
  EXPECT_EQ(ranks("ring-attention/swizzle", {}), 1);
  EXPECT_EQ(ranks("double-ring-attention/ring", {{"inner", "4"}}), 4);
}

TEST(Fold, of_tiles_that_reach_over_the_blocks_of_several_ranks_simulates_so_many) {
  EXPECT_EQ(ranks_of_product("ag-gemm/ring", "switch:8", {}, "128"), 2);
  EXPECT_EQ(ranks_of_product("ag-gemm/ring", "switch:8", {}, "512"), 8);
}

TEST(Fold, of_halving_and_doubling_simulates_half_of_four) {
  // The partner is rank xor 1, then rank xor 2: a rotation by two keeps both.
  EXPECT_EQ(simulated_ranks("all-reduce/halving-doubling", "switch:4", KiB(16)), 2);
}

TEST(Fold, of_what_is_not_alike_simulates_all_ranks) {
  EXPECT_EQ(simulated_ranks("broadcast/ring", "switch:4", KiB(16)), 4);
  // Chunks of less than a line do not start at the same place in it.
  EXPECT_EQ(simulated_ranks("all-gather/direct", "switch:4", {64}), 4);
}

TEST(Fold, is_left_out_where_ranks_start_at_different_times_and_where_it_is_not_wanted) {
  const machine::Machine machine = machine::load("switch:4");
  const program::Bound program = built_in("all-gather/direct", machine, KiB(64));
  const auto reason = [&](const Options& options) {
    return simulate(machine, program, options).unfolded_because;
  };
  EXPECT_EQ(reason({}), "");
  EXPECT_EQ(reason({.fold = false}), "not asked for");
  EXPECT_EQ(reason({.skew = {Time::from_ns(0), Time::from_ns(5)}}),
            "ranks start at different times");
  EXPECT_EQ(reason({.skew = std::vector<Time>(4, Time::from_ns(5))}), "");
}

TEST(Fold, is_left_out_where_one_link_is_slower) {
  machine::Machine machine = machine::load("switch:4");
  machine.link_classes.push_back(machine.link_classes.front());
  machine.link_classes.back().name = "slow";
  machine.link_classes.back().latency = Time::from_ns(700);
  machine.links[3].link_class = static_cast<std::int32_t>(machine.link_classes.size()) - 1;
  const program::Bound program = built_in("all-gather/direct", machine, KiB(64));
  EXPECT_EQ(simulate(machine, program).unfolded_because, "ways between ranks differ");
}

std::string settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [name, value] : settings) text += " --set " + name + "='" + value + "'";
  return text;
}

// Every built-in that is made for a number of ranks, on random machines that look alike from all of
// their ranks, in both engines.
TEST(Fold, changes_nothing_about_random_machines_and_programs) {
  int folded = 0;
  EXPECT_TRUE(rc::check("equal", [&] {
    const std::string topology = *rc::gen::element<std::string>(
        "switch:2", "switch:3", "switch:4", "switch:6", "switch:8", "ring:4", "ring:6", "torus:2x2",
        "dgx-h100", "dgx-a100", "dgx1-v100", "mi300x-8");
    Settings settings{{"gpu.cu.count", std::to_string(*rc::gen::inRange(1, 5))},
                      {"gpu.cu.max_outstanding", std::to_string(*rc::gen::inRange(1, 40))},
                      {"gpu.l2.slices", std::to_string(*rc::gen::inRange(1, 6))},
                      {"gpu.l2.ways", "16"},
                      {"gpu.l2.size", *rc::gen::element<std::string>("0 B", "12 KiB", "1 MiB")},
                      {"gpu.l2.latency", *rc::gen::element<std::string>("1 fs", "30 ns", "100 ns")},
                      {"gpu.noc.latency", *rc::gen::element<std::string>("1 fs", "20 ns")},
                      {"gpu.hbm.channels", std::to_string(*rc::gen::inRange(1, 4))},
                      {"link.*.latency", *rc::gen::element<std::string>("1 fs", "300 ns")}};
    const bool queues = *rc::gen::inRange(0, 3) == 0;
    if (queues) settings.push_back({"link.*.credits", std::to_string(*rc::gen::inRange(2, 9))});
    const bool switched = topology.starts_with("switch") || topology.ends_with("h100");
    if (switched && *rc::gen::inRange(0, 3) == 0)
      settings.push_back({"switch.queue", std::to_string(*rc::gen::inRange(1, 5))});
    const machine::Machine machine = machine::load(topology, {.set = settings});
    const std::string name = *rc::gen::element<std::string>(
        "all-reduce/ring", "all-reduce/two-shot", "all-reduce/one-shot", "all-gather/direct",
        "all-gather/ring", "reduce-scatter/direct", "reduce-scatter/ring", "all-to-all/direct",
        "all-to-all/counter-clockwise", "all-gather/swizzle", "all-reduce/nccl", "all-gather/nccl",
        "all-to-all/nccl");
    Parameters parameters;
    const bool rings = name.ends_with("ring") || name.ends_with("nccl");
    if (rings)
      parameters.emplace_back("protocol", *rc::gen::element<std::string>("simple", "ll", "ll128"));
    std::optional<program::Bound> made;
    try {
      made = built_in(name, machine, {*rc::gen::inRange(1, 40) * 1024}, parameters);
    } catch (const Failure&) {
      return;  // not on this machine
    }
    program::Bound program = *made;
    Options options;
    options.engine = *rc::gen::element(Engine::line, Engine::reference);
    options.launch = *rc::gen::element(Launch::graph, Launch::stream);
    options.iterations = *rc::gen::inRange(0, 3);
    int ranks = 0;
    const std::string difference = compare_folded(machine, program, options, ranks);
    if (ranks < program.ranks()) ++folded;
    if (!difference.empty())
      RC_FAIL(name + " on " + topology + settings_text(settings) + ", " +
              std::to_string(program.size().count) + " B, " + std::string(name_of(options.engine)) +
              ": " + difference);
  }));
  EXPECT_GT(folded, 30);
}

TEST(Rotation, finds_the_smallest_period_and_the_buffers_that_turn) {
  const machine::Machine machine = machine::load("switch:8");
  const program::Bound gather = built_in("all-gather/direct", machine, KiB(64));
  const program::Rotation rotation = program::rotation_of(gather, 128);
  EXPECT_EQ(rotation.period, 1);
  ASSERT_GE(rotation.turns.size(), 2U);
  EXPECT_EQ(rotation.turns[0], 0);  // its only chunk
  EXPECT_EQ(rotation.turns[1], 1);  // chunk r at all ranks is rank r's
  EXPECT_TRUE(rotation.all_offsets);
  const program::Rotation ring =
      program::rotation_of(built_in("all-reduce/ring", machine, KiB(64)), 128);
  EXPECT_EQ(ring.offsets, (std::vector<std::vector<std::int32_t>>{{1, 7}}));
}

}  // namespace
}  // namespace hemiola::sim
