// Defects found in published code for fused communication (fused GEMMs, chunk schedules), each as
// the smallest plan or program that has it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "plan/area.h"
#include "plan/testing/split.h"
#include "verify/execute.h"
#include "verify/testing/interleave.h"
#include "verify/testing/plans.h"
#include "verify/testing/programs.h"
#include "verify/verify.h"

namespace hemiola::verify {
namespace {

using namespace test;
using plan::Transfer;
using ::testing::HasSubstr;

Transfer& looped(plan::Plan& plan, std::size_t index) {
  return std::get<Transfer>(std::get<plan::Loop>(plan.codes[0].streams[0].items[index]).items[0]);
}

/// The transfers of a loop in two halves, along axis 0 of their rows.
plan::Plan split_scatter(bool keep_reduction) {
  plan::Plan plan = multiply_and_scatter(3);
  plan::Loop& loop = std::get<plan::Loop>(plan.codes[0].streams[0].items[0]);
  const Transfer whole = std::get<Transfer>(loop.items[0]);
  const auto halves = plan::split(whole.source, 0, 2);
  loop.items.clear();
  for (const plan::Region& half : halves) {
    Transfer transfer = whole;
    transfer.source = transfer.destination = transfer.operand = half;
    if (!keep_reduction) {
      transfer.reduce = ReduceOp::none;
      transfer.operand = {};
    }
    loop.items.emplace_back(transfer);
  }
  return plan;
}

TEST(Defects, a_split_that_loses_the_reduction) {
  EXPECT_EQ(check(split_scatter(true)).verdict, Verdict::proven);
  const plan::Plan plan = split_scatter(false);
  validate(plan);
  EXPECT_EQ(check(plan).verdict, Verdict::wrong);
  EXPECT_EQ(interleave(plan, 1).outcome, Outcome::wrong);
}

TEST(Defects, a_split_that_loses_the_period_of_its_dependencies) {
  // Both chunks of a forwarded gather in two pieces each: step i waits for transfer 2 i + 1, not i.
  for (const bool right : {true, false}) {
    plan::Plan plan = start("split ring", 4);
    plan.collective = Collective::all_gather;
    plan.chunks_per_size = 8;
    plan.tensors = {{"input", plan::Role::input, 2}, {"output", plan::Role::output, 8}};
    const auto piece = [](std::int64_t half, std::int64_t distance, std::int64_t step) {
      Affine chunk = plan::around(4, distance, step);
      chunk.scale = 2;
      chunk.offset = half;
      return plan::chunk_of(1, chunk);
    };
    plan::Stream stream{
        "ring", {plan::copy(plan::chunks_of(0, {}, 2), plan::chunks_of(1, {.rank = 2}, 2))}};
    for (std::int64_t half = 0; half < 2; ++half)
      stream.items.emplace_back(plan::push(neighbour(1, 4), piece(half, 0, 0), piece(half, 0, 0)));
    plan::Loop loop{2, {}};
    for (std::int64_t half = 0; half < 2; ++half) {
      const Affine number{.constant = half + 1, .loop = {right ? 2 : 1, 0}};
      loop.items.emplace_back(
          after(plan::push(neighbour(1, 4), piece(half, -1, -1), piece(half, -1, -1)),
                neighbour(-1, 4), number));
    }
    stream.items.emplace_back(loop);
    run_everywhere(plan, stream);
    validate(plan);
    EXPECT_EQ(check(plan).verdict, right ? Verdict::proven : Verdict::wrong) << check(plan).summary;
    EXPECT_EQ(interleave(plan, 1).outcome, right ? Outcome::right : Outcome::race);
  }
}

TEST(Defects, a_split_by_bytes_that_loses_the_axes_of_a_rectangle) {
  plan::Plan plan = gather_and_multiply(2, false);
  // Half of the columns, taken as the first half of the bytes: other elements, as many.
  Transfer& transfer = looped(plan, 0);
  const auto columns = plan::split(transfer.source, 1, 2);
  const auto rows = plan::split(transfer.source, 0, 2);
  Transfer second = transfer;
  transfer.source = transfer.destination = columns[0];
  second.source = second.destination = rows[1];
  std::get<plan::Loop>(plan.codes[0].streams[0].items[0]).items.emplace_back(second);
  validate(plan);
  EXPECT_EQ(check(plan).verdict, Verdict::wrong);
}

TEST(Defects, a_chunk_in_transit_without_its_signal) {
  plan::Plan plan = plan::make("all-reduce/ring", 5);
  looped(plan, 1).after.clear();
  const Proof proof = check(plan);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("data race on partial["));
}

TEST(Defects, a_wave_that_works_in_place_does_nothing) {
  // Source and destination are the same: a wave more than there is work.
  plan::Plan plan = plan::make("all-gather/direct", 3);
  const plan::Region own = plan::chunk_of(1, own_rank());
  plan.codes[0].streams[0].items.emplace_back(plan::copy(own, own));
  const Proof proof = check(plan);
  EXPECT_EQ(proof.verdict, Verdict::proven);
  ASSERT_FALSE(proof.warnings.empty());
  EXPECT_THAT(proof.warnings.items()[0].message, HasSubstr("arrives again, with the value it has"));
}

TEST(Defects, the_first_wave_s_shape_for_all_waves) {
  // Blocks of 5 rows, but each waits for the tiles of 4 only.
  plan::Plan plan = start("unequal waves", 2);
  plan.tensors = {{"a", plan::Role::input, {10, 4}, DataType::float32},
                  {"b", plan::Role::input, {4, 4}, DataType::float32},
                  {"c", plan::Role::output, {10, 4}, DataType::float32}};
  const auto own = rows_of(2, block(own_rank(), 5), 5, 4);
  const auto waited = rows_of(2, block(own_rank(), 5), 4, 4);
  Transfer transfer = plan::accumulating(plan::pull(neighbour(1, 2), own, own));
  transfer.after = {computed(neighbour(1, 2), waited), computed(own_rank(), own)};
  run_everywhere(plan, {"reduce", {transfer}});
  plan.codes[0].computes = {gemm(0, 1, 2, 10, 4, 4, 1, 4)};
  plan.codes[0].expected = {{own, true}};
  validate(plan);
  EXPECT_EQ(check(plan).verdict, Verdict::wrong);
  std::get<Transfer>(plan.codes[0].streams[0].items[0]).after[0].computed = own;
  EXPECT_EQ(check(plan).verdict, Verdict::proven);
}

/// Rank 0 produces a chunk for each of two consumers, in two workgroups, which signal `slots`.
std::vector<std::vector<std::vector<Op>>> star(std::int32_t first_slot, std::int32_t second_slot) {
  std::vector<std::vector<std::vector<Op>>> bodies(3);
  const std::int32_t slots[] = {first_slot, second_slot};
  for (int consumer = 0; consumer < 2; ++consumer) {
    bodies[0].push_back(
        {transfer(OpKind::copy, {at(0, kInput, consumer)}, {at(0, kScratch, consumer)}), sync(),
         signal(0, slots[consumer])});
    bodies[static_cast<std::size_t>(consumer) + 1] = {
        {wait(0, slots[consumer]), sync(),
         transfer(OpKind::get, {at(0, kScratch, consumer)}, {at(consumer + 1, kOutput, 0)})}};
  }
  return bodies;
}

TEST(Defects, two_consumers_of_one_producer_share_a_slot) {
  EXPECT_EQ(check(make(Collective::custom, 3, star(0, 1)), {.calls = 1}).summary,
            "nothing wrong found, but not proven: no postcondition is known for this collective "
            "(--promise FILE "
            "states one)");
  const Proof proof = check(make(Collective::custom, 3, star(0, 0)));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("data race on bytes [64, 128) of scratch of rank 0"));
}

/// Verdict on an all-gather whose rank 0 has `ops` in place of those of exchange().
Verdict with_rank_0(const std::vector<Op>& ops) {
  auto bodies = exchange_and_add();
  bodies[0][0] = ops;
  return check(make(Collective::all_reduce, 2, bodies), {.calls = 1}).verdict;
}

TEST(Defects, a_relaxed_send_after_the_tile_was_stored) {
  auto ops = exchange_and_add()[0][0];
  EXPECT_EQ(with_rank_0(ops), Verdict::proven);
  ops[2].kind = OpKind::relaxed_signal;
  EXPECT_EQ(with_rank_0(ops), Verdict::wrong);
}

TEST(Defects, flags_by_plain_stores_and_loads) {
  auto bodies = exchange_and_add();
  for (auto& rank : bodies) {
    rank[0][2].kind = OpKind::relaxed_signal;
    rank[0][3].kind = OpKind::relaxed_wait;
  }
  EXPECT_EQ(check(make(Collective::all_reduce, 2, bodies)).verdict, Verdict::wrong);
}

TEST(Defects, a_device_scope_wait_for_the_flag_of_a_peer) {
  auto ops = exchange_and_add()[0][0];
  ops[3] = flag(OpKind::sem_acquire, {{0, 0}});
  EXPECT_EQ(with_rank_0(ops), Verdict::wrong);
}

TEST(Defects, a_signal_before_the_barrier_of_the_workgroup) {
  auto ops = exchange_and_add()[0][0];
  std::swap(ops[1], ops[2]);
  EXPECT_EQ(with_rank_0(ops), Verdict::wrong);
}

TEST(Defects, a_signal_after_a_bulk_store_that_was_not_waited_for) {
  // A store that another engine performs is complete when it was flushed, not when it was issued.
  auto ops = exchange_and_add()[0][0];
  ops[0].channel = program::Channel::port;
  EXPECT_EQ(with_rank_0(ops), Verdict::wrong);
  Op flush = op(OpKind::flush);
  flush.channel = program::Channel::port;
  ops.insert(ops.begin() + 1, flush);
  EXPECT_EQ(with_rank_0(ops), Verdict::proven);
}

TEST(Defects, the_last_arriver_at_a_counter_does_not_inherit_the_others_stores) {
  // Two workgroups store half a tile each; the second signals for both once the first has counted.
  const auto program = [](OpKind arrive) {
    auto bodies = exchange_and_add();
    const Op all = bodies[0][0][0];
    Op half = all;
    half.src[0].chunks = half.dst[0].chunks = 1;
    bodies[0][0][0] = half;
    half.src[0].chunk = half.dst[0].chunk = constant(1);
    bodies[0][0].insert(bodies[0][0].begin() + 1,
                        {arrive == OpKind::sem_acquire ? flag(arrive, {{0, 2}})
                                                       : flag(OpKind::relaxed_wait, {{0, 2}})});
    bodies[0].push_back({half, sync(),
                         arrive == OpKind::sem_acquire ? flag(OpKind::sem_release, {{0, 2}})
                                                       : flag(OpKind::relaxed_signal, {{0, 2}})});
    return make(Collective::all_reduce, 2, bodies);
  };
  const Proof acquired = check(program(OpKind::sem_acquire), {.calls = 1});
  EXPECT_EQ(acquired.verdict, Verdict::proven) << acquired.summary;
  EXPECT_EQ(check(program(OpKind::relaxed_wait), {.calls = 1}).verdict, Verdict::wrong);
}

TEST(Defects, flags_that_are_not_reset_between_iterations) {
  auto bodies = exchange_and_add();
  bodies[0][0].push_back(signal(1, 0));  // one more than is taken: the next call does not wait
  const Proof proof = check(make(Collective::all_reduce, 2, bodies));
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("in call 2"));
  ASSERT_FALSE(proof.counterexample.empty());
  EXPECT_THAT(proof.counterexample[0].text, HasSubstr("1 signal there no wait takes"));
}

/// A kernel that fills the machine and waits for copies, which are kernels of a second stream.
program::Bound persistent(const machine::Machine& machine) {
  auto bodies = exchange();
  for (int rank = 0; rank < 2; ++rank) {
    auto& own = bodies[static_cast<std::size_t>(rank)];
    own[0].insert(own[0].end(), {wait(rank, 1), sync()});
  }
  const program::Bound one = make(Collective::all_gather, 2, bodies, 4, 64, 1024);
  const program::Bound two = program::changed(one, [](program::Program& program) {
    for (int rank = 0; rank < 2; ++rank) {
      // The local copy goes into a stream of its own, and signals.
      program::Body copy;
      program::Body& first = program.bodies[static_cast<std::size_t>(2 * rank)];
      copy.ops = {first.ops.front(), sync(), signal(rank, 1)};
      first.ops.erase(first.ops.begin());
      program::Kernel kernel;
      kernel.threads = 1024;
      kernel.bodies = {static_cast<std::int32_t>(program.bodies.size())};
      program.bodies.push_back(copy);
      program.codes[static_cast<std::size_t>(rank)].streams.push_back(
          {{program::StreamItem::Kind::kernel,
            static_cast<std::int32_t>(program.kernels.size()),
            {}}});
      program.kernels.push_back(kernel);
    }
  });
  return program::moved_to(machine, two);
}

TEST(Defects, a_persistent_kernel_that_leaves_no_compute_unit_for_the_copies_it_waits_for) {
  machine::Machine machine;
  machine.gpus = {0, 1};
  machine.gpu_models = {0, 0};
  machine.models.resize(1);
  machine.models[0].cu_count = 2;
  machine.models[0].cu_max_threads = 1024;
  machine.models[0].cu_max_workgroups = 1;
  EXPECT_EQ(check(persistent(machine)).verdict, Verdict::proven)
      << check(persistent(machine)).summary;
  machine.models[0].cu_count = 1;
  const Proof proof = check(persistent(machine));
  EXPECT_EQ(proof.verdict, Verdict::deadlock);
  EXPECT_THAT(proof.summary, HasSubstr("not all workgroups fit"));
}

}  // namespace
}  // namespace hemiola::verify
