// The fluid engine: shares by hand, programs by hand, and what holds for all programs.

#include "sim/fluid/agents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include <vector>

#include "core/testing/long_tests.h"
#include "sim/fluid/not_modelled.h"
#include "sim/fluid/shares.h"
#include "sim/testing/random_cases.h"

namespace hemiola::sim {
namespace {

using namespace test;
using ::testing::HasSubstr;

constexpr std::int64_t kOne = std::int64_t{1} << kWeightBits;
/// Ends of flows in the order in which they end: (flow, seconds).
std::vector<std::pair<std::int32_t, double>> ends(Shares& shares) {
  std::vector<std::pair<std::int32_t, double>> found;
  shares.settle(0);
  for (std::int64_t next = shares.next(); next != INT64_MAX; next = shares.next()) {
    Attribution charged{};
    const std::int32_t flow = shares.finish(charged);
    EXPECT_EQ(sum(charged), next);  // all started at 0
    found.emplace_back(flow, static_cast<double>(next) / static_cast<double>(kSecond));
    shares.settle(next);
  }
  return found;
}

using Ends = std::vector<std::pair<std::int32_t, double>>;

// --- Shares by hand.

TEST(Shares, one_flow_takes_all_of_the_slowest_resource) {
  Shares shares;
  const auto wide = shares.add_resource({100}, Reason::link);
  const auto thin = shares.add_resource({50}, Reason::l2);
  shares.start({{wide, kOne}, {thin, kOne}}, 200, 0, Reason::issue, 0);
  EXPECT_EQ(ends(shares), (Ends{{0, 4.0}}));
}

TEST(Shares, two_flows_share_a_link_and_the_second_gets_all_of_it_when_the_first_ends) {
  Shares shares;
  const auto link = shares.add_resource({100}, Reason::link);
  shares.start({{link, kOne}}, 100, 0, Reason::issue, 0);
  shares.start({{link, kOne}}, 200, 0, Reason::issue, 0);
  // 50 each for 2 s; then 100 for the 100 that are left.
  EXPECT_EQ(ends(shares), (Ends{{0, 2.0}, {1, 3.0}}));
}

TEST(Shares, of_three_flows_over_two_links_the_one_over_both_has_the_smaller_share) {
  Shares shares;
  const auto a = shares.add_resource({100}, Reason::link);
  const auto b = shares.add_resource({60}, Reason::link);
  shares.start({{a, kOne}, {b, kOne}}, 300, 0, Reason::issue, 0);  // 30: half of b
  shares.start({{a, kOne}}, 700, 0, Reason::issue, 0);             // 70: the rest of a
  shares.start({{b, kOne}}, 150, 0, Reason::issue, 0);             // 30, ends first
  // At 5 s flow 0 has 150 left, flow 1 350; they get 50 each of a, flow 1 what is left after that.
  EXPECT_EQ(ends(shares), (Ends{{2, 5.0}, {0, 8.0}, {1, 10.0}}));
}

TEST(Shares, a_flow_that_takes_twice_as_much_of_a_link_moves_as_fast_as_the_others) {
  Shares shares;
  const auto link = shares.add_resource({90}, Reason::link);
  shares.start({{link, 2 * kOne}}, 60, 0, Reason::issue, 0);
  shares.start({{link, kOne}}, 60, 0, Reason::issue, 0);
  EXPECT_EQ(ends(shares), (Ends{{0, 2.0}, {1, 2.0}}));
}

// An exchange waits for what a link has of one direction more than of the other: here nothing.
TEST(Shares, loads_over_links_without_latency_are_limited_by_the_link) {
  Shares shares;
  const auto link = shares.add_resource({100}, Reason::link);
  shares.start({{link, kOne, kOne / 2}}, 300, 0, Reason::issue, 0,
               {.bytes = 10, .latency = 0, .eighths = 8, .exchanges = true});
  EXPECT_EQ(ends(shares), (Ends{{0, 3.0}}));
}

TEST(Shares, what_a_limited_flow_leaves_goes_to_the_others) {
  Shares shares;
  const auto link = shares.add_resource({100}, Reason::link);
  shares.start({{link, kOne}}, 20, 10, Reason::issue, 0);
  shares.start({{link, kOne}}, 90, 0, Reason::issue, 0);
  EXPECT_EQ(ends(shares), (Ends{{1, 1.0}, {0, 2.0}}));
}

TEST(Shares, demands_of_one_resource_add_up_and_ideal_ones_limit_nobody) {
  Shares shares;
  const auto link = shares.add_resource({100}, Reason::link);
  const auto ideal = shares.add_resource(Rate::ideal(), Reason::hbm);
  shares.start({{link, kOne}, {ideal, kOne}, {link, kOne}}, 100, 0, Reason::issue, 0);
  shares.start({{ideal, kOne}}, 100, 0, Reason::issue, 0);
  EXPECT_EQ(ends(shares), (Ends{{1, 0.0}, {0, 2.0}}));
}

// --- Programs by hand: GPUs that cost nothing, links of 50 GB/s with headers of 16 B per 128 B.

Options fluid(Options options = {}) {
  options.engine = Engine::fluid;
  return options;
}
Settings slow_link(const char* bandwidth = "50 GB/s") {
  return {{"link.link.bandwidth", bandwidth},
          {"link.link.header", "16 B"},
          {"link.link.max_payload", "128 B"},
          {"link.link.latency", "1 fs"},
          {"gpu.cu.count", "8"}};
}
/// Latencies of the ideal GPU are a few fs: the time of a transfer is that of its bytes.
void expect_close(Time time, double seconds) {
  EXPECT_NEAR(static_cast<double>(time.fs), seconds * 1e15, 1e15 * seconds / 100);
}
constexpr Shape kLarge{.chunk_bytes = 1 << 20, .threads = 1024};

TEST(Fluid, one_transfer_takes_its_wire_bytes_over_the_link) {
  const auto machine = ideal("ring:2", slow_link());
  const Ops put{transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)})};
  const Result result = run(machine, {{put}, {}}, kLarge, fluid());
  expect_close(result.time, (1 << 20) * 1.125 / 50e9);
  EXPECT_GT(spent_on(result, 0, Reason::link), result.time.fs * 9 / 10);
}

TEST(Fluid, two_workgroups_share_a_link_and_two_links_do_not_share) {
  const auto machine = ideal("switch:4", slow_link());
  const auto put = [](int from, int to) {
    return Ops{transfer(OpKind::put, {at(from, kInput)}, {at(to, kOutput)})};
  };
  const double one = (1 << 20) * 1.125 / 50e9;
  expect_close(run(machine, {{put(0, 1), put(0, 2)}, {}, {}, {}}, kLarge, fluid()).time, 2 * one);
  expect_close(run(machine, {{put(0, 2)}, {put(1, 2)}, {}, {}}, kLarge, fluid()).time, 2 * one);
  expect_close(run(machine, {{put(0, 1)}, {}, {put(2, 3)}, {}}, kLarge, fluid()).time, one);
}

TEST(Fluid, a_chain_of_transfers_takes_the_sum_of_its_parts) {
  const auto machine = ideal("ring:3", slow_link());
  const Ops first{transfer(OpKind::put, {at(0, kInput)}, {at(1, kOutput)}), sync(), signal(1)};
  const Ops second{wait(1), sync(), transfer(OpKind::put, {at(1, kOutput)}, {at(2, kOutput)})};
  const Result result = run(machine, {{first}, {second}, {}}, kLarge, fluid());
  expect_close(result.time, 2 * (1 << 20) * 1.125 / 50e9);
  EXPECT_LT(result.rank_end[0].fs, result.rank_end[1].fs);
}

TEST(Fluid, latencies_of_single_requests_are_those_of_the_reference) {
  // Nothing queues: only the look of polls and services on chip differ.
  const auto machine = distinct("switch:2");
  const std::vector<std::vector<Ops>> load{{{transfer(OpKind::copy, {at(1, kInput)}, {})}}, {}};
  const Result there = run(machine, load), here = run(machine, load, {}, fluid());
  EXPECT_NEAR(here.time.ns(), there.time.ns(), 40);
}

TEST(Fluid, refuses_what_it_has_no_model_of) {
  using Setting = std::pair<const char*, const char*>;
  for (const auto& [name, value] :
       {Setting{"gpu.sync.wait", "backoff"}, Setting{"gpu.sync.uncached", "true"},
        Setting{"gpu.l2.copies", "true"}, Setting{"gpu.l1.latency", "2 us"},
        Setting{"gpu.noc.arbitration", "fair"}, Setting{"link.*.credits", "4"},
        Setting{"link.*.arbitration", "fair"}, Setting{"switch.queue", "8"}}) {
    machine::Machine machine = machine::load("switch:2");
    machine.set(name, value);
    try {
      run(machine, {{{signal(1)}}, {{wait(1)}}}, {}, fluid());
      ADD_FAILURE() << name << " is taken";
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), ExitCode::bad_input);
      const std::string said = name;
      EXPECT_THAT(failure.what(), HasSubstr("not modelled by the engine fluid"));
      EXPECT_THAT(failure.what(), HasSubstr(said.substr(said.rfind('.') + 1)));
    }
  }
}

TEST(Fluid, has_the_bound_of_the_line_engine) {
  for (const char* name : {"dgx-a100:2", "mi300x-8", "dgx-h100"}) {
    const machine::Machine machine = machine::load(name);
    for (const char* program : {"all-reduce/two-shot", "all-gather/direct", "all-to-all/nccl"}) {
      const program::Bound bound = built_in(program, machine, {128 << 10});
      const LowerBound line = simulate(machine, bound, {}).bound,
                       here = simulate(machine, bound, fluid()).bound;
      EXPECT_EQ(here.bandwidth, line.bandwidth) << program << " on " << name;
      EXPECT_EQ(here.latency, line.latency) << program << " on " << name;
      EXPECT_GT(here.bandwidth.fs, 0) << program << " on " << name;
    }
  }
}

TEST(Fluid, reports_waits_that_cannot_end) {
  const auto machine = distinct("ring:2");
  try {
    run(machine, {{{sync()}}, {{sync(), wait(1, 2)}}}, {}, fluid());
    FAIL() << "it ended";
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::deadlock);
    EXPECT_THAT(failure.what(), HasSubstr("rank 1 workgroup 0 op 1 (wait)"));
    EXPECT_THAT(failure.what(), HasSubstr("semaphore 'channel 2' of rank 1 to reach 1, it is 0"));
  }
}

// --- What holds for all programs.

std::string same_links(const Result& a, const Result& b) {
  if (a.links.size() != b.links.size()) return "numbers of links";
  for (std::size_t l = 0; l < a.links.size(); ++l) {
    const LinkUse &x = a.links[l], &y = b.links[l];
    if (x.from != y.from || x.to != y.to || x.lane != y.lane || x.requests != y.requests ||
        x.payload_bytes != y.payload_bytes || x.wire_bytes != y.wire_bytes || x.busy != y.busy)
      return "link " + x.from + " to " + x.to + ": " + std::to_string(x.wire_bytes) + ", " +
             std::to_string(y.wire_bytes);
  }
  for (const char* name : {"stores.injected_bytes", "stores.delivered_bytes", "requests.flags",
                           "requests.bursts", "requests.remote_stores", "requests.remote_loads"}) {
    if (a.counters.at(name) != b.counters.at(name))
      return std::string(name) + ": " + std::to_string(a.counters.at(name)) + ", " +
             std::to_string(b.counters.at(name));
  }
  return {};
}

/// Without what the engine refuses.
machine::Machine any_machine_for_fluid() {
  machine::Machine machine = any_machine(Queues::none);
  machine.set("gpu.l2.copies", "false");
  if (!not_modelled_by_fluid(machine).empty()) machine.set("gpu.l1.latency", "1 fs");
  return machine;
}

TEST(Fluid, on_random_programs_and_machines_links_carry_what_they_carry_in_the_reference) {
  EXPECT_TRUE(rc::check("links", [] {
    const machine::Machine machine = any_machine_for_fluid();
    const program::Bound program = any_program(machine);
    const Options options = any_options(program.ranks());
    const Result here = simulate(machine, program, fluid(options));
    const std::string difference = same_links(simulate(machine, program, options), here);
    if (!difference.empty())
      RC_FAIL(machine.name + " " + program.name() + " " + std::to_string(program.size().count) +
              ": " + difference);
    // simulate() has compared the time with the bound.
    RC_ASSERT(here.attribution.size() == static_cast<std::size_t>(program.ranks()));
    for (const Attribution& attribution : here.attribution) {
      RC_ASSERT(sum(attribution) == here.time.fs);
      for (const std::int64_t fs : attribution) RC_ASSERT(fs >= 0);
    }
  }));
}

TEST(Fluid, two_runs_give_the_same_result) {
  EXPECT_TRUE(rc::check("determinism", [] {
    const machine::Machine machine = any_machine_for_fluid();
    const program::Bound program = any_program(machine);
    const Options options = fluid(any_options(program.ranks()));
    const Result a = simulate(machine, program, options), b = simulate(machine, program, options);
    RC_ASSERT(a.time == b.time);
    RC_ASSERT(a.rank_end == b.rank_end);
    RC_ASSERT(a.attribution == b.attribution);
    RC_ASSERT(a.visited_hops == b.visited_hops);
    RC_ASSERT(same_links(a, b).empty());
  }));
}

// --- Classes.

TEST(Classes, a_ring_of_like_ranks_has_one_class_and_an_odd_link_undoes_it) {
  const machine::Machine machine = machine::load("switch:16");
  const program::Bound ring = built_in("all-reduce/ring", machine, MiB(3));
  const Classes fold(machine, ring, {}, AlikeBy::time);
  EXPECT_EQ(fold.rank_classes(), 1);
  EXPECT_EQ(fold.agents().size(), 1U);
  EXPECT_EQ(fold.agents().front().members, std::ssize(fold.members()));
  machine::Machine odd = machine;
  odd.link_classes.push_back(odd.link_classes.front());
  odd.link_classes.back().latency = Time::from_ns(3000);
  odd.links.front().link_class = 1;
  odd.forget_routes();
  EXPECT_GT(
      Classes(odd, built_in("all-reduce/ring", odd, MiB(3)), {}, AlikeBy::time).rank_classes(), 8);
  Options skewed;
  skewed.skew = {Time{}, Time::from_us(5)};
  EXPECT_GT(Classes(machine, ring, skewed, AlikeBy::time).rank_classes(), 8);
}

// Refinement is given up after so many rounds: then all ranks are counted one by one, and lines
// still choose among the planes of a pair.
TEST(Classes, a_chain_of_more_ranks_than_rounds_carries_what_the_line_engine_says) {
  const machine::Machine machine = machine::load("gb200-nvl72");
  program::Bound chain = built_in("broadcast/ring", machine, KiB(64));
  Options line;
  line.engine = Engine::line;
  EXPECT_EQ(same_links(simulate(machine, chain, line), simulate(machine, chain, fluid())), "");
}

// Sizes of gradients are multiples of nothing. Channels that have 16 B more than others, and loads
// of a fixed size before them, do not make their workgroups unlike in time.
TEST(Classes, channels_of_almost_equal_size_are_alike) {
  const machine::Machine machine = machine::load("dgx-h100:4");
  const auto size_of_classes = [&](Bytes size) {
    const program::Bound tree =
        built_in("all-reduce/nccl", machine, size, {{"algorithm", "tree"}, {"protocol", "ll128"}});
    return Classes(machine, tree, {}, AlikeBy::time).agents().size();
  };
  const std::size_t even = size_of_classes(MiB(75));
  EXPECT_LT(even, 200U);
  EXPECT_EQ(size_of_classes(MiB(76)), even);
  EXPECT_EQ(size_of_classes(Bytes{78'473'232}), even);
  // As line by line: 82.78 and 82.64 us at 2 MiB and 16 B more on dgx-h100:2. Without classes this
  // engine takes 1 us more, since what is unlike comes apart at the NICs.
  const auto time_of = [&](Bytes size) {
    return simulate(machine,
                    built_in("all-reduce/nccl", machine, size,
                             {{"algorithm", "tree"}, {"protocol", "ll128"}}),
                    fluid())
        .time.ns();
  };
  EXPECT_NEAR(time_of(Bytes{4'194'320}) / time_of(MiB(4)), 1.0, 0.001);
}

// Every rank sums and stores its block of each part; all compute the same tiles in the same order.
TEST(Classes, ranks_that_share_out_sums_by_a_rotation_are_alike) {
  const machine::Machine machine = machine::load("dgx-h100");
  const program::Bound product = built_in("gemm-ar/partitioned", machine, MiB(2),
                                          {{"m", "1024"}, {"n", "1024"}, {"k", "512"}});
  EXPECT_EQ(Classes(machine, product, {}, AlikeBy::time).rank_classes(), 1);
}

TEST(Classes, classes_are_members_of_equal_number_and_rank) {
  for (const char* name : {"dgx-h100:2", "torus:4x4", "dgx-h100"}) {
    const machine::Machine machine = machine::load(name);
    const program::Bound ring = built_in("all-reduce/ring", machine, MiB(1));
    const Classes fold(machine, ring, {}, AlikeBy::time);
    std::int64_t members = 0;
    for (const AgentClass& agents : fold.agents()) {
      const std::int32_t rank_class = fold.rank_class(agents.first.rank);
      EXPECT_EQ(agents.first.rank, fold.first_rank(rank_class)) << name;
      EXPECT_EQ(agents.members % fold.ranks_in(rank_class), 0) << name;
      members += agents.members;
    }
    EXPECT_EQ(members, std::ssize(fold.members())) << name;
  }
}

// What classes stand for: dispatch alone tells the members of a class apart.
TEST(Classes, folded_and_unfolded_runs_take_the_same_time_but_for_dispatch) {
  for (const char* name : {"switch:8", "torus:2x4", "dgx-h100"}) {
    const machine::Machine machine =
        machine::load(name, {.set = {{"gpu.dispatch.interval", "1 fs"}}});
    const program::Bound ring = built_in("all-reduce/ring", machine, MiB(1));
    const Options options;
    fluid::Agents folded(machine, ring, options, AlikeBy::time),
        unfolded(machine, ring, options, AlikeBy::nothing);
    EXPECT_TRUE(folded.fold().folded());
    EXPECT_FALSE(unfolded.fold().folded());
    const double a = folded.run()->time.ns(), b = unfolded.run()->time.ns();
    EXPECT_NEAR(a / b, 1, 1e-3) << name;
  }
}

// The slice of the first workgroup begins with a line, those of others in one: they make a request
// more for each instruction. (Fluid once took all of them for as good as the first, and was below
// the bound on larger machines.)
TEST(Classes, slices_that_begin_inside_lines_take_what_they_take_unfolded) {
  const machine::Machine machine = machine::load("switch:32");
  const program::Bound program =
      built_in("all-reduce/one-shot", machine, Bytes{MiB(16).count + 48});
  const Options options;
  fluid::Agents folded(machine, program, options, AlikeBy::time),
      unfolded(machine, program, options, AlikeBy::nothing);
  EXPECT_TRUE(folded.fold().folded());
  EXPECT_NEAR(folded.run()->time.ns() / unfolded.run()->time.ns(), 1, 0.02);
}

// --- All built-ins.

class FluidBuiltIn : public ::testing::TestWithParam<const char*> {};

TEST_P(FluidBuiltIn, ends_and_carries_every_byte) {
  machine::Machine machine = machine::load(GetParam());
  if (machine.ranks() > 8 && !long_tests()) machine.place(std::vector<int>{0, 1, 8, 9});
  int ran = 0;
  for (const std::string& name : program::built_in_names()) {
    if (!plan::find_template(name)->in_chunks) continue;  // sizes of their own
    std::optional<program::Bound> made;
    try {
      made = built_in(name, machine, KiB(96));
    } catch (const Failure&) {
      continue;  // not on this machine
    }
    program::Bound program = *made;
    const Result result = simulate(machine, program, fluid());
    EXPECT_EQ(result.counters.at("stores.injected_bytes"),
              result.counters.at("stores.delivered_bytes"))
        << name;
    EXPECT_GT(result.time.fs, 0) << name;
    ++ran;
  }
  EXPECT_GT(ran, 10);
}

INSTANTIATE_TEST_SUITE_P(Machines, FluidBuiltIn,
                         ::testing::Values("dgx-h100", "dgx-a100", "mi300x-8", "torus:2x4",
                                           "dgx-h100:2"));

}  // namespace
}  // namespace hemiola::sim
