#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "machine/machine.h"
#include "program/bind/length.h"
#include "program/testing/cursor.h"

namespace hemiola::program {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

std::string bind_failure(const Program& program, machine::SharedMachine machine,
                         const BindOptions& options = {.size = {512}}) {
  try {
    bind(program, std::move(machine), options);
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

Op put(int rank, Channel channel = Channel::memory) {
  return {
      .kind = OpKind::put, .channel = channel, .src = {local(0, 0)}, .dst = {remote(rank, 1, 0)}};
}

/// Rank 0 of `ranks` puts to the last one.
Program far_put(int ranks, Channel channel) {
  Program program = program_of({put(ranks - 1, channel)});
  program.ranks = ranks;
  program.code_of.assign(static_cast<std::size_t>(ranks), 1);
  program.code_of[0] = 0;
  return program;
}

TEST(Bind, sizes_must_be_whole_units_of_all_chunks) {
  // 8 chunks of multiples of 16 B.
  EXPECT_THAT(bind_failure(program_of({}), nullptr, {.size = {200}}),
              HasSubstr("the nearest legal sizes are 128 B and 256 B"));
  EXPECT_THAT(bind_failure(program_of({}), nullptr, {.size = {1}}),
              HasSubstr("the smallest legal size is 128 B"));
  EXPECT_THAT(bind_failure(program_of({}), nullptr, {.size = {0}}), HasSubstr("cannot be run"));
  EXPECT_THAT(bind_failure(program_of({}), nullptr, {.size = {INT64_MAX}}),
              HasSubstr("beyond any GPU's memory"));
  EXPECT_EQ(bind(program_of({}), nullptr, {.size = {256}}).chunk_bytes(), 32);
}

TEST(Bind, the_unit_is_the_least_common_multiple_of_alignment_and_element) {
  Program program = program_of({});
  program.alignment = {6};
  EXPECT_EQ(program.next_legal_size({1}, DataType::float32), Bytes{8 * 12});
  EXPECT_EQ(program.next_legal_size({97}, DataType::float32), Bytes{2 * 8 * 12});
  EXPECT_EQ(program.next_legal_size({1}, DataType::int8), Bytes{8 * 6});
}

RC_GTEST_PROP(Bind, the_next_legal_size_is_legal_and_the_least, ()) {
  Program program = program_of({});
  const Bytes wanted{*rc::gen::inRange<std::int64_t>(1, 1 << 20)};
  program.alignment = {*rc::gen::inRange<std::int64_t>(1, 64)};
  const Bytes legal = program.next_legal_size(wanted, DataType::float64);
  const Bytes step = program.next_legal_size({1}, DataType::float64);
  RC_ASSERT(legal >= wanted && legal - wanted < step && legal.count % step.count == 0);
  bind(program, nullptr, {.size = legal, .type = DataType::float64});
}

TEST(Bind, a_size_outside_the_files_own_range_is_a_warning) {
  Program program = program_of({});
  program.min_size = {1024};
  program.max_size = {2048};
  const auto warnings = [&](std::int64_t size) {
    return bind(program, nullptr, {.size = {size}}).warnings().render();
  };
  EXPECT_THAT(warnings(512), HasSubstr("smaller than its own minimum of 1 KiB"));
  EXPECT_THAT(warnings(4096), HasSubstr("larger than its own maximum of 2 KiB"));
  EXPECT_EQ(warnings(1024), "");
}

TEST(Bind, memory_that_no_gpu_has_is_refused) {
  Program program = program_of({});
  program.buffers[2].chunks = {INT32_MAX};
  EXPECT_THAT(bind_failure(program, nullptr, {.size = MiB(1)}), HasSubstr("of memory"));
}

TEST(Bind, operands_stay_inside_their_buffers_in_every_iteration) {
  Op op = put(1);
  op.src[0].chunk = {.loop = {1, 0}};
  op.where = "/here";
  const auto with = [&](std::int64_t count) {
    return program_of({{.kind = OpKind::loop, .count = count}, op, {.kind = OpKind::end_loop}});
  };
  EXPECT_EQ(bind_failure(with(8), nullptr), "no failure");
  EXPECT_THAT(bind_failure(with(9), nullptr),
              HasSubstr("put of rank 0: chunks [8, 9) of input of rank 0, which has 8 (at /here)"));
}

TEST(Bind, every_index_is_checked) {
  const auto with = [](Op op) { return bind_failure(program_of({std::move(op)}), nullptr); };
  EXPECT_THAT(with(put(2)), HasSubstr("rank 2 is not there"));
  EXPECT_THAT(with({.kind = OpKind::copy, .src = {local(99, 0)}, .dst = {local(0, 0)}}),
              HasSubstr("buffer 99 is not there"));
  EXPECT_THAT(with({.kind = OpKind::copy, .src = {local(0, 0, 2)}, .dst = {local(1, 0)}}),
              HasSubstr("different sizes"));
  EXPECT_THAT(with({.kind = OpKind::wait, .semaphores = {{own_rank(), -1}}}),
              HasSubstr("semaphore"));
  EXPECT_THAT(with({.kind = OpKind::barrier, .barrier_id = 0, .workgroups = 2}),
              HasSubstr("a barrier of 2 workgroups on a rank of 1"));
  EXPECT_THAT(with({.kind = OpKind::barrier, .barrier_id = 1, .workgroups = 1}),
              HasSubstr("barrier 1 is not there"));
  EXPECT_THAT(with({.kind = OpKind::send, .src = {local(0, 0)}, .send_to = {constant(0), 0, 0}}),
              HasSubstr("its own rank"));
  EXPECT_THAT(with({.kind = OpKind::send, .src = {local(0, 0)}}),
              HasSubstr("no connection to send to"));
  const ConnectionRef other{constant(1), 0, 0};
  EXPECT_THAT(
      with({.kind = OpKind::recv, .dst = {local(1, 0)}, .recv_from = other, .more_from = {other}}),
      HasSubstr("what arrives several times is not reduced"));
  EXPECT_THAT(
      with({.kind = OpKind::recv, .dst = {local(1, 0)}, .recv_from = other, .more_to = {other}}),
      HasSubstr("it sends nothing to its further connections"));
  EXPECT_THAT(with({.kind = OpKind::send,
                    .src = {local(0, 0)},
                    .send_to = other,
                    .more_to = {{constant(1), 9, 9}}}),
              HasSubstr("connection 9 -> 9 is not there"));
  EXPECT_THAT(with({.kind = OpKind::copy,
                    .src = {local(0, 0)},
                    .dst = {local(1, 0)},
                    .slice = 2,
                    .slices = 2}),
              HasSubstr("slice 2 of 2"));
  EXPECT_THAT(with({.kind = OpKind::loop, .count = 1}), HasSubstr("the loop has no end"));
  EXPECT_THAT(with({.kind = OpKind::end_loop}), HasSubstr("no loop to end"));
}

TEST(Bind, loops_are_at_most_two_deep) {
  const Op loop{.kind = OpKind::loop, .count = 1}, end{.kind = OpKind::end_loop};
  EXPECT_EQ(bind_failure(program_of({loop, loop, end, end}), nullptr), "no failure");
  EXPECT_THAT(bind_failure(program_of({loop, loop, loop, end, end, end}), nullptr),
              HasSubstr("more than two deep"));
}

TEST(Bind, a_chunk_that_does_not_fit_a_folded_buffer_is_refused) {
  Program program =
      program_of({{.kind = OpKind::copy, .src = {local(0, 0)}, .dst = {local(2, 0)}}});
  program.buffers[2].chunk_limit = {32};
  EXPECT_EQ(bind_failure(program, nullptr, {.size = {256}}), "no failure");
  EXPECT_THAT(bind_failure(program, nullptr, {.size = {512}}),
              HasSubstr("does not fit into the 32 B"));
}

TEST(Bind, a_program_for_more_ranks_than_the_machine_has_is_refused) {
  const machine::Machine machine = machine::load("dgx-h100");
  EXPECT_THAT(bind_failure(far_put(9, Channel::memory), machine::share(machine)),
              HasSubstr("is for 9 GPUs, the machine has 8"));
  EXPECT_EQ(bind_failure(far_put(8, Channel::memory), machine::share(machine)), "no failure");
}

TEST(Bind, loads_and_stores_do_not_cross_a_nic_but_ports_do) {
  const machine::Machine machine = machine::load("dgx-h100:2");
  EXPECT_THAT(bind_failure(far_put(16, Channel::memory), machine::share(machine)),
              HasSubstr("put of rank 0: rank 15 is only reached through a NIC"));
  const Bound program = bind(far_put(16, Channel::port), machine::share(machine), {.size = {512}});
  EXPECT_EQ(expand(program), Lines{"post 64 0.input@0 -> 15.output@0 release remote"});
}

TEST(Bind, multicast_needs_one_switch_for_the_group) {
  Operand group = local(0, 0, 1, Access::multicast);
  group.group = 0;
  Program program = program_of({{.kind = OpKind::group_store,
                                 .channel = Channel::switch_,
                                 .src = {local(1, 0)},
                                 .dst = {group}}});
  const machine::Machine h100 = machine::load("dgx-h100"), a100 = machine::load("dgx-a100");
  EXPECT_EQ(bind_failure(program, machine::share(h100)), "no failure");
  EXPECT_THAT(
      bind_failure(program, machine::share(a100)),
      HasSubstr("group_store of rank 0: no switch of the machine can multicast to the ranks 0, 1"));
}

TEST(Bind, a_send_across_a_nic_is_staged_and_posted) {
  const machine::Machine machine = machine::load("dgx-h100:2");
  const auto far = [](int peer) {
    return ConnectionRef{.peer = constant(peer), .inbound = 0, .outbound = 0};
  };
  Program program =
      program_of({{.kind = OpKind::send, .src = {local(0, 0)}, .send_to = far(15)},
                  {.kind = OpKind::recv, .dst = {local(1, 0)}, .recv_from = far(15)}});
  program.ranks = 16;
  program.code_of.assign(16, 1);
  program.code_of[0] = 0;
  program.protocol = Protocol::ll;  // of no effect across a NIC
  EXPECT_EQ(expand(bind(program, machine::share(machine), {.size = {8 * 48}})),
            (Lines{"sync", "move 48 0.input@0 -> 0.staging 0@0", "sync",
                   "post 48 0.staging 0@0 -> 15.fifo 0@0 15:tail of fifo 0=1 release remote",
                   "wait 0:tail of fifo 0=1 acquire", "sync", "move 48 0.fifo 0@0 -> 0.output@0",
                   "sync", "post 15:credit of connection 0=1 release remote"}));
}

TEST(Bind, a_node_of_a_tree_stores_to_near_children_and_posts_to_far_ones) {
  const machine::Machine machine = machine::load("dgx-h100:2");
  Program program = program_of({{.kind = OpKind::send,
                                 .src = {local(0, 0)},
                                 .send_to = {constant(1), 0, 0},
                                 .more_to = {{constant(8), 0, 1}}}});
  program.ranks = 16;
  program.code_of.assign(16, 1);
  program.code_of[0] = 0;
  program.protocol = Protocol::ll;
  EXPECT_EQ(expand(bind(program, machine::share(machine), {.size = {8 * 48}})),
            (Lines{"sync", "move 48 0.input@0 -> 1.fifo 0@0/LL 0.staging 1@0", "sync",
                   "post 48 0.staging 1@0 -> 8.fifo 0@0 8:tail of fifo 0=1 release remote"}));
}

TEST(Length, unrolls_loops_and_does_not_overflow) {
  const auto loop = [](std::int64_t count) { return Op{.kind = OpKind::loop, .count = count}; };
  const Op end{.kind = OpKind::end_loop}, sync{.kind = OpKind::sync};
  const Program nested = program_of({sync, loop(3), sync, loop(5), sync, sync, end, end});
  EXPECT_EQ(length_of(bound(nested), 0), 1 + 3 * (1 + 5 * 2));
  EXPECT_EQ(length_of(bound(nested), 1), 0);
  // A chunk of 64 B in pieces of 24: three.
  Op pieces = loop(0);
  pieces.unit = {24};
  pieces.unit_chunks = 1;
  EXPECT_EQ(length_of(bound(program_of({pieces, sync, end})), 0), 3);
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(length_of(bound(program_of({loop(huge), loop(huge), sync, end, end})), 0),
            std::int64_t{1} << 62);
}

}  // namespace
}  // namespace hemiola::program
