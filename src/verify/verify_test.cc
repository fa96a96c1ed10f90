#include "verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "machine/machine.h"
#include "verify/testing/programs.h"

namespace hemiola::verify {
namespace {

using namespace test;
using ::testing::HasSubstr;

/// Of one call: what calls in a row do to each other is for calls_test.cc.
Proof two_ranks(const std::vector<std::vector<std::vector<Op>>>& bodies, Collective collective) {
  return check(make(collective, 2, bodies), {.calls = 1});
}
Proof all_gather(const std::vector<std::vector<std::vector<Op>>>& bodies) {
  return two_ranks(bodies, Collective::all_gather);
}
Proof all_reduce(const std::vector<std::vector<std::vector<Op>>>& bodies) {
  return two_ranks(bodies, Collective::all_reduce);
}

TEST(Verify, an_exchange_with_signals_is_proven) {
  const Proof proof = all_gather(exchange());
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  EXPECT_EQ(proof.operations, 12);
  EXPECT_EQ(proof.calls, 1);
  EXPECT_TRUE(proof.counterexample.empty());
}

TEST(Verify, an_exchange_that_adds_is_proven) {
  EXPECT_EQ(all_reduce(exchange_and_add()).verdict, Verdict::proven);
}

TEST(Verify, a_contribution_that_comes_twice_is_wrong) {
  auto bodies = exchange_and_add();
  bodies[0][0][5].src.push_back(at(0, kScratch, 0, 2));
  const Proof proof = all_reduce(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("has 2 times the contribution of rank 1"));
  ASSERT_EQ(proof.counterexample.size(), 1u);
  EXPECT_EQ(proof.counterexample[0].operation, "op 5 (reduce)");
}

TEST(Verify, a_contribution_that_is_missing_is_wrong) {
  auto bodies = exchange_and_add();
  bodies[1][0][5].src.pop_back();
  const Proof proof = all_reduce(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("misses the contribution of rank 0"));
  EXPECT_EQ(proof.counterexample.at(0).rank, 1);
}

TEST(Verify, the_right_ranks_with_the_wrong_bytes_are_wrong) {
  auto bodies = exchange_and_add();
  bodies[0][0][5].src[0].chunk = constant(1);
  bodies[0][0][5].src[0].chunks = bodies[0][0][5].src[1].chunks = bodies[0][0][5].dst[0].chunks = 1;
  EXPECT_EQ(all_reduce(bodies).verdict, Verdict::wrong);
}

TEST(Verify, an_output_that_nobody_writes_is_wrong) {
  auto bodies = exchange();
  bodies[1][0].erase(bodies[1][0].begin());
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("bytes [64, 128) of output of rank 1 holds nothing"));
}

TEST(Verify, memory_that_nobody_wrote_is_named_when_it_reaches_an_output) {
  auto bodies = exchange();
  bodies[0][0][0].src[0] = at(0, kScratch, 3);
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary,
              HasSubstr("memory that nobody wrote (scratch of rank 0 from byte 192 on)"));
}

TEST(Verify, reading_without_a_wait_is_a_race) {
  auto bodies = exchange_and_add();
  bodies[0][0].erase(bodies[0][0].begin() + 3);
  const Proof proof = all_reduce(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("data race on bytes [0, 128) of scratch of rank 0"));
  ASSERT_EQ(proof.counterexample.size(), 2u);
  EXPECT_NE(proof.counterexample[0].rank, proof.counterexample[1].rank);
}

TEST(Verify, only_the_waiting_thread_knows_before_the_barrier_of_the_workgroup) {
  auto bodies = exchange_and_add();
  bodies[1][0].erase(bodies[1][0].begin() + 4);
  EXPECT_EQ(all_reduce(bodies).verdict, Verdict::wrong);
}

TEST(Verify, a_signal_before_the_barrier_does_not_cover_the_other_threads) {
  auto bodies = exchange_and_add();
  bodies[0][0].erase(bodies[0][0].begin() + 1);
  EXPECT_EQ(all_reduce(bodies).verdict, Verdict::wrong);
}

TEST(Verify, a_relaxed_signal_does_not_order_stores) {
  auto bodies = exchange_and_add();
  bodies[0][0][2].kind = OpKind::relaxed_signal;
  const Proof proof = all_reduce(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.counterexample.at(0).text, HasSubstr("writes"));
}

TEST(Verify, a_relaxed_wait_does_not_order_stores) {
  auto bodies = exchange_and_add();
  bodies[0][0][3].kind = OpKind::relaxed_wait;
  EXPECT_EQ(all_reduce(bodies).verdict, Verdict::wrong);
}

TEST(Verify, a_relaxed_closing_barrier_is_a_warning) {
  auto bodies = exchange();
  for (auto& rank : bodies) {
    rank[0][3].kind = OpKind::relaxed_signal;
    rank[0][4].kind = OpKind::relaxed_wait;
  }
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  ASSERT_EQ(proof.warnings.items().size(), 1u);
  EXPECT_THAT(proof.warnings.items()[0].message, HasSubstr("may end before"));
  EXPECT_THAT(proof.warnings.items()[0].hint, HasSubstr("relaxed"));
}

TEST(Verify, a_relaxed_flag_orders_a_load_before_a_later_store) {
  // Rank 0 reads rank 1's input into its own output; rank 1 overwrites that input after a relaxed
  // flag.
  std::vector<std::vector<std::vector<Op>>> bodies = {
      {{transfer(OpKind::get, {at(1, kInput, 0)}, {at(0, kScratch, 0)}), sync(),
        flag(OpKind::relaxed_signal, {{1, 0}})}},
      {{flag(OpKind::relaxed_wait, {{1, 0}}), sync(),
        transfer(OpKind::copy, {at(1, kInput, 1)}, {at(1, kInput, 0)})}}};
  EXPECT_EQ(two_ranks(bodies, Collective::custom).verdict, Verdict::partial);
  bodies[0][0].erase(bodies[0][0].begin() + 1);  // no barrier: other threads may still be reading
  EXPECT_EQ(two_ranks(bodies, Collective::custom).verdict, Verdict::wrong);
}

TEST(Verify, two_writers_without_an_order_are_a_race) {
  auto bodies = exchange();
  bodies[0].push_back({transfer(OpKind::copy, {at(0, kInput, 0)}, {at(0, kOutput, 0)})});
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("a write and a write"));
}

TEST(Verify, threads_of_a_workgroup_own_their_bytes_without_a_barrier) {
  auto bodies = exchange();
  auto& ops = bodies[0][0];
  ops.insert(ops.begin() + 1, transfer(OpKind::copy, {at(0, kOutput, 0)}, {at(0, kScratch, 1)}));
  ops.insert(ops.begin() + 2, transfer(OpKind::copy, {at(0, kScratch, 1)}, {at(0, kScratch, 4)}));
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::proven);
  // A region that begins 64 bytes earlier deals the same bytes to other threads.
  ops[2] = transfer(OpKind::copy, {at(0, kScratch, 0, 2)}, {at(0, kScratch, 4, 2)});
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.counterexample.at(1).text, HasSubstr("another thread of the workgroup"));
}

TEST(Verify, what_a_compute_loads_belongs_to_no_thread_before_a_sync) {
  for (const bool joined : {true, false}) {
    auto bodies = exchange();
    Op product = op(OpKind::compute);
    product.src = {at(0, kScratch, 0)};
    // Its bytes are those of the same threads before and after; only a sync knows the loads' end.
    std::vector<Op> more{transfer(OpKind::copy, {at(0, kInput, 0)}, {at(0, kScratch, 0)}), sync(),
                         product, transfer(OpKind::copy, {at(0, kInput, 0)}, {at(0, kScratch, 0)})};
    if (joined) more.insert(more.begin() + 3, sync());
    bodies[0][0].insert(bodies[0][0].end(), more.begin(), more.end());
    EXPECT_EQ(all_gather(bodies).verdict, joined ? Verdict::proven : Verdict::wrong) << joined;
  }
}

TEST(Verify, a_wait_that_nobody_signals_names_the_semaphore) {
  auto bodies = exchange();
  bodies[0][0].erase(bodies[0][0].begin() + 3);
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::deadlock);
  EXPECT_THAT(
      proof.summary,
      HasSubstr("workgroup 0 of rank 1 waits for channel 0 of rank 1 to reach 1; it stands at 0"));
  EXPECT_THAT(proof.summary, HasSubstr("nobody brings it"));
  EXPECT_EQ(proof.counterexample.at(0).operation, "op 4 (wait)");
}

TEST(Verify, workgroups_that_wait_for_each_other_are_shown_as_a_cycle) {
  auto bodies = exchange();
  for (auto& rank : bodies) std::swap(rank[0][3], rank[0][4]);  // wait, signal: both by thread 0
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::deadlock);
  EXPECT_THAT(proof.summary, HasSubstr("2 workgroups wait for each other"));
  EXPECT_EQ(proof.counterexample.size(), 2u);
}

TEST(Verify, threads_of_other_warps_run_ahead_and_signal) {
  // Thread 0 waits first; thread `gives` gives what the peer's thread 0 waits for.
  const auto verdict = [](std::size_t gives) {
    auto bodies = exchange();
    for (int rank = 0; rank < 2; ++rank) {
      auto& ops = bodies[static_cast<std::size_t>(rank)][0];
      const int peer = 1 - rank;
      std::vector<std::pair<int, std::int32_t>> signals(gives + 1, {peer, 2});
      signals.front() = {peer, 1};
      signals.back() = {peer, 0};
      ops[3] = wait(rank, 0);
      ops[4] = flag(OpKind::signal, signals);
      ops.insert(ops.begin() + 5, sync());
      ops.insert(ops.begin() + 6, wait(rank, 1));
    }
    return all_gather(bodies).verdict;
  };
  EXPECT_EQ(verdict(1), Verdict::deadlock) << "a warp comes together behind an operation";
  EXPECT_EQ(verdict(31), Verdict::deadlock);
  EXPECT_LT(verdict(32), Verdict::wrong);
}

TEST(Verify, a_semaphore_with_two_signallers_that_is_taken_in_part_is_not_confluent) {
  auto bodies = exchange();
  bodies[0].push_back({signal(1, 0)});
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::partial);
  EXPECT_THAT(proof.reasons.at(0), HasSubstr("several workgroups signal it"));
  bodies[1][0].insert(bodies[1][0].begin() + 5, wait(1, 0));
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::partial) << "the first wait takes one of two";
}

TEST(Verify, the_barrier_of_a_rank_orders_its_workgroups) {
  Op meet = op(OpKind::barrier);
  meet.workgroups = 2;
  auto bodies = exchange();
  bodies[0][0].insert(bodies[0][0].begin() + 2, meet);
  bodies[0].push_back({meet, transfer(OpKind::copy, {at(0, kOutput, 0)}, {at(0, kScratch, 0)})});
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::proven);
  bodies[0][1].erase(bodies[0][1].begin());
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
}

TEST(Verify, a_barrier_that_a_workgroup_never_reaches_is_a_deadlock) {
  Op meet = op(OpKind::barrier);
  meet.workgroups = 2;
  auto bodies = exchange();
  bodies[0][0].push_back(meet);
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::deadlock);
  EXPECT_THAT(proof.summary, HasSubstr("1 of 2 workgroups have arrived"));
}

TEST(Verify, a_device_scope_release_reaches_the_own_rank_only) {
  auto bodies = exchange();
  bodies[0][0][3] = flag(OpKind::sem_release, {{1, 0}});
  bodies[1][0].push_back(transfer(OpKind::copy, {at(1, kOutput, 0)}, {at(1, kScratch, 0)}));
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::wrong);
  // Within a rank it does, and a later release at system scope passes it on.
  auto relayed = exchange();
  relayed[0][0][3] = flag(OpKind::sem_release, {{0, 2}});
  relayed[0].push_back({flag(OpKind::sem_acquire, {{0, 2}}), sync(), signal(1, 0)});
  relayed[1][0].push_back(transfer(OpKind::copy, {at(1, kOutput, 0)}, {at(1, kScratch, 0)}));
  EXPECT_EQ(all_gather(relayed).verdict, Verdict::proven) << all_gather(relayed).summary;
}

/// Two ranks of `workgroups` workgroups; the last one of each signals what all of the peer's wait
/// for.
program::Bound last_one_signals(std::int32_t workgroups, std::int32_t threads) {
  auto bodies = exchange();
  for (int rank = 0; rank < 2; ++rank) {
    auto& own = bodies[static_cast<std::size_t>(rank)];
    for (std::int32_t i = 1; i < workgroups; ++i) own.insert(own.begin(), {wait(rank, i)});
    std::vector<std::pair<int, std::int32_t>> all;
    for (std::int32_t i = 1; i < workgroups; ++i) all.push_back({1 - rank, i});
    own.back().push_back(flag(OpKind::signal, all));
  }
  return make(Collective::all_gather, 2, bodies, workgroups, 64, threads);
}

TEST(Verify, workgroups_that_do_not_fit_on_the_machine_are_named) {
  machine::Machine small;
  small.gpus = {0, 1};
  small.gpu_models = {0, 0};
  small.models.resize(1);
  small.models[0].cu_count = 2;
  small.models[0].cu_max_threads = 2048;
  small.models[0].cu_max_workgroups = 32;
  auto program = last_one_signals(5, 1024);
  EXPECT_EQ(check(program).verdict, Verdict::proven);
  program = last_one_signals(4, 1024);
  EXPECT_EQ(check(program).verdict, Verdict::proven);
  // Only the residency is asked of the machine here, never a route.
  small.models[0].cu_count = 1;
  small.models[0].cu_max_threads = 2048;
  program = program::moved_to(small, program);
  const Proof proof = check(program);
  EXPECT_EQ(proof.verdict, Verdict::deadlock);
  EXPECT_THAT(proof.summary, HasSubstr("not all workgroups fit"));
  small.models[0].sync_wait = machine::WaitPolicy::syncmon;  // who waits makes room
  EXPECT_EQ(check(program::moved_to(small, program)).verdict, Verdict::proven);
  small.models[0].sync_wait = machine::WaitPolicy::spin;
  small.models[0].cu_count = 2;
  program = program::moved_to(small, program);
  EXPECT_EQ(check(program).verdict, Verdict::proven);
  const auto with_blocks = [&](const std::vector<std::int32_t>& blocks) {
    return program::changed(program, [&](program::Program& p) {
      for (program::Kernel& kernel : p.kernels) kernel.blocks = blocks;
    });
  };
  EXPECT_EQ(check(with_blocks({0, 0, 1, 1})).verdict, Verdict::proven);
  EXPECT_EQ(check(with_blocks({0, 1, 2, 2})).verdict, Verdict::deadlock)
      << "no unit has room for both parts";
}

TEST(Packets, a_load_waits_for_its_own_bytes) {
  std::vector<std::vector<std::vector<Op>>> bodies(2);
  for (int rank = 0; rank < 2; ++rank) {
    bodies[static_cast<std::size_t>(rank)] = {
        {transfer(OpKind::unpack_packets, {packets(rank, 0)}, {at(rank, kOutput, 1 - rank)})},
        {transfer(OpKind::put_packets, {at(rank, kInput, 0)}, {packets(1 - rank, 0)}),
         transfer(OpKind::copy, {at(rank, kInput, 0)}, {at(rank, kOutput, rank)})}};
  }
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::proven) << proof.summary;
  bodies[0][1].erase(bodies[0][1].begin());
  const Proof missing = all_gather(bodies);
  EXPECT_EQ(missing.verdict, Verdict::deadlock);
  EXPECT_THAT(missing.summary, HasSubstr("waits for the packet"));
}

TEST(Packets, storing_a_packet_twice_is_a_race) {
  std::vector<std::vector<std::vector<Op>>> bodies(2);
  for (int rank = 0; rank < 2; ++rank) {
    bodies[static_cast<std::size_t>(rank)] = {
        {transfer(OpKind::unpack_packets, {packets(rank, 0)}, {at(rank, kOutput, 1 - rank)})},
        {transfer(OpKind::put_packets, {at(rank, kInput, 0)}, {packets(1 - rank, 0)}), sync(),
         transfer(OpKind::put_packets, {at(rank, kInput, 0)}, {packets(1 - rank, 0)}),
         transfer(OpKind::copy, {at(rank, kInput, 0)}, {at(rank, kOutput, rank)})}};
  }
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("packets at bytes"));
}

TEST(Packets, a_packet_carries_the_loads_behind_it_byte_by_byte) {
  // Rank 0's first workgroup sends its input; rank 1 answers with packets made of it; the second
  // workgroup of rank 0 overwrites the input with the answer. Nothing else orders load and store.
  std::vector<std::vector<std::vector<Op>>> bodies = {
      {{transfer(OpKind::put_packets, {at(0, kInput, 0)}, {packets(1, 0)})},
       {transfer(OpKind::unpack_packets, {packets(0, 0)}, {at(0, kInput, 0)})}},
      {{transfer(OpKind::read_put_packets, {packets(1, 0)}, {packets(0, 0)})}}};
  EXPECT_EQ(two_ranks(bodies, Collective::custom).verdict, Verdict::partial);
  // An answer that does not depend on the load says nothing about it.
  bodies[1][0][0] = transfer(OpKind::put_packets, {at(1, kInput, 0)}, {packets(0, 0)});
  EXPECT_EQ(two_ranks(bodies, Collective::custom).verdict, Verdict::wrong);
}

TEST(Proxy, a_copy_is_over_when_its_signal_comes) {
  std::vector<std::vector<std::vector<Op>>> bodies = exchange();
  for (auto& rank : bodies) {
    Op& put = rank[0][1];
    put.kind = OpKind::put_signal;
    put.channel = program::Channel::port;
    put.semaphores = rank[0][3].semaphores;
    rank[0].erase(rank[0].begin() + 3);
  }
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::proven) << all_gather(bodies).summary;
  // Nobody waits for it: it may not have arrived when the kernels end.
  for (auto& rank : bodies) {
    rank[0].erase(rank[0].begin() + 3);
    rank[0][1].kind = OpKind::put;
    rank[0][1].semaphores.clear();
  }
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary, HasSubstr("may not have arrived"));
  for (auto& rank : bodies) rank[0].push_back(op(OpKind::flush));
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::proven);
}

TEST(Proxy, the_source_of_a_copy_may_not_change_before_a_flush) {
  auto bodies = exchange();
  for (auto& rank : bodies) {
    rank[0][1].kind = OpKind::put;
    rank[0][1].channel = program::Channel::port;
  }
  auto& ops = bodies[0][0];
  ops[3].channel = program::Channel::port;
  bodies[1][0][3].channel = program::Channel::port;
  const Op overwrite = transfer(OpKind::copy, {at(0, kScratch, 0)}, {at(0, kInput, 0)});
  ops.insert(ops.begin() + 4, {sync(), overwrite});
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::wrong);
  ops.insert(ops.begin() + 4, op(OpKind::flush));
  EXPECT_EQ(all_gather(bodies).verdict, Verdict::proven) << all_gather(bodies).summary;
}

TEST(Verify, an_access_beyond_a_buffer_is_wrong) {
  auto bodies = exchange();
  bodies[0][0][1].dst[0].chunk = constant(7);
  const Proof proof = all_gather(bodies);
  EXPECT_EQ(proof.verdict, Verdict::wrong);
  EXPECT_THAT(proof.summary,
              HasSubstr("touches bytes [448, 512) of output of rank 1, which has 128"));
}

TEST(Verify, a_hundred_thousand_operations_take_seconds_not_minutes) {
  constexpr int kWorkgroups = 256;
  constexpr int kRounds = 50;
  std::vector<std::vector<std::vector<Op>>> bodies(2);
  for (int rank = 0; rank < 2; ++rank) {
    for (int w = 0; w < kWorkgroups; ++w) {
      auto& ops = bodies[static_cast<std::size_t>(rank)].emplace_back();
      for (int round = 0; round < kRounds; ++round) {
        ops.push_back(transfer(OpKind::put, {at(rank, kInput, w)},
                               {at(1 - rank, kScratch, w + (round % 2) * kWorkgroups)}));
        ops.insert(ops.end(), {sync(), signal(1 - rank, w), wait(rank, w), sync()});
      }
    }
  }
  const auto program = make(Collective::custom, kWorkgroups, bodies, kWorkgroups);
  const auto begin = std::chrono::steady_clock::now();
  const Proof proof = check(program);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_EQ(proof.verdict, Verdict::partial) << proof.summary;
  EXPECT_GT(proof.operations, 100'000);
  EXPECT_LT(seconds.count(), 20.0);
  RecordProperty("seconds", std::to_string(seconds.count()));
}

TEST(Verify, a_program_beyond_the_budget_is_not_looked_at) {
  Op loop = op(OpKind::loop);
  loop.count = std::int64_t{1} << 40;
  auto bodies = exchange();
  bodies[0][0].insert(bodies[0][0].begin(), {loop, sync(), op(OpKind::end_loop)});
  const Proof proof = check(make(Collective::all_gather, 4, bodies));
  EXPECT_EQ(proof.verdict, Verdict::partial);
  EXPECT_EQ(proof.operations, 0);
  EXPECT_THAT(proof.summary, HasSubstr("operations with its loops unrolled"));
  const program::Bound many = program::bind(program::load("all-gather/ring", {.ranks = 1 << 17}),
                                            nullptr, {.size = MiB(64)});
  EXPECT_THAT(check(many).summary, HasSubstr("more than 65536 ranks"));
}

}  // namespace
}  // namespace hemiola::verify
