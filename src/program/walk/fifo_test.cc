// Which bytes and which slots: pieces, slices and connections.
#include <gtest/gtest.h>

#include "program/testing/cursor.h"

namespace hemiola::program {
namespace {

using namespace testing_support;

Program pieces(Pieces rule, std::int64_t unit, std::int64_t unit_chunks = 1) {
  return program_of(
      {{.kind = OpKind::loop, .unit = {unit}, .unit_chunks = unit_chunks, .pieces = rule},
       {.kind = OpKind::copy, .src = {local(0, 2, 2)}, .dst = {local(1, 4, 2)}},
       {.kind = OpKind::end_loop}});
}

TEST(Pieces, of_chunks_take_the_same_part_of_each_chunk) {
  EXPECT_EQ(expand(bound(pieces(Pieces::of_chunk, 48))),
            (Lines{"move 48 0.input@128 -> 0.output@256", "move 48 0.input@192 -> 0.output@320",
                   "move 16 0.input@176 -> 0.output@304", "move 16 0.input@240 -> 0.output@368"}));
}

TEST(Pieces, of_chunks_that_are_whole_chunks_form_one_region) {
  EXPECT_EQ(expand(bound(pieces(Pieces::of_chunk, 64))),
            Lines{"move 128 0.input@128 -> 0.output@256"});
}

TEST(Pieces, of_regions_cut_all_chunks_as_one) {
  EXPECT_EQ(expand(bound(pieces(Pieces::of_region, 96, 2))),
            (Lines{"move 96 0.input@128 -> 0.output@256", "move 32 0.input@224 -> 0.output@352"}));
}

TEST(Pieces, that_are_empty_yield_nothing) {
  EXPECT_EQ(expand(bound(pieces(Pieces::of_region, 96, 4))).size(), 2U);
}

TEST(Pieces, of_a_folded_buffer_take_turns_in_its_memory) {
  Program program = pieces(Pieces::of_region, 16);
  for (Op& op : program.bodies[0].ops)
    if (op.kind == OpKind::copy) op.src = {local(0, 1)}, op.dst = {local(2, 1)};
  program.buffers[2].chunk_limit = {32};
  EXPECT_EQ(expand(bound(program)),
            (Lines{"move 16 0.input@64 -> 0.scratch@32", "move 16 0.input@80 -> 0.scratch@48",
                   "move 16 0.input@96 -> 0.scratch@32", "move 16 0.input@112 -> 0.scratch@48"}));
}

TEST(Slices, deal_units_evenly_and_the_first_ones_get_one_more) {
  Lines lines;
  for (std::int32_t slice = 0; slice < 3; ++slice) {
    Program program = program_of({{.kind = OpKind::copy,
                                   .src = {local(0, 0, 1)},
                                   .dst = {local(1, 0, 1)},
                                   .slice = slice,
                                   .slices = 3}});
    for (const std::string& line : expand(bound(program))) lines.push_back(line);
  }
  EXPECT_EQ(lines, (Lines{"move 32 0.input@0 -> 0.output@0", "move 16 0.input@32 -> 0.output@32",
                          "move 16 0.input@48 -> 0.output@48"}));
}

TEST(Slices, without_a_unit_are_empty) {
  Program program = program_of({{.kind = OpKind::copy,
                                 .src = {local(0, 0, 1)},
                                 .dst = {local(1, 0, 1)},
                                 .slice = 5,
                                 .slices = 6}});
  EXPECT_TRUE(expand(bound(program)).empty());
}

// --- connections ---------------------------------------------------------------------------------

ConnectionRef link(int peer) {
  return {.peer = constant(peer), .inbound = 0, .outbound = 0};
}

TEST(Fifo, a_send_takes_slots_and_waits_for_credit_after_the_first_round) {
  // 64 B in steps of 48 B: two slots; of a FIFO of two.
  Bound program =
      bound(program_of({{.kind = OpKind::send, .src = {local(0, 1)}, .send_to = link(1)}}));
  Cursor cursor(program, 0, 0);
  EXPECT_EQ(walk(cursor, program), (Lines{"sync", "move 48 0.input@64 -> 1.fifo 0@0", "sync",
                                          "signal 1:tail of fifo 0=1 release", "sync",
                                          "move 16 0.input@112 -> 1.fifo 0@48", "sync",
                                          "signal 1:tail of fifo 0=1 release"}));
  cursor.repeat();
  EXPECT_EQ(
      walk(cursor, program),
      (Lines{"wait 0:credit of connection 0=1", "sync", "move 48 0.input@64 -> 1.fifo 0@0", "sync",
             "signal 1:tail of fifo 0=1 release", "wait 0:credit of connection 0=2", "sync",
             "move 16 0.input@112 -> 1.fifo 0@48", "sync", "signal 1:tail of fifo 0=1 release"}));
}

TEST(Fifo, a_receive_waits_for_the_tail_and_returns_credit_without_a_fence) {
  Program program =
      program_of({{.kind = OpKind::recv, .dst = {local(1, 2)}, .recv_from = link(1)}});
  EXPECT_EQ(expand(bound(program, 48)),
            (Lines{"wait 0:tail of fifo 0=1 acquire", "sync", "move 48 0.fifo 0@0 -> 0.output@96",
                   "sync", "signal 1:credit of connection 0=1"}));
}

TEST(Fifo, fused_receives_wait_for_both_and_move_once) {
  const auto with = [](OpKind kind, std::vector<Operand> src, std::vector<Operand> dst) {
    return expand(bound(program_of({{.kind = kind,
                                     .src = std::move(src),
                                     .dst = std::move(dst),
                                     .send_to = link(1),
                                     .recv_from = link(1)}}),
                        48));
  };
  const Lines around{
      "wait 0:tail of fifo 0=1 acquire",  "sync", "", "sync", "signal 1:credit of connection 0=1",
      "signal 1:tail of fifo 0=1 release"};
  const auto expect = [&](const Lines& lines, const std::string& move) {
    Lines wanted = around;
    wanted[2] = move;
    EXPECT_EQ(lines, wanted);
  };
  expect(with(OpKind::recv_copy_send, {}, {local(1, 0)}),
         "move 48 0.fifo 0@0 -> 1.fifo 0@0 0.output@0");
  expect(with(OpKind::recv_reduce_send, {local(0, 0)}, {}),
         "move 48 sum 0.fifo 0@0 0.input@0 -> 1.fifo 0@0");
  expect(with(OpKind::recv_reduce_copy_send, {local(0, 0)}, {local(1, 0)}),
         "move 48 sum 0.fifo 0@0 0.input@0 -> 1.fifo 0@0 0.output@0");
  Program reduce_copy = program_of({{.kind = OpKind::recv_reduce_copy,
                                     .src = {local(0, 0)},
                                     .dst = {local(1, 0)},
                                     .recv_from = link(1)}});
  EXPECT_EQ(expand(bound(reduce_copy, 48)), (Lines{"wait 0:tail of fifo 0=1 acquire", "sync",
                                                   "move 48 sum 0.fifo 0@0 0.input@0 -> 0.output@0",
                                                   "sync", "signal 1:credit of connection 0=1"}));
}

TEST(Fifo, a_node_of_a_tree_adds_what_all_children_send_and_passes_the_sum_to_each) {
  const ConnectionRef second{.peer = constant(1), .inbound = 1, .outbound = 1};
  Program program = program_of({{.kind = OpKind::recv_reduce_copy_send,
                                 .src = {local(0, 0)},
                                 .dst = {local(1, 0)},
                                 .send_to = link(1),
                                 .recv_from = link(1),
                                 .more_from = {second},
                                 .more_to = {second}}});
  EXPECT_EQ(expand(bound(program, 48)),
            (Lines{"wait 0:tail of fifo 0=1 0:tail of fifo 1=1 acquire", "sync",
                   "move 48 sum 0.fifo 0@0 0.fifo 1@0 0.input@0 -> 1.fifo 0@0 1.fifo 1@0 "
                   "0.output@0",
                   "sync", "signal 1:credit of connection 0=1 1:credit of connection 1=1",
                   "signal 1:tail of fifo 0=1 1:tail of fifo 1=1 release"}));
  program.protocol = Protocol::ll;
  EXPECT_EQ(expand(bound(program, 48)),
            (Lines{"sync",
                   "move 48 sum 0.fifo 0@0/LL 0.fifo 1@0/LL 0.input@0 -> 1.fifo 0@0/LL "
                   "1.fifo 1@0/LL 0.output@0",
                   "sync", "signal 1:credit of connection 0=1 1:credit of connection 1=1"}));
}

TEST(Fifo, flags_inside_lines_replace_the_tail) {
  Program program =
      program_of({{.kind = OpKind::send, .src = {local(0, 0)}, .send_to = link(1)},
                  {.kind = OpKind::recv, .dst = {local(1, 0)}, .recv_from = link(1)}});
  program.protocol = Protocol::ll;
  EXPECT_EQ(expand(bound(program, 48)), (Lines{"sync", "move 48 0.input@0 -> 1.fifo 0@0/LL",
                                               "move 48 0.fifo 0@0/LL -> 0.output@0", "sync",
                                               "signal 1:credit of connection 0=1"}));
}

TEST(Fifo, receivers_that_pull_load_from_the_sender_what_it_kept) {
  Program program = program_of({{.kind = OpKind::send, .src = {local(0, 0)}, .send_to = link(1)},
                                {.kind = OpKind::recv_reduce_send,
                                 .src = {local(0, 0)},
                                 .send_to = link(1),
                                 .recv_from = link(1)}});
  program.fifo.pulls = true;
  EXPECT_EQ(expand(bound(program, 48)),
            (Lines{"sync", "move 48 0.input@0 -> 0.staging 0@0", "sync",
                   "signal 1:tail of fifo 0=1 release", "wait 0:tail of fifo 0=1 acquire", "sync",
                   "move 48 sum 1.staging 0@0 0.input@0 -> 0.staging 0@48", "sync",
                   "signal 1:credit of connection 0=1", "signal 1:tail of fifo 0=1 release"}));
  program.protocol = Protocol::ll;
  EXPECT_EQ(expand(bound(program, 48)).at(1), "move 48 0.input@0 -> 1.fifo 0@0/LL")
      << "lines with flags are pushed";
}

TEST(Fifo, slots_of_ll128_are_whole_lines) {
  Program program = program_of({{.kind = OpKind::send, .src = {local(0, 0)}, .send_to = link(1)}});
  program.protocol = Protocol::ll128;
  program.fifo.step = {240};
  EXPECT_EQ(expand(bound(program, 480)),
            (Lines{"sync", "move 240 0.input@0 -> 1.fifo 0@0/LL128", "sync",
                   "move 240 0.input@240 -> 1.fifo 0@256/LL128"}));
}

TEST(Fifo, pieces_of_several_chunks_send_each_chunk_apart) {
  Program program = program_of({{.kind = OpKind::loop, .unit = {32}, .unit_chunks = 1},
                                {.kind = OpKind::send, .src = {local(0, 2, 2)}, .send_to = link(1)},
                                {.kind = OpKind::end_loop}});
  Lines moves;
  for (const std::string& line : expand(bound(program)))
    if (line.starts_with("move")) moves.push_back(line);
  EXPECT_EQ(moves,
            (Lines{"move 32 0.input@128 -> 1.fifo 0@0", "move 32 0.input@192 -> 1.fifo 0@48",
                   "move 32 0.input@160 -> 1.fifo 0@0", "move 32 0.input@224 -> 1.fifo 0@48"}));
}

TEST(Fifo, calls_take_their_slices_whether_bytes_fill_them_or_not) {
  // Chunks of 64 B, two to a call; a call has two slices of 16 elements at least.
  Program program =
      program_of({{.kind = OpKind::send, .src = {local(0, 0, 3)}, .send_to = link(1)}});
  program.fifo = {.slots = 8, .step = {96}, .slices = 2, .call = {160}};
  Lines lines;
  for (const std::string& line : expand(bound(program)))
    if (line != "sync") lines.push_back(line);
  EXPECT_EQ(lines, (Lines{"move 64 0.input@0 -> 1.fifo 0@0", "signal 1:tail of fifo 0=1 release",
                          "move 64 0.input@64 -> 1.fifo 0@96", "signal 1:tail of fifo 0=1 release",
                          "move 64 0.input@128 -> 1.fifo 0@192",
                          "signal 1:tail of fifo 0=1 release", "signal 1:tail of fifo 0=1"}));
}

TEST(Fifo, empty_slices_wait_for_credit_and_give_it_back) {
  const auto only_semaphores = [](std::vector<Op> ops) {
    Program program = program_of(std::move(ops));
    program.fifo = {.slots = 1, .step = {64}, .slices = 2, .call = {64}};
    Lines lines;
    for (const std::string& line : expand(bound(program)))
      if (!line.starts_with("move") && line != "sync") lines.push_back(line);
    return lines;
  };
  EXPECT_EQ(only_semaphores({{.kind = OpKind::send, .src = {local(0, 0)}, .send_to = link(1)}}),
            (Lines{"signal 1:tail of fifo 0=1 release", "wait 0:credit of connection 0=1",
                   "signal 1:tail of fifo 0=1"}));
  EXPECT_EQ(only_semaphores({{.kind = OpKind::recv, .dst = {local(1, 0)}, .recv_from = link(1)}}),
            (Lines{"wait 0:tail of fifo 0=1 acquire", "signal 1:credit of connection 0=1",
                   "wait 0:tail of fifo 0=2 acquire", "signal 1:credit of connection 0=1"}));
}

TEST(Fifo, a_call_has_71_chunks_at_most_and_one_at_least) {
  const Fifo fifo{.slots = 4, .step = MiB(1), .slices = 2, .call = MiB(2)};
  EXPECT_EQ(fifo.call_bytes(4), 71 * 4);
  EXPECT_EQ(fifo.call_bytes(300 << 10), 6 * (300 << 10));
  EXPECT_EQ(fifo.call_bytes(3 << 20), 3 << 20);
  EXPECT_EQ(Fifo{}.call_bytes(4), 0);
}

}  // namespace
}  // namespace hemiola::program
