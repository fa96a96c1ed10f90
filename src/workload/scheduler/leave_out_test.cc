#include "workload/scheduler/leave_out.h"

#include <gtest/gtest.h>

#include "core/lists.h"
#include "workload/iteration/iteration_options.h"
#include "workload/testing/schedule.h"

namespace hemiola::workload {
namespace {

constexpr auto micros = [](std::int64_t count) { return test::FixedCosts::us(count); };

TEST(LeaveOut, AStarStandsForAnyText) {
  EXPECT_TRUE(is_like("norm", "norm"));
  EXPECT_FALSE(is_like("norms", "norm"));
  EXPECT_TRUE(is_like("", "*"));
  EXPECT_TRUE(is_like("layer norm backward", "*norm*"));
  EXPECT_TRUE(is_like("layer norm backward", "layer*backward"));
  EXPECT_FALSE(is_like("layer norm", "layer*backward"));
  EXPECT_FALSE(is_like("layer norm", "norm*"));
  EXPECT_TRUE(is_like("abb", "a*b*b"));
  EXPECT_FALSE(is_like("ab", "a*b*b"));
  EXPECT_FALSE(is_like("aba", "ab*ba")) << "what one star has passed is not there for the next";
}

/// A product, attention, a norm, a copy, work of the CPU, a call: 1, 2, 4, 8, 16, 32 us.
std::shared_ptr<const Workload> one_of_each() {
  WorkloadBuilder builder("each", 2);
  const std::int32_t all = builder.family("all", {{0, 1}});
  test::TraceWriter trace(builder);
  const std::uint16_t stream = builder.stream("compute");
  Compute product{.kind = Compute::Kind::product, .flop = 1};
  product.product = {.m = 1, .n = 1, .k = 1};
  trace.add("product", NodeKind::compute, stream, builder.compute(product), {});
  trace.add("attention", NodeKind::compute, stream,
            builder.compute({.kind = Compute::Kind::attention, .flop = 2}), {});
  trace.compute("layer norm", 4);
  trace.add("copy", NodeKind::memory, stream, builder.compute({.flop = 8}), {});
  const auto host = trace.add("host", NodeKind::host, stream, -1, {});
  trace.node(host).recorded = micros(16);
  const auto recorded = trace.add("dispatch", NodeKind::recorded_call, stream, 0, {host});
  trace.node(recorded).recorded = micros(64);
  trace.call("reduce", all, 32, {host}, "compute");
  trace.finish({0, 1});
  return std::make_shared<const Workload>(builder.take());
}

Time time_without(const std::string& word) {
  IterationRequest request;
  apply({.without = {word}}, "train", "--", request);
  const auto workload = leave_out(one_of_each(), request.without);
  Places places(*workload);
  test::FixedCosts costs(*workload);
  return schedule(*workload, places, costs, request.schedule).time;
}

TEST(LeaveOut, WhatIsLeftOutTakesNoTime) {
  EXPECT_EQ(time_without("products"), micros(126));
  EXPECT_EQ(time_without("attention"), micros(125));
  EXPECT_EQ(time_without("kernels"), micros(123));
  EXPECT_EQ(time_without("compute"), micros(120));
  EXPECT_EQ(time_without("copies"), micros(119));
  EXPECT_EQ(time_without("host"), micros(111));
  EXPECT_EQ(time_without("all-reduce"), micros(95));
  EXPECT_EQ(time_without("recorded-calls"), micros(63));
  EXPECT_EQ(time_without("dispatch*"), micros(63));
  EXPECT_EQ(time_without("*norm"), micros(123));
  EXPECT_EQ(time_without("*o*"), micros(112)) << "calls and the CPU's work stay";
}

TEST(LeaveOut, TheCpuNeedsNoTimeToLaunch) {
  WorkloadBuilder builder("slow", 1);
  test::TraceWriter trace(builder);
  const auto kernel = trace.compute("kernel", 10);
  trace.node(kernel).host = micros(5);
  trace.finish({0});
  const auto workload = leave_out(std::make_shared<const Workload>(builder.take()), {.host = true});
  EXPECT_EQ(workload->classes[0].trace->nodes[0].host, Time{});
  EXPECT_TRUE(workload->notices.empty());
}

TEST(LeaveOut, WhatIsNotThereIsSaid) {
  const auto workload = leave_out(one_of_each(), {.names = {"*softmax*"}});
  ASSERT_EQ(workload->notices.size(), 1U);
  EXPECT_EQ(workload->notices[0].message, "there is nothing to leave out: no node is '*softmax*'");
  const auto same = one_of_each();
  EXPECT_EQ(leave_out(same, {}), same);
}

TEST(LeaveOut, AnotherWordIsRefused) {
  IterationRequest request;
  try {
    apply({.without = {"kernel"}}, "train", "--", request);
    FAIL();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.what(),
                 "--without: error: 'kernel' is nothing to leave out\n"
                 "  hint: all-reduce, all-gather, reduce-scatter, all-to-all, broadcast, reduce, "
                 "messages; compute, products, attention, kernels, copies, host, recorded-calls; "
                 "or a part of the "
                 "names of kernels: '*norm*'");
  }
}

}  // namespace
}  // namespace hemiola::workload
