#include "program/semantics/costs.h"

#include <gtest/gtest.h>

namespace hemiola::program {
namespace {

machine::GpuModel model_with(std::int64_t overhead, std::int64_t fence, std::int64_t system_fence) {
  machine::GpuModel model;
  model.sync_op_overhead = {overhead};
  model.sync_fence_latency = {fence};
  model.sync_system_fence_time = {system_fence};
  return model;
}

TEST(Costs, an_operation_begins_once_and_a_sync_begins_none) {
  Primitive primitive;
  primitive.op = 3;
  primitive.kind = PrimitiveKind::move;
  EXPECT_TRUE(begins_operation(2, primitive));
  EXPECT_FALSE(begins_operation(3, primitive));
  primitive.kind = PrimitiveKind::sync;
  EXPECT_FALSE(begins_operation(2, primitive));
}

TEST(Costs, what_is_posted_and_bare_kernels_have_no_overhead) {
  const machine::GpuModel model = model_with(500, 1, 1);
  Primitive primitive;
  primitive.kind = PrimitiveKind::move;
  EXPECT_EQ(operation_overhead(model, false, primitive).fs, 500);
  EXPECT_EQ(operation_overhead(model, true, primitive).fs, 0);
  EXPECT_EQ(operation_overhead(model_with(1, 1, 1), false, primitive).fs, 0) << "1 fs is none";
  primitive.posted = true;
  EXPECT_EQ(operation_overhead(model, false, primitive).fs, 0);
}

TEST(Costs, only_a_release_at_system_scope_waits_for_the_system) {
  EXPECT_EQ(release_time(model_with(0, 700, 40), false).fs, 700);
  EXPECT_EQ(release_time(model_with(0, 700, 40), true).fs, 740);
  EXPECT_EQ(release_time(model_with(0, 1, 40), true).fs, 40) << "1 fs is none";
}

}  // namespace
}  // namespace hemiola::program
