// Computes: alone, and as steps whose operands are loaded ahead.

#include <gtest/gtest.h>

#include "machine/devices/gemm_model.h"
#include "sim/testing/machines.h"

namespace hemiola::sim {
namespace {

using namespace test;

TEST(Computes, a_compute_operation_takes_its_duration_or_its_flop) {
  const machine::Machine machine =
      distinct("ring:2", {{"gpu.cu.matrix_rate", "1000"}, {"gpu.cu.clock", "1 GHz"}});
  const Costs c(machine);
  Op fixed{.kind = OpKind::compute};
  fixed.duration = Time::from_us(3);
  Op matrix{.kind = OpKind::compute};
  matrix.flop = 5'000'000;  // at 10^12 flop/s: 5 us
  const Result result = run(machine, {{{fixed, matrix}}, {}});
  EXPECT_EQ(result.time.fs, c.start() + 2 * c.overhead() + Time::from_us(8).fs + c.end());
  EXPECT_EQ(spent_on(result, 0, Reason::compute), Time::from_us(8).fs);
}

TEST(Computes, a_tile_of_a_product_takes_what_the_model_of_products_says) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.cu.matrix_rate_4byte", "2048"}});
  const Costs c(machine);
  Op tile{.kind = OpKind::compute, .product = {128, 64, 512}};
  tile.flop = 2 * 128 * 64 * 512;  // the roofline is below
  const Time modelled =
      machine::gemm_tile_time(machine.model(0), {128, 64}, 512, DataType::float32);
  const Result result = run(machine, {{{tile}}, {}});
  EXPECT_EQ(result.time.fs, c.start() + c.overhead() + modelled.fs + c.end());
  EXPECT_EQ(spent_on(result, 0, Reason::compute), modelled.fs);
}

/// What `bytes` posted at once take until the last of them is there, on a machine without caches.
std::int64_t operand(const Costs& c, std::int64_t bytes) {
  return c.issue() + c.cu(0) + c.noc() + c.gpu.gemm_l2_rate.time_for(bytes * c.gpu.l2_slices).fs +
         c.gpu.l2_latency.fs + c.read(bytes) + c.cu(bytes) + c.noc();
}

Op step(Time duration) {
  Op op{.kind = OpKind::compute, .src = {at(0, kInput)}};
  op.duration = duration;
  return op;
}

TEST(Steps, a_compute_starts_when_its_operands_are_there_and_its_results_are_stored_after_it) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.gemm.l2_rate", "77 GB/s"}});
  const Costs c(machine);
  for (const Time duration : {Time::from_us(9), Time::from_ns(1)}) {
    Op op = step(duration);
    op.dst = {at(0, kOutput)};
    const Result result = run(machine, {{{op}}, {}});
    EXPECT_EQ(result.time.fs, c.start() + operand(c, kLine) + duration.fs +
                                  c.gpu.sync_barrier_latency.fs + c.local_store(kLine) + c.end());
    EXPECT_EQ(spent_on(result, 0, Reason::compute), duration.fs);
    EXPECT_EQ(sum(result.attribution[0]), result.time.fs);
  }
}

/// When a workgroup is through with `count` steps of one line and `duration`, of which `stages` are
/// under way at a time. Everything that serves the lines takes them one after the other.
std::int64_t last_step(const Costs& c, std::int64_t count, std::int64_t stages,
                       std::int64_t duration) {
  const std::vector<std::pair<std::int64_t, std::int64_t>> way{
      {c.issue(), 0},
      {c.cu(0), c.noc()},
      {c.gpu.gemm_l2_rate.time_for(kLine * c.gpu.l2_slices).fs, c.gpu.l2_latency.fs},
      {c.hbm(kLine), c.gpu.hbm_latency.fs},
      {c.cu(kLine), c.noc()}};
  std::vector<std::int64_t> free(way.size(), 0), ends;
  std::int64_t posted = c.start();
  for (std::int64_t i = 0; i < count; ++i) {
    if (i >= stages)
      posted = std::max(posted,
                        ends[static_cast<std::size_t>(i - stages)] + c.gpu.sync_barrier_latency.fs);
    std::int64_t at = posted;
    for (std::size_t s = 0; s < way.size(); ++s) {
      free[s] = std::max(free[s], at) + way[s].first;
      at = free[s] + way[s].second;
    }
    ends.push_back(std::max(at, ends.empty() ? 0 : ends.back()) + duration);
  }
  // The wavefront passes its last compute when the one so many before it has ended.
  const std::int64_t passed = count < stages ? 0
                                             : ends[static_cast<std::size_t>(count - stages)] +
                                                   c.gpu.sync_barrier_latency.fs;
  return std::max(ends.back(), passed);
}

TEST(Steps, of_a_workgroup_hold_operands_for_as_many_as_the_kernel_has_stages) {
  for (const char* stages : {"1", "2", "3", "8"}) {
    const machine::Machine machine =
        distinct("ring:2", {{"gpu.gemm.l2_rate", "77 GB/s"}, {"gpu.gemm.stages", stages}});
    const Costs c(machine);
    for (const Time duration : {Time::from_ns(3), Time::from_ns(700), Time::from_us(9)}) {
      const Result result = run(machine, {{Ops(12, step(duration))}, {}});
      EXPECT_EQ(result.time.fs, last_step(c, 12, c.gpu.gemm_stages, duration.fs) + c.end())
          << stages << " stages, steps of " << duration.ns() << " ns";
      EXPECT_EQ(sum(result.attribution[0]), result.time.fs);
    }
  }
}

TEST(Steps, take_the_stages_of_their_kernel_before_those_of_the_device) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.gemm.stages", "8"}});
  const Costs c(machine);
  program::Bound program = make(machine, {{Ops(12, step(Time::from_ns(3)))}, {}});
  program = program::changed(program, [&](auto& p) { p.kernels.front().stages = 2; });
  EXPECT_EQ(simulate(machine, program, {}).time.fs,
            last_step(c, 12, 2, Time::from_ns(3).fs) + c.end());
}

TEST(Steps, are_joined_by_a_sync) {
  const machine::Machine machine = distinct("ring:2", {{"gpu.gemm.stages", "3"}});
  const Costs c(machine);
  const Time duration = Time::from_ns(700);
  Ops ops(2, step(duration));
  ops.push_back(sync());
  ops.push_back(step(duration));
  EXPECT_EQ(run(machine, {{ops}, {}}).time.fs, last_step(c, 2, 3, duration.fs) +
                                                   c.gpu.sync_barrier_latency.fs +
                                                   operand(c, kLine) + duration.fs + c.end());
}

/// Bodies of `count` workgroups, each with one step of a product whose operands are one line.
std::vector<Ops> products(std::size_t count, bool stores) {
  Op op = step({});
  op.product = {128, 64, 512};
  op.flop = 2 * 128 * 64 * 512;
  if (stores) op.dst = {at(0, kOutput)};
  return std::vector<Ops>(count, Ops{op});
}

machine::Machine with_products(Settings more) {
  more.emplace_back("gpu.cu.matrix_rate_4byte", "2048");
  more.emplace_back("gpu.gemm.setup", "1700 ns");
  return distinct("ring:2", more);
}

TEST(Steps, of_a_product_come_after_its_set_up_and_store_by_the_model_of_products) {
  const machine::Machine machine = with_products({{"gpu.gemm.burst_time", "1 ms"},
                                                  {"gpu.gemm.store_rate", "11 GB/s"},
                                                  {"gpu.noc.cu_rate", "50 GB/s"},
                                                  {"gpu.noc.cu_out_rate", "50 GB/s"}});
  const Costs c(machine);
  const Time product = machine::gemm_tile_time(c.gpu, {128, 64}, 512, DataType::float32);
  const std::int64_t loaded = c.start() + c.gpu.gemm_setup.fs + operand(c, kLine);
  EXPECT_EQ(run(machine, {products(1, false), {}}).time.fs, loaded + product.fs + c.end());
  // One line of it is stored here; the epilogue is that of the tile, less what all stores take.
  const Time epilogue = machine::gemm_epilogue_time(c.gpu, {128, 64}, DataType::float32);
  const Time stores = c.gpu.noc_cu_out_rate.time_for(128 * 64 * 4);
  ASSERT_GT(epilogue, stores);
  EXPECT_EQ(run(machine, {products(1, true), {}}).time.fs,
            loaded + product.fs + (epilogue - stores).fs + c.gpu.sync_barrier_latency.fs +
                c.local_store(kLine) + c.end());
}

TEST(Steps, beyond_a_burst_share_what_the_power_limit_lets_the_device_do) {
  const machine::Machine machine =
      with_products({{"gpu.gemm.burst_time", "0 ns"}, {"gpu.gemm.sustained_clock", "1 MHz"}});
  const Costs c(machine);
  const Time turn = machine::gemm_sustained_time(c.gpu, 2 * 128 * 64 * 512, DataType::float32);
  const std::int64_t loaded = c.start() + c.gpu.gemm_setup.fs + operand(c, kLine);
  for (const std::size_t count : {1U, 3U}) {
    const std::int64_t time = run(machine, {products(count, false), {}}).time.fs;
    EXPECT_EQ(time, loaded + static_cast<std::int64_t>(count) * turn.fs + c.end()) << count;
  }
}

}  // namespace
}  // namespace hemiola::sim
