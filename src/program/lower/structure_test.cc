// What lowered programs look like: the operations of real kernels, shared by all ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/testing/failure.h"
#include "hemiola/parts/build_plan.h"
#include "machine/machine.h"
#include "plan/template.h"
#include "program/built_in.h"
#include "program/lower/lower.h"
#include "program/testing/plan_fixtures.h"
#include "program/testing/programs.h"

namespace hemiola::program {
namespace {

using test::built_in;
using test::kinds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// The operations of a ring's body for one piece, with its count loops unrolled.
std::vector<OpKind> one_piece(const Body& body) {
  std::vector<OpKind> found;
  std::int64_t times = 1;
  for (std::size_t i = 1; i + 1 < body.ops.size(); ++i) {
    const Op& op = body.ops[i];
    if (op.kind == OpKind::loop)
      times = op.count;
    else if (op.kind == OpKind::end_loop)
      times = 1;
    else
      found.insert(found.end(), static_cast<std::size_t>(times), op.kind);
  }
  return found;
}

/// Everything a program holds, in bytes.
std::size_t bytes_of(const Program& program) {
  std::size_t bytes = program.code_of.size() * sizeof(std::int32_t) +
                      program.buffers.size() * sizeof(Buffer) +
                      program.semaphores.size() * sizeof(Semaphore);
  for (const Body& body : program.bodies) {
    for (const Op& op : body.ops) {
      bytes += sizeof(Op) + (op.src.size() + op.dst.size()) * sizeof(Operand) +
               op.semaphores.size() * sizeof(SemaphoreRef);
    }
  }
  return bytes;
}

std::size_t ops_of(const Program& program) {
  std::size_t ops = 0;
  for (const Body& body : program.bodies) ops += body.ops.size();
  return ops;
}

TEST(LowerStructure, a_ring_all_reduce_is_the_kernel_of_nccl) {
  const Program program = built_in("all-reduce/ring", 8, {{"channels", "2"}});
  ASSERT_EQ(program.bodies.size(), 2u);
  std::vector<OpKind> nccl{OpKind::send};
  nccl.insert(nccl.end(), 8 - 2, OpKind::recv_reduce_send);
  nccl.push_back(OpKind::recv_reduce_copy_send);
  nccl.insert(nccl.end(), 8 - 2, OpKind::recv_copy_send);
  nccl.push_back(OpKind::recv);
  EXPECT_EQ(one_piece(program.bodies[1]), nccl);
  const Op& send = program.bodies[1].ops[1];
  EXPECT_EQ(send.slice, 1);
  EXPECT_EQ(send.slices, 2);
  EXPECT_EQ(send.send_to.peer({.rank = 7}), 0);
  const Op& recv = program.bodies[1].ops[program.bodies[1].ops.size() - 2];
  EXPECT_EQ(recv.recv_from.peer({.rank = 0}), 7);
  EXPECT_EQ(recv.recv_from.inbound, 1);
  EXPECT_EQ(program.fifo.slots, 8);
}

TEST(LowerStructure, two_ranks_need_three_operations) {
  const Program program = built_in("all-reduce/ring", 2, {{"channels", "1"}});
  EXPECT_THAT(kinds(program.bodies[0]),
              ElementsAre(OpKind::loop, OpKind::send, OpKind::recv_reduce_copy_send, OpKind::recv,
                          OpKind::end_loop));
}

TEST(LowerStructure, a_chain_reads_once_what_it_keeps_and_sends) {
  const Body gather = built_in("all-gather/ring", 4, {{"channels", "1"}}).bodies[0];
  EXPECT_EQ(one_piece(gather), (std::vector{OpKind::send, OpKind::recv_copy_send,
                                            OpKind::recv_copy_send, OpKind::recv}));
  ASSERT_EQ(gather.ops[1].dst.size(), 1u);
  EXPECT_EQ(gather.ops[1].dst[0].chunk({.rank = 2}), 2);
  const Body in_place =
      built_in("all-gather/ring", 4, {{"channels", "1"}, {"in_place", "1"}}).bodies[0];
  EXPECT_TRUE(in_place.ops[1].dst.empty());
  const Body root = built_in("broadcast/ring", 4, {{"channels", "1"}}).bodies[0];
  EXPECT_EQ(one_piece(root), (std::vector{OpKind::send}));
  EXPECT_EQ(root.ops[1].dst.size(), 1u);
}

TEST(LowerStructure, protocols_have_the_slots_of_nccl) {
  EXPECT_EQ(built_in("all-reduce/ring", 4).slot_bytes(), 512 << 10);
  EXPECT_EQ(built_in("all-reduce/ring", 4, {{"protocol", "ll"}}).slot_bytes(), 64 << 10);
  EXPECT_EQ(built_in("all-reduce/ring", 4, {{"protocol", "ll128"}}).slot_bytes(), 600 << 10);
}

TEST(LowerStructure, a_pushed_all_gather_signals_before_it_copies_its_own_part) {
  const Program program = built_in("all-gather/direct", 8, {{"workgroups", "1"}});
  EXPECT_THAT(kinds(program.bodies[0]),
              ElementsAre(OpKind::relaxed_signal, OpKind::relaxed_wait, OpKind::sync, OpKind::loop,
                          OpKind::put, OpKind::end_loop, OpKind::sync, OpKind::signal, OpKind::copy,
                          OpKind::wait));
  EXPECT_EQ(program.bodies[0].ops[7].semaphores.size(), 7u);
}

TEST(LowerStructure, in_place_nothing_is_copied) {
  const Program program =
      built_in("all-gather/direct", 8, {{"workgroups", "1"}, {"in_place", "1"}});
  EXPECT_THAT(kinds(program.bodies[0]), ::testing::Not(::testing::Contains(OpKind::copy)));
  EXPECT_TRUE(program.in_place);
}

TEST(LowerStructure, a_pulled_all_gather_closes_with_a_relaxed_barrier) {
  const Program program =
      built_in("all-gather/direct", 8, {{"workgroups", "1"}, {"transfer", "pull"}});
  EXPECT_THAT(kinds(program.bodies[0]),
              ElementsAre(OpKind::relaxed_signal, OpKind::relaxed_wait, OpKind::sync, OpKind::loop,
                          OpKind::get, OpKind::end_loop, OpKind::copy, OpKind::sync,
                          OpKind::relaxed_signal, OpKind::relaxed_wait));
}

TEST(LowerStructure, a_two_shot_all_reduce_is_the_kernel_of_vllm) {
  const Program program =
      built_in("all-reduce/two-shot", 8, {{"workgroups", "1"}, {"gather", "pull"}});
  EXPECT_THAT(kinds(program.bodies[0]),
              ElementsAre(OpKind::relaxed_signal, OpKind::relaxed_wait, OpKind::sync,
                          OpKind::read_reduce, OpKind::sync, OpKind::signal, OpKind::wait,
                          OpKind::sync, OpKind::loop, OpKind::get, OpKind::end_loop, OpKind::copy));
  EXPECT_EQ(program.bodies[0].ops[3].src.size(), 8u);
}

TEST(LowerStructure, a_two_shot_that_pushes_its_results_reduces_and_sends_at_once) {
  const Program program = built_in("all-reduce/two-shot", 8, {{"workgroups", "1"}});
  EXPECT_THAT(kinds(program.bodies[0]),
              ElementsAre(OpKind::relaxed_signal, OpKind::relaxed_wait, OpKind::sync,
                          OpKind::read_reduce_send, OpKind::sync, OpKind::signal, OpKind::wait));
  EXPECT_EQ(program.bodies[0].ops[3].dst.size(), 8u);
}

TEST(LowerStructure, a_two_shot_of_packets_has_no_signals) {
  const Program program =
      built_in("all-reduce/two-shot", 8, {{"workgroups", "1"}, {"protocol", "ll"}});
  EXPECT_THAT(
      kinds(program.bodies[0]),
      ElementsAre(OpKind::loop, OpKind::put_packets, OpKind::end_loop, OpKind::reduce_send_packets,
                  OpKind::loop, OpKind::unpack_packets, OpKind::end_loop));
}

TEST(LowerStructure, a_one_shot_of_packets_is_all_pairs) {
  const Program program =
      built_in("all-reduce/one-shot", 8, {{"workgroups", "1"}, {"protocol", "ll"}});
  EXPECT_THAT(kinds(program.bodies[0]), ElementsAre(OpKind::loop, OpKind::put_packets,
                                                    OpKind::end_loop, OpKind::reduce_packets));
}

TEST(LowerStructure, a_ring_over_1024_ranks_is_as_large_as_one_over_8) {
  const Program large = built_in("all-reduce/ring", 1024);
  const Program small = built_in("all-reduce/ring", 8);
  EXPECT_EQ(ops_of(large), ops_of(small));
  EXPECT_EQ(bytes_of(large), bytes_of(small) + (1024 - 8) * sizeof(std::int32_t));
  EXPECT_LT(bytes_of(large), 512u << 10);
}

Program on_machine(const std::string& name, const std::string& machine_name,
                   const plan::Parameters& parameters = {}) {
  const machine::Machine machine = machine::load(machine_name);
  return make_built_in(name, {machine.ranks(), parameters, machine::share(machine)}).value();
}

TEST(LowerStructure, several_rings_share_the_channels_and_take_the_sizes_of_one) {
  for (const char* name : {"all-reduce/ring", "all-gather/ring", "reduce-scatter/ring"}) {
    const Program rings = on_machine(name, "dgx1-v100", {{"channels", "12"}});  // 6 rings
    EXPECT_EQ(rings.inbound, 12) << name;
    EXPECT_EQ(rings.chunks_per_size, 8) << name;
    for (const RankCode& code : rings.codes) {
      const Kernel& kernel = rings.kernels[static_cast<std::size_t>(code.streams[0][0].index)];
      std::map<std::int64_t, int> channels_to;  // by distance
      for (std::int32_t channel = 0; channel < 12; ++channel) {
        const Body& body = rings.bodies[static_cast<std::size_t>(
            kernel.bodies.at(static_cast<std::size_t>(channel)))];
        for (const Op& op : body.ops) {
          if (op.kind != OpKind::send) continue;
          EXPECT_EQ(op.slice, channel);
          EXPECT_EQ(op.slices, 12);
          ++channels_to[op.send_to.peer.constant];
        }
      }
      EXPECT_EQ(channels_to.size(), 4u);  // a V100 has four neighbours
    }
  }
  EXPECT_EQ(on_machine("broadcast/ring", "dgx1-v100").chunks_per_size, 1);
  EXPECT_EQ(on_machine("reduce/ring", "ring:4").chunks_per_size, 1);
  // Fewer channels than rings: one each.
  EXPECT_EQ(on_machine("all-reduce/ring", "torus:4x4", {{"channels", "3"}}).inbound, 4);
}

TEST(LowerStructure, rings_over_rails_share_code_between_every_second_node) {
  const Program large = on_machine("all-reduce/ring", "dgx-h100:128");
  const Program small = on_machine("all-reduce/ring", "dgx-h100:4");
  EXPECT_EQ(large.codes.size(), 16u);
  EXPECT_EQ(ops_of(large), ops_of(small));
  EXPECT_LT(bytes_of(large), 8u << 20);
}

TEST(LowerStructure, exchanges_over_1024_ranks_have_as_many_operations_as_over_8) {
  for (const char* name :
       {"all-gather/direct", "reduce-scatter/direct", "all-to-all/direct", "all-reduce/two-shot"}) {
    const Program large = built_in(name, 1024);
    EXPECT_EQ(ops_of(large), ops_of(built_in(name, 8))) << name;
    EXPECT_LT(bytes_of(large), 64u << 20) << name;  // a reduction over n ranks names n operands
    EXPECT_EQ(large.kernels[0].threads, 1024) << name;
  }
}

TEST(LowerStructure, legal_sizes_do_not_depend_on_channels) {
  EXPECT_EQ(built_in("all-reduce/ring", 8).next_legal_size({1}, DataType::float32).count, 8 * 16);
  EXPECT_EQ(built_in("all-gather/direct", 6).next_legal_size({97}, DataType::float32).count,
            2 * 6 * 16);
  EXPECT_EQ(built_in("all-reduce/one-shot", 8).next_legal_size({1}, DataType::float32).count, 16);
}

TEST(LowerStructure, impossible_options_are_refused_with_a_way_out) {
  EXPECT_THAT(hemiola::test::message_of([] {
                built_in("all-gather/direct", 4, {{"transfer", "pull"}, {"protocol", "ll"}});
              }),
              HasSubstr("packets can only be pushed"));
  EXPECT_THAT(hemiola::test::message_of([] {
                built_in("all-gather/direct", 4, {{"protocol", "ll128"}});
              }),
              HasSubstr("choose protocol simple or ll, or a ring"));
  EXPECT_THAT(hemiola::test::message_of([] {
                built_in("all-to-all/direct", 4, {{"in_place", "1"}});
              }),
              HasSubstr("cannot run in place"));
  EXPECT_THAT(hemiola::test::message_of([] {
                built_in("all-reduce/one-shot", 4, {{"in_place", "1"}});
              }),
              HasSubstr("cannot run in place"));
  EXPECT_THAT(hemiola::test::message_of([] {
                built_in("all-reduce/ring", 4, {{"piece", "100B"}});
              }),
              HasSubstr("multiple of 16 B up to 4 MiB"));
  EXPECT_THAT(hemiola::test::message_of([] {
                built_in("all-reduce/ring", 4, {{"piece", "1GiB"}});
              }),
              HasSubstr("does not fit the connections"));
  EXPECT_THAT(hemiola::test::message_of([] {
                built_in("all-gather/direct", 8, {{"threads", "6"}});
              }),
              HasSubstr("needs 7 threads per workgroup, not 6"));
}

TEST(LowerStructure, a_plan_that_is_neither_chain_nor_exchange_has_bodies_for_every_workgroup) {
  plan::Plan plan = plan::make("all-reduce/ring", 4);
  EXPECT_TRUE(is_chain(plan));
  auto& items = plan.codes[0].streams[0].items;
  std::get<plan::Transfer>(items[2]).after.clear();  // it forwards what may not have arrived
  EXPECT_FALSE(is_chain(plan));
  EXPECT_FALSE(is_exchange(plan));
  EXPECT_EQ(lower(plan, {.workgroups = 2}).bodies.size(), 2U);  // its ranks do the same
  plan = plan::make("all-gather/direct", 4);
  EXPECT_TRUE(is_exchange(plan));
  plan.codes.push_back(plan.codes[0]);  // ranks could differ
  EXPECT_FALSE(is_exchange(plan));
  EXPECT_EQ(lower(plan, {.workgroups = 2}).bodies.size(), 2U);
  plan.codes[1].streams[0].items.clear();
  plan.code_of[3] = 1;  // and one does
  EXPECT_EQ(lower(plan, {.workgroups = 2}).bodies.size(), 8U);
}

TEST(LowerStructure, peers_are_told_once_of_pushes_that_follow_each_other) {
  plan::Plan plan = plan::make("all-gather/direct", 3);
  const plan::Region own = plan::chunk_of(0), gathered = plan::chunk_of(1, own_rank());
  plan::Stream stream{"exchange", {}};
  for (const std::int64_t distance : {2, 1})
    stream.items.push_back(plan::push(neighbour(distance, 3), own, gathered));
  stream.items.push_back(plan::copy(own, gathered));
  plan::run_everywhere(plan, stream);
  const Program program = lower(plan, {.workgroups = 1, .barrier = false});
  EXPECT_THAT(kinds(program.bodies[0]), ElementsAre(OpKind::put, OpKind::put, OpKind::sync,
                                                    OpKind::signal, OpKind::copy, OpKind::wait));
}

TEST(LowerStructure, a_tile_of_a_product_knows_its_rows_columns_and_depth) {
  const Program program = lower(fixtures::ag_gemm({.m = 512, .n = 128, .k = 256}), {});
  int tiles = 0;
  for (const Body& body : program.bodies) {
    for (const Op& op : body.ops) {
      if (op.kind != OpKind::compute) continue;
      ++tiles;
      EXPECT_EQ(op.product, (MatrixProduct{64, 64, 256}));
      EXPECT_EQ(op.flop, 2 * 64 * 64 * 256);
    }
  }
  EXPECT_GT(tiles, 0);
}

TEST(LowerStructure, operations_say_which_item_of_the_plan_they_come_from) {
  const Program program = built_in("all-gather/direct", 4, {{"workgroups", "1"}});
  EXPECT_EQ(program.bodies[0].ops[4].where, "/exchange/0");
  EXPECT_EQ(program.bodies[0].ops[8].where, "/exchange/1");
}

}  // namespace
}  // namespace hemiola::program
