// Expansion of every kind of operation into its exact primitives (the table of docs/program.md).
#include <gtest/gtest.h>

#include "machine/machine.h"
#include "program/testing/cursor.h"

namespace hemiola::program {
namespace {

using namespace testing_support;

TEST(Cursor, a_sync_is_a_sync) {
  EXPECT_EQ(expand(bound(program_of({{.kind = OpKind::sync}}))), Lines{"sync"});
}

TEST(Cursor, a_barrier_joins_workgroups_at_device_scope) {
  Program program = program_of({{.kind = OpKind::barrier, .barrier_id = 0, .workgroups = 1}});
  EXPECT_EQ(expand(bound(program)), Lines{"barrier 0 of 1 release acquire device"});
}

TEST(Cursor, signals_release_unless_relaxed) {
  const std::vector<SemaphoreRef> to{{constant(1), 0}, {constant(1), 1}};
  Program program =
      program_of({{.kind = OpKind::signal, .channel = Channel::memory, .semaphores = to},
                  {.kind = OpKind::relaxed_signal, .channel = Channel::memory, .semaphores = to}});
  EXPECT_EQ(expand(bound(program)), (Lines{"signal 1:a=1 1:b=1 release", "signal 1:a=1 1:b=1"}));
}

TEST(Cursor, waits_count_up_and_acquire_unless_relaxed) {
  const std::vector<SemaphoreRef> both{{own_rank(), 0}, {own_rank(), 1}};
  Bound program =
      bound(program_of({{.kind = OpKind::wait, .semaphores = both},
                        {.kind = OpKind::relaxed_wait, .semaphores = {{own_rank(), 1}}}}));
  Cursor cursor(program, 0, 0);
  EXPECT_EQ(walk(cursor, program), (Lines{"wait 0:a=1 0:b=1 acquire", "wait 0:b=2"}));
  cursor.repeat();
  EXPECT_EQ(walk(cursor, program), (Lines{"wait 0:a=2 0:b=3 acquire", "wait 0:b=4"}));
}

TEST(Cursor, a_semaphore_of_two_waiting_workgroups_is_consumed) {
  Program program =
      program_of({{.kind = OpKind::wait, .semaphores = {{own_rank(), 0}, {own_rank(), 1}}}});
  program.bodies[1].ops = {{.kind = OpKind::wait, .semaphores = {{own_rank(), 0}}}};
  program.kernels[0].bodies = {0, 1};
  program.finish();
  EXPECT_EQ(expand(bound(program)), (Lines{"wait 0:b=1 acquire", "wait 0:a=1 acquire consume"}));
}

TEST(Cursor, semaphores_between_workgroups_have_device_scope) {
  const std::vector<SemaphoreRef> own{{own_rank(), 2}};
  Program program = program_of({{.kind = OpKind::sem_release, .semaphores = own},
                                {.kind = OpKind::sem_acquire, .semaphores = own}});
  EXPECT_EQ(expand(bound(program)),
            (Lines{"signal 0:c=1 release device", "wait 0:c=1 acquire device"}));
}

TEST(Cursor, dependencies_count_outer_iterations_and_repetitions) {
  const std::vector<SemaphoreRef> own{{own_rank(), 2}};
  Bound program =
      bound(program_of({{.kind = OpKind::loop, .count = 2},
                        {.kind = OpKind::dep_wait, .semaphores = own, .target = 3, .count = 5},
                        {.kind = OpKind::dep_signal, .semaphores = own},
                        {.kind = OpKind::end_loop}}));
  Cursor cursor(program, 0, 0);
  EXPECT_EQ(walk(cursor, program),
            (Lines{"wait 0:c=3 acquire device", "signal 0:c=1 release device",
                   "wait 0:c=8 acquire device", "signal 0:c=1 release device"}));
  cursor.repeat();
  EXPECT_EQ(walk(cursor, program).at(0), "wait 0:c=13 acquire device");
}

TEST(Cursor, dependencies_of_channels_have_system_scope) {
  Program program = program_of(
      {{.kind = OpKind::dep_wait,
        .channel = Channel::any,
        .semaphores = {{own_rank(), 0}},
        .target = 2,
        .count = 3},
       {.kind = OpKind::dep_signal, .channel = Channel::any, .semaphores = {{constant(1), 0}}}});
  EXPECT_EQ(expand(bound(program)), (Lines{"wait 0:a=2 acquire", "signal 1:a=1 release"}));
}

TEST(Cursor, an_operand_of_rows_is_sliced_across_them) {
  Operand rows = local(0, 1, 4), line = remote(1, 1, 0, 4);
  rows.run = 2;
  rows.pitch = 3;
  Op put{.kind = OpKind::put, .channel = Channel::memory, .src = {rows}, .dst = {line}};
  put.slice = 1;
  put.slices = 4;
  const Bound program = bound(program_of({put}));
  Cursor cursor(program, 0, 0);
  Primitive primitive;
  ASSERT_TRUE(cursor.next(primitive));
  EXPECT_EQ(primitive.bytes, kChunk);
  std::vector<std::pair<std::int64_t, std::int64_t>> parts;
  const auto note = [&](std::int64_t offset, std::int64_t, std::int64_t bytes) {
    parts.emplace_back(offset, bytes);
  };
  primitive.src[0].each_part(0, primitive.bytes, note);
  EXPECT_EQ(parts, (std::vector<std::pair<std::int64_t, std::int64_t>>{{2 * kChunk, kChunk}}));
  put.slice = 0;
  put.slices = 1;
  const Bound whole = bound(program_of({put}));
  Cursor again(whole, 0, 0);
  ASSERT_TRUE(again.next(primitive));
  parts.clear();
  primitive.src[0].each_part(kChunk, 3 * kChunk, note);
  EXPECT_EQ(parts, (std::vector<std::pair<std::int64_t, std::int64_t>>{{2 * kChunk, kChunk},
                                                                       {4 * kChunk, kChunk}}));
}

TEST(Cursor, a_compute_posts_its_loads_and_stores_after_a_sync) {
  Op op{.kind = OpKind::compute, .src = {local(0, 0, 2), local(0, 4)}, .dst = {local(1, 3)}};
  op.flop = 5;
  EXPECT_EQ(expand(bound(program_of({op}))),
            (Lines{"move 128 0.input@0 posted", "move 64 0.input@256 posted", "compute posted",
                   "sync", "move 64 -> 0.output@192"}));
  EXPECT_EQ(expand(bound(program_of({{.kind = OpKind::compute}}))), Lines{"compute"});
}

TEST(Cursor, any_channel_posts_behind_a_nic_and_flushes_at_the_end) {
  machine::Machine machine = machine::load("dgx-h100:2", {});
  machine.place(std::vector<int>{7, 8});
  const Program program = program_of(
      {{.kind = OpKind::put,
        .channel = Channel::any,
        .src = {local(0, 0)},
        .dst = {remote(1, 1, 2)}},
       {.kind = OpKind::reduce_send,
        .channel = Channel::any,
        .src = {local(0, 0), local(0, 1)},
        .dst = {local(1, 0), remote(1, 1, 0)}},
       {.kind = OpKind::dep_signal, .channel = Channel::any, .semaphores = {{constant(1), 0}}}});
  EXPECT_EQ(
      expand(bound(program)),
      (Lines{"move 64 0.input@0 -> 1.output@128",
             "move 64 sum 0.input@0 0.input@64 -> 0.output@0 1.output@0", "signal 1:a=1 release"}));
  const Bound far = bind(program, machine::share(machine), {.size = {8 * kChunk}});
  EXPECT_EQ(expand(far), (Lines{"post 64 0.input@0 -> 1.output@128 release remote",
                                "move 64 sum 0.input@0 0.input@64 -> 0.output@0", "sync",
                                "post 64 0.output@0 -> 1.output@0 release remote",
                                "post 1:a=1 release remote", "flush"}));
}

TEST(Cursor, a_put_moves_each_pair_alone) {
  Program program = program_of({{.kind = OpKind::put,
                                 .channel = Channel::memory,
                                 .src = {local(0, 0), local(0, 1)},
                                 .dst = {remote(1, 1, 2), remote(1, 1, 3)}}});
  EXPECT_EQ(expand(bound(program)),
            (Lines{"move 64 0.input@0 -> 1.output@128", "move 64 0.input@64 -> 1.output@192"}));
}

TEST(Cursor, a_get_moves_from_the_remote_source_to_the_local_destination) {
  Program program = program_of({{.kind = OpKind::get,
                                 .channel = Channel::memory,
                                 .src = {remote(1, 0, 5)},
                                 .dst = {local(1, 2)}}});
  EXPECT_EQ(expand(bound(program)), Lines{"move 64 1.input@320 -> 0.output@128"});
}

TEST(Cursor, a_port_put_posts_and_signals_afterwards) {
  const std::vector<Operand> src{local(0, 0), local(0, 1)};
  const std::vector<Operand> dst{remote(1, 1, 0), remote(1, 1, 1)};
  const std::vector<SemaphoreRef> to{{constant(1), 0}, {constant(1), 1}};
  const auto with = [&](OpKind kind, std::vector<SemaphoreRef> semaphores) {
    return expand(bound(program_of({{.kind = kind,
                                     .channel = Channel::port,
                                     .src = src,
                                     .dst = dst,
                                     .semaphores = std::move(semaphores)}})));
  };
  EXPECT_EQ(with(OpKind::put, {}), (Lines{"post 64 0.input@0 -> 1.output@0 release",
                                          "post 64 0.input@64 -> 1.output@64 release"}));
  const Lines signalled{"post 64 0.input@0 -> 1.output@0 1:a=1 release",
                        "post 64 0.input@64 -> 1.output@64 1:b=1 release"};
  EXPECT_EQ(with(OpKind::put_signal, to), signalled);
  EXPECT_EQ(with(OpKind::put_signal_flush, to), (Lines{signalled[0], signalled[1], "flush"}));
}

TEST(Cursor, a_port_signal_is_a_post_without_data) {
  Program program = program_of({{.kind = OpKind::signal,
                                 .channel = Channel::port,
                                 .semaphores = {{constant(1), 0}, {constant(1), 1}}},
                                {.kind = OpKind::flush, .channel = Channel::port}});
  EXPECT_EQ(expand(bound(program)), (Lines{"post 1:a=1 release", "post 1:b=1 release", "flush"}));
}

TEST(Cursor, reductions_are_one_move_of_all_operands) {
  for (const OpKind kind :
       {OpKind::reduce, OpKind::reduce_send, OpKind::read_reduce, OpKind::read_reduce_send}) {
    Program program = program_of({{.kind = kind,
                                   .channel = Channel::memory,
                                   .src = {local(0, 0), remote(1, 0, 0)},
                                   .dst = {local(1, 0), remote(1, 1, 0)}}});
    EXPECT_EQ(expand(bound(program)),
              Lines{"move 64 sum 0.input@0 1.input@0 -> 0.output@0 1.output@0"});
  }
}

TEST(Cursor, a_plan_that_names_its_reduction_keeps_it) {
  Program program = program_of({{.kind = OpKind::reduce,
                                 .reduce = ReduceOp::max,
                                 .src = {local(0, 0), local(0, 1)},
                                 .dst = {local(1, 0)}}});
  EXPECT_EQ(expand(bind(program, nullptr, {.size = {512}, .op = ReduceOp::min})).at(0),
            "move 64 min 0.input@0 0.input@64 -> 0.output@0");
  program.format = "mscclpp";
  const Bound plan = bind(program, nullptr, {.size = {512}, .op = ReduceOp::min});
  EXPECT_EQ(expand(plan).at(0), "move 64 max 0.input@0 0.input@64 -> 0.output@0");
  EXPECT_EQ(plan.warnings().items().size(), 1U);
}

TEST(Cursor, packets_take_twice_the_memory) {
  const auto ll = Access::packet;
  Program program = program_of({
      {.kind = OpKind::put_packets,
       .channel = Channel::memory,
       .src = {local(0, 1)},
       .dst = {remote(1, 2, 3, 1, ll)}},
      {.kind = OpKind::read_put_packets,
       .channel = Channel::memory,
       .src = {local(2, 1, 1, ll)},
       .dst = {remote(1, 2, 2, 1, ll), remote(1, 2, 3, 1, ll)}},
      {.kind = OpKind::copy_packets, .src = {local(0, 0)}, .dst = {local(2, 1, 1, ll)}},
      {.kind = OpKind::unpack_packets, .src = {local(2, 1, 1, ll)}, .dst = {local(1, 1)}},
      {.kind = OpKind::reduce_copy_send_packets,
       .channel = Channel::memory,
       .src = {local(0, 0), local(2, 1, 1, ll)},
       .dst = {local(1, 0), local(2, 4, 1, ll), remote(1, 2, 5, 1, ll)}},
  });
  EXPECT_EQ(
      expand(bound(program)),
      (Lines{"move 64 0.input@64 -> 1.scratch@384/LL",
             "move 64 0.scratch@128/LL -> 1.scratch@256/LL 1.scratch@384/LL",
             "move 64 0.input@0 -> 0.scratch@128/LL", "move 64 0.scratch@128/LL -> 0.output@64",
             "move 64 sum 0.input@0 0.scratch@128/LL -> 0.output@0 0.scratch@512/LL "
             "1.scratch@640/LL"}));
}

TEST(Cursor, packets_through_a_port_are_polled_before_they_are_posted) {
  const auto ll = Access::packet;
  Program program = program_of({{.kind = OpKind::read_put_packets,
                                 .channel = Channel::port,
                                 .src = {local(2, 1, 1, ll)},
                                 .dst = {remote(1, 2, 2, 1, ll), remote(1, 2, 3, 1, ll)}},
                                {.kind = OpKind::put_packets,
                                 .channel = Channel::port,
                                 .src = {local(2, 0, 1, ll)},
                                 .dst = {remote(1, 2, 1, 1, ll)}}});
  EXPECT_EQ(expand(bound(program)), (Lines{"move 64 0.scratch@128/LL", "sync",
                                           "post 64 0.scratch@128/LL -> 1.scratch@256/LL release",
                                           "post 64 0.scratch@128/LL -> 1.scratch@384/LL release",
                                           "post 64 0.scratch@0/LL -> 1.scratch@128/LL release"}));
}

TEST(Cursor, group_operations_use_the_switch_address) {
  Operand group = local(0, 1, 1, Access::multicast);
  group.group = 0;
  Operand packets = local(2, 1, 1, Access::multicast_packet);
  packets.group = 0;
  Program program = program_of({{.kind = OpKind::group_load_reduce_store,
                                 .channel = Channel::switch_,
                                 .src = {group},
                                 .dst = {group}},
                                {.kind = OpKind::group_load_reduce,
                                 .channel = Channel::switch_,
                                 .src = {group},
                                 .dst = {local(1, 0)}},
                                {.kind = OpKind::group_store,
                                 .channel = Channel::switch_,
                                 .src = {local(1, 0)},
                                 .dst = {group}},
                                {.kind = OpKind::group_store_packets,
                                 .channel = Channel::switch_,
                                 .src = {local(1, 0)},
                                 .dst = {packets}}});
  EXPECT_EQ(expand(bound(program)),
            (Lines{"move 64 sum g0.input@64/multicast -> g0.input@64/multicast",
                   "move 64 sum g0.input@64/multicast -> 0.output@0",
                   "move 64 0.output@0 -> g0.input@64/multicast",
                   "move 64 0.output@0 -> g0.scratch@128/multicastLL"}));
}

TEST(Cursor, compute_keeps_its_work) {
  Bound program =
      bound(program_of({{.kind = OpKind::compute, .flop = 7, .bytes = {5}, .duration = {3}}}));
  Cursor cursor(program, 0, 0);
  Primitive out;
  ASSERT_TRUE(cursor.next(out));
  EXPECT_EQ(out.kind, PrimitiveKind::compute);
  EXPECT_EQ(out.flop, 7);
  EXPECT_EQ(out.bytes, 5);
  EXPECT_EQ(out.duration, Time{3});
  EXPECT_FALSE(cursor.next(out));
}

TEST(Cursor, loops_nest_and_operands_follow_their_counters) {
  Operand from = local(0, 0);
  from.chunk = {.loop = {2, 1}};
  Program program = program_of({{.kind = OpKind::loop, .count = 2},
                                {.kind = OpKind::loop, .count = 2},
                                {.kind = OpKind::copy, .src = {from}, .dst = {local(1, 0)}},
                                {.kind = OpKind::end_loop},
                                {.kind = OpKind::end_loop},
                                {.kind = OpKind::sync}});
  EXPECT_EQ(
      expand(bound(program)),
      (Lines{"move 64 0.input@0 -> 0.output@0", "move 64 0.input@64 -> 0.output@0",
             "move 64 0.input@128 -> 0.output@0", "move 64 0.input@192 -> 0.output@0", "sync"}));
}

TEST(Cursor, a_loop_of_no_iterations_is_skipped_with_what_it_contains) {
  Program program = program_of({{.kind = OpKind::loop, .count = 0},
                                {.kind = OpKind::loop, .count = 2},
                                {.kind = OpKind::sync},
                                {.kind = OpKind::end_loop},
                                {.kind = OpKind::end_loop},
                                {.kind = OpKind::flush}});
  EXPECT_EQ(expand(bound(program)), Lines{"flush"});
}

TEST(Cursor, a_doubled_buffer_changes_halves_at_every_repetition) {
  Program program = program_of({{.kind = OpKind::copy_packets,
                                 .src = {local(0, 0)},
                                 .dst = {local(2, 1, 1, Access::packet)}}});
  program.buffers[2].rotation = 2;
  const Bound placed = bound(program);
  Cursor cursor(placed, 0, 0);
  EXPECT_EQ(walk(cursor, placed), Lines{"move 64 0.input@0 -> 0.scratch@128/LL"});
  cursor.repeat();
  EXPECT_EQ(walk(cursor, placed), Lines{"move 64 0.input@0 -> 0.scratch@1152/LL"});
  cursor.repeat();
  EXPECT_EQ(walk(cursor, placed), Lines{"move 64 0.input@0 -> 0.scratch@128/LL"});
}

TEST(Cursor, a_clear_reaches_the_part_that_the_previous_repetition_used) {
  Program program = program_of({{.kind = OpKind::copy_packets,
                                 .src = {local(0, 0)},
                                 .dst = {local(2, 1, 1, Access::lamport)}},
                                {.kind = OpKind::clear, .dst = {local(2, 0, 2, Access::lamport)}}});
  program.buffers[2].rotation = 3;
  program.buffers[2].packets = false;
  const Bound placed = bound(program);
  const std::int64_t part = placed.memory_bytes(2, 0) / 3;
  Cursor cursor(placed, 0, 0);
  for (const std::int64_t now : {0, 1, 2, 0}) {
    Primitive put, clear;
    ASSERT_TRUE(cursor.next(put));
    EXPECT_EQ(put.dst.at(0).offset, now * part + 64) << "data byte d stands at d";
    EXPECT_GT(put.dst.at(0).flag, 0);
    ASSERT_TRUE(cursor.next(clear));
    EXPECT_TRUE(clear.src.empty());
    EXPECT_EQ(clear.dst.at(0).offset, (now + 2) % 3 * part);
    EXPECT_EQ(clear.dst.at(0).flag, 0);
    EXPECT_EQ(clear.bytes, 128);
    cursor.repeat();
  }
}

TEST(Cursor, aliases_are_resolved_for_the_rank_that_owns_the_memory) {
  Program program = program_of({{.kind = OpKind::put,
                                 .channel = Channel::memory,
                                 .src = {local(0, 0)},
                                 .dst = {remote(1, 0, 1)}}});
  program.buffers[0].chunks = {4};
  program.buffers[0].alias = 1;
  program.buffers[0].alias_chunk = {.rank = 1, .scale = 4};
  EXPECT_EQ(expand(bound(program)), Lines{"move 64 0.output@0 -> 1.output@320"});
}

TEST(Cursor, a_copy_forks_the_walk) {
  Bound program = bound(program_of({{.kind = OpKind::wait, .semaphores = {{own_rank(), 0}}},
                                    {.kind = OpKind::wait, .semaphores = {{own_rank(), 0}}}}));
  Cursor first(program, 0, 0);
  Primitive out;
  ASSERT_TRUE(first.next(out));
  Cursor second = first;
  EXPECT_EQ(walk(first, program), Lines{"wait 0:a=2 acquire"});
  EXPECT_EQ(walk(second, program), Lines{"wait 0:a=2 acquire"});
}

}  // namespace
}  // namespace hemiola::program
