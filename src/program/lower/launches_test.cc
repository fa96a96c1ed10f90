// What launches become: kernels on streams, events, and what waits and signals around them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "core/testing/failure.h"
#include "hemiola/parts/build_plan.h"
#include "plan/template.h"
#include "program/bind/bound.h"
#include "program/lower/lower.h"

namespace hemiola::program {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = StreamItem::Kind;

const plan::Parameters kSmall{{"m", "64"},     {"n", "32"},     {"k", "32"},     {"tile_m", "8"},
                              {"tile_n", "8"}, {"tile_k", "8"}, {"degree", "2"}, {"axis", "k"}};

std::vector<Kind> kinds_of(const Stream& stream) {
  std::vector<Kind> kinds;
  for (const StreamItem& item : stream) kinds.push_back(item.kind);
  return kinds;
}

TEST(LowerLaunches, gives_each_a_kernel_behind_a_gate) {
  const plan::Plan plan = plan::make("ag-gemm/sequence", 4, kSmall);
  const Program program = lower(plan, {.realization = Realization::copy_engine});
  const auto& streams = program.codes[0].streams;
  ASSERT_EQ(streams.size(), 4u) << "three of copies, one of computes";
  EXPECT_THAT(kinds_of(streams[3]),
              ElementsAre(Kind::engine, Kind::kernel, Kind::engine, Kind::kernel));
  for (const std::size_t gate : {0, 2}) {
    const std::vector<Op>& ops =
        program.bodies[static_cast<std::size_t>(streams[3][gate].index)].ops;
    EXPECT_EQ(std::count_if(ops.begin(), ops.end(),
                            [](const Op& op) { return op.kind == OpKind::dep_wait; }),
              3)
        << "for one transfer of each peer";
    EXPECT_TRUE(std::all_of(ops.begin(), ops.end(), [](const Op& op) {
      return op.kind == OpKind::dep_wait || op.kind == OpKind::sync;
    }));
  }
}

/// Numbers of sources of the reductions of a kernel's workgroups.
std::vector<std::size_t> sources_of_sums(const Program& program, const Kernel& kernel) {
  std::vector<std::size_t> sources;
  for (const std::int32_t body : kernel.bodies) {
    for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops)
      if (op.kind == OpKind::reduce) sources.push_back(op.src.size());
  }
  return sources;
}

const plan::Parameters kSmallSums{{"m", "64"},     {"n", "32"},     {"k", "32"},
                                  {"tile_m", "8"}, {"tile_n", "8"}, {"tile_k", "8"},
                                  {"degree", "2"}, {"axis", "m"}};

// Copy engines cannot add.
TEST(LowerLaunches, leaves_sums_in_own_memory_to_workgroups) {
  const plan::Plan plan = plan::make("gemm-rs/sequence", 4, kSmallSums);
  const Program program = lower(plan, {.workgroups = 1, .realization = Realization::copy_engine});
  const auto& streams = program.codes[0].streams;
  ASSERT_EQ(streams.size(), 5u) << "three of copies, one kernel that adds, one of computes";
  for (const std::size_t copies : {0, 1, 2})
    EXPECT_THAT(kinds_of(streams[copies]), ElementsAre(Kind::engine));
  EXPECT_THAT(kinds_of(streams[3]), ElementsAre(Kind::kernel));
  const Kernel& kernel = program.kernels[static_cast<std::size_t>(streams[3].front().index)];
  EXPECT_THAT(sources_of_sums(program, kernel), ElementsAre(4, 4))
      << "the own block and three slots, in each of two steps";
  EXPECT_THAT(kinds_of(streams[4]),
              ElementsAre(Kind::kernel, Kind::engine, Kind::kernel, Kind::engine))
      << "each launch with its bell";
}

TEST(LowerLaunches, gives_sums_half_of_the_workgroups) {
  const plan::Plan plan = plan::make("gemm-rs/sequence", 4, kSmallSums);
  const Program program = lower(plan, {.workgroups = 12});
  std::size_t adding = 0;
  const Kernel& kernel = program.kernels.front();
  for (const std::int32_t body : kernel.bodies) {
    const std::vector<Op>& ops = program.bodies[static_cast<std::size_t>(body)].ops;
    adding +=
        std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::reduce; });
  }
  EXPECT_EQ(kernel.bodies.size(), 12u);
  EXPECT_LE(adding, 6u) << "or fewer, where there is less than 4 KiB for each";
  EXPECT_GE(adding, 1u);
}

TEST(LowerLaunches, keeps_a_sum_apart_that_somebody_is_told_of) {
  plan::Plan plan = plan::make("gemm-ar/sequence", 4, kSmallSums);
  for (plan::Stream& stream : plan.codes[0].streams) {
    if (!stream.name.starts_with("sums to")) continue;
    for (plan::Item& item : std::get<plan::Loop>(stream.items[0]).items)
      --std::get<plan::Transfer>(item).after[0].transfer.offset;  // one slot is missing
  }
  const Program program = lower(plan, {.workgroups = 1, .realization = Realization::copy_engine});
  const Kernel* adds = nullptr;
  for (const Kernel& kernel : program.kernels)
    if (!sources_of_sums(program, kernel).empty()) adds = &kernel;
  ASSERT_NE(adds, nullptr);
  EXPECT_THAT(sources_of_sums(program, *adds), ElementsAre(3, 2, 3, 2));
}

TEST(LowerLaunches, has_as_many_workgroups_as_results_and_places) {
  const plan::Plan plan = plan::make("ag-gemm/sequence", 4, kSmall);
  const auto workgroups = [&](int most) {
    const Program program = lower(plan, {.compute_workgroups = most});
    const Stream& stream = program.codes[0].streams.back();
    return program.kernels[static_cast<std::size_t>(stream.back().index)].bodies.size();
  };
  EXPECT_EQ(workgroups(100), 8u) << "4 x 2 x 1 tiles of 1 x 8 x 8 of 4 x 16 x 8 results";
  EXPECT_EQ(workgroups(3), 3u);
}

TEST(LowerLaunches, loads_what_it_adds_to_once_and_stores_the_sum_once) {
  const plan::Plan plan = plan::make("ag-gemm/sequence", 4, kSmall);
  const Program program = lower(plan, {});
  const Stream& stream = program.codes[0].streams.back();
  const Kernel& kernel = program.kernels[static_cast<std::size_t>(stream.back().index)];
  for (const std::int32_t body : kernel.bodies) {
    std::vector<std::size_t> reads, writes;
    for (const Op& op : program.bodies[static_cast<std::size_t>(body)].ops) {
      if (op.kind != OpKind::compute) continue;
      reads.push_back(op.src.size());
      writes.push_back(op.dst.size());
    }
    EXPECT_THAT(reads, ElementsAre(3, 2)) << "two steps along k";
    EXPECT_THAT(writes, ElementsAre(0, 1));
  }
}

TEST(LowerLaunches, adds_with_the_first_of_many_steps_and_stores_with_the_last) {
  plan::Parameters deep = kSmall;
  deep[2] = {"k", "256"};  // 16 steps in each of two launches
  const Program program = lower(plan::make("ag-gemm/sequence", 4, deep), {});
  const Stream& stream = program.codes[0].streams.back();
  const Kernel& kernel = program.kernels[static_cast<std::size_t>(stream.back().index)];
  std::vector<std::size_t> reads, writes;
  std::int64_t iterations = 0;
  for (const Op& op : program.bodies[static_cast<std::size_t>(kernel.bodies[0])].ops) {
    if (op.kind == OpKind::loop) iterations += op.count;
    if (op.kind != OpKind::compute) continue;
    reads.push_back(op.src.size());
    writes.push_back(op.dst.size());
  }
  EXPECT_THAT(reads, ElementsAre(3, 2, 2, 2));
  EXPECT_THAT(writes, ElementsAre(0, 0, 0, 1));
  EXPECT_EQ(iterations, 7) << "of two steps each";
}

/// Two launches on two streams, the second after the first, and a copy of the result.
plan::Plan two_streams() {
  plan::Plan plan;
  plan.name = "two";
  plan.ranks = 2;
  plan.tensors = {{"a", plan::Role::input, {8, 8}, DataType::float32},
                  {"b", plan::Role::scratch, {8, 8}, DataType::float32},
                  {"c", plan::Role::output, {8, 8}, DataType::float32}};
  plan::Compute first{.name = "first", .kernel = "gelu", .axes = {}, .operands = {}};
  first.axes = {{"m", 8, 4, false}, {"n", 8, 8, false}};
  first.operands = {{0, plan::Use::read, {0, 1}}, {1, plan::Use::write, {0, 1}}};
  first.stream = "x";
  plan::Compute second = first;
  second.name = "second";
  second.operands = {{0, plan::Use::read, {0, 1}}, {1, plan::Use::add, {0, 1}}};
  second.stream = "y";
  second.waits = plan::Waits::launch;
  second.after = {{.rank = own_rank(), .compute = constant(0)}};
  const plan::Region half{1, {{{{}, 4}, {{}, 8}}}}, into{2, {{{{}, 4}, {{}, 8}}}};
  plan::Transfer keep = plan::push(plan::around(2, 1), half, into);
  keep.after = {{.rank = own_rank(), .computed = half}};
  plan.codes = {plan::Code{{{"keep", {keep}}}}};
  plan.codes[0].computes = {first, second};
  plan.code_of = {0, 0};
  plan::validate(plan);
  return plan;
}

TEST(LowerLaunches, orders_streams_by_events_and_rings_for_transfers) {
  const Program program = lower(two_streams(), {});
  const auto& streams = program.codes[static_cast<std::size_t>(program.code_of[1])].streams;
  ASSERT_EQ(streams.size(), 3u);
  EXPECT_THAT(kinds_of(streams[1]), ElementsAre(Kind::kernel, Kind::event_record));
  EXPECT_THAT(kinds_of(streams[2]), ElementsAre(Kind::event_wait, Kind::kernel, Kind::engine));
  EXPECT_EQ(streams[1].back().index, streams[2].front().index);
  const std::vector<Op>& bell =
      program.bodies[static_cast<std::size_t>(streams[2].back().index)].ops;
  ASSERT_EQ(bell.size(), 1u);
  EXPECT_EQ(bell.front().kind, OpKind::dep_signal);
}

TEST(LowerLaunches, does_not_share_workgroups_with_communication) {
  EXPECT_THAT(hemiola::test::message_of(
                  [] { lower(two_streams(), {.realization = Realization::co_located}); }),
              HasSubstr("launches computes one after the other"));
}

}  // namespace
}  // namespace hemiola::program
