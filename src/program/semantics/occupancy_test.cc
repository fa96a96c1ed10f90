#include "program/semantics/occupancy.h"

#include <gtest/gtest.h>

#include "machine/devices/gpu_model.h"
#include "machine/machine.h"
#include "program/built_in.h"
#include "program/jobs/launch_programs.h"
#include "program/testing/programs.h"

namespace hemiola::program {
namespace {

machine::GpuModel model_of(std::int64_t threads, std::int64_t workgroups, std::int64_t registers) {
  machine::GpuModel model;
  model.cu_max_threads = threads;
  model.cu_max_workgroups = workgroups;
  model.cu_registers = {registers};
  model.sync_thread_state = {256};
  return model;
}

TEST(Occupancy, is_limited_by_threads_by_workgroups_or_by_registers) {
  const Kernel kernel{.threads = 256, .bodies = {0}};
  const auto each = [&](const machine::GpuModel& model) {
    return blocks_per_unit(occupancy_of_block(kernel, 0, model), model);
  };
  EXPECT_EQ(each(model_of(2048, 32, 0)), 8);
  EXPECT_EQ(each(model_of(2048, 5, 0)), 5);
  EXPECT_EQ(each(model_of(2048, 32, 256 << 10)), 4);  // 64 KiB each
  EXPECT_EQ(each(model_of(128, 32, 1 << 10)), 1) << "an empty compute unit takes any block";
}

TEST(Occupancy, of_a_product_is_twice_the_accumulators_of_its_largest_tile) {
  Kernel kernel{.threads = 256, .largest_tile = 128 * 128, .bodies = {0}};
  const machine::GpuModel model = model_of(2048, 32, 256 << 10);
  EXPECT_EQ(occupancy_of_block(kernel, 0, model).registers, 128 << 10);
  kernel.largest_tile = 256 * 128;
  EXPECT_EQ(occupancy_of_block(kernel, 0, model).registers, 256 << 10);
  kernel.largest_tile = 256 * 256;
  EXPECT_EQ(occupancy_of_block(kernel, 0, model).registers, 256 << 10) << "no more than there are";
  kernel.largest_tile = 64 * 64;
  EXPECT_EQ(occupancy_of_block(kernel, 0, model).registers, 64 << 10) << "64 registers a thread";
}

TEST(Occupancy, of_a_blocks_parts_is_that_of_the_block) {
  Kernel kernel{.threads = 96, .fills_unit = true, .bodies = {0, 0, 0, 0}, .blocks = {0, 0, 0, 1}};
  const machine::GpuModel model = model_of(2048, 32, 1000);
  Occupancy parts;
  for (std::size_t w = 0; w < 3; ++w) parts += occupancy_of(kernel, w, model);
  const Occupancy block = occupancy_of_block(kernel, 1, model);
  EXPECT_EQ(parts.threads, block.threads);
  EXPECT_EQ(parts.workgroups, block.workgroups);
  EXPECT_EQ(parts.registers, block.registers);
  EXPECT_EQ(block.registers, 1000);
  Occupancy used = block;
  EXPECT_FALSE(has_room(used, occupancy_of_block(kernel, 3, model), model));
  used -= block;
  EXPECT_TRUE(has_room(used, occupancy_of_block(kernel, 3, model), model));
}

TEST(Occupancy, knows_the_tiles_of_a_program_and_the_kernels_of_a_library) {
  const machine::GpuModel& h100 = machine::gpu_model("h100");
  const Program product = product_program({4096, 4096, 4096}, DataType::bfloat16, h100);
  const Kernel& kernel = product.kernels.front();
  EXPECT_GE(kernel.largest_tile, 128 * 128);
  EXPECT_FALSE(kernel.fills_unit);
  const Program collective =
      load("all-gather/nccl", {.ranks = 8, .machine = machine::share(machine::load("dgx-h100"))});
  ASSERT_TRUE(collective.kernels.front().fills_unit);
  const Occupancy used = occupancy_of_block(kernel, 0, h100);
  EXPECT_FALSE(has_room(used, occupancy_of_block(collective.kernels.front(), 0, h100), h100));
  EXPECT_FALSE(test::built_in("all-gather/ring", 8).kernels.front().fills_unit);
}

}  // namespace
}  // namespace hemiola::program
