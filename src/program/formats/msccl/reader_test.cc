// MSCCL XML: what each step means and what the interpreter merges.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "core/text.h"
#include "program/bind/bound.h"
#include "program/program.h"
#include "program/testing/msccl_text.h"
#include "program/testing/programs.h"

namespace hemiola::program {
namespace {

using msccl::algo;
using msccl::gpu;
using msccl::replaced;
using msccl::StepText;
using msccl::tb;
using test::kinds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

Program read_program(const std::string& xml) {
  return read_msccl(xml, "test.xml");
}

const Op& only(const Body& body, OpKind kind) {
  const auto is_kind = [&](const Op& op) { return op.kind == kind; };
  EXPECT_EQ(std::count_if(body.ops.begin(), body.ops.end(), is_kind), 1) << name_of(kind);
  return *std::find_if(body.ops.begin(), body.ops.end(), is_kind);
}

Operand local(std::int32_t buffer, std::int64_t chunk, std::int64_t chunks = 1) {
  return {.buffer = buffer, .chunk = constant(chunk), .chunks = chunks};
}

/// Two gpus; gpu 0 runs `steps` with peer 1 both ways, gpu 1 sends and receives one chunk.
Program with_peer(const std::vector<StepText>& steps) {
  return read_program(algo({gpu(0, tb(0, 1, 1, steps)), gpu(1, tb(0, 0, 0, {{"s"}, {"r"}}))}));
}

/// One gpu with the given blocks, which neither send nor receive.
Program alone(const std::vector<std::vector<StepText>>& blocks) {
  std::string text;
  for (std::size_t b = 0; b < blocks.size(); ++b)
    text += tb(static_cast<int>(b), -1, -1, blocks[b]);
  return read_program(algo({gpu(0, text)}));
}

TEST(Msccl, header_sets_protocol_collective_and_range) {
  const Program program =
      read_program(algo({gpu(0, "")}, " minBytes=\"1024\" maxBytes=\"4096\"", "LL128", "alltoall"));
  EXPECT_EQ(program.name, "test");
  EXPECT_EQ(program.format, "msccl");
  EXPECT_EQ(program.protocol, Protocol::ll128);
  EXPECT_EQ(program.collective, Collective::all_to_all);
  EXPECT_EQ(program.chunks_per_size, 8);
  EXPECT_EQ(program.ranks, 1);
  EXPECT_EQ(program.min_size, Bytes{1024});
  EXPECT_EQ(program.max_size, Bytes{4096});
  EXPECT_FALSE(program.in_place);
}

TEST(Msccl, a_max_bytes_of_zero_means_no_limit) {
  EXPECT_EQ(read_program(algo({gpu(0, "")}, " maxBytes=\"0\"")).max_size, Bytes{INT64_MAX});
  EXPECT_EQ(read_program(algo({gpu(0, "")})).max_size, Bytes{INT64_MAX});
}

TEST(Msccl, protocol_fixes_pieces_slots_and_threads) {
  struct Expected {
    const char* proto;
    std::int64_t piece, slots, step;
    int threads;
  };
  for (const Expected& expected :
       {Expected{"Simple", 2 << 20, 4, 1 << 20, 512}, Expected{"LL", 32 << 10, 8, 32 << 10, 512},
        Expected{"LL128", 576'000, 8, 576'000, 640}}) {
    const Program program =
        read_program(algo({gpu(0, tb(0, -1, -1, {{"cpy"}}))}, "", expected.proto));
    EXPECT_EQ(program.bodies.at(0).ops.front().kind, OpKind::loop);
    EXPECT_EQ(program.bodies.at(0).ops.front().unit.count, expected.piece) << expected.proto;
    EXPECT_EQ(program.bodies.at(0).ops.front().unit_chunks, 1);
    EXPECT_EQ(program.fifo.slots, expected.slots) << expected.proto;
    EXPECT_EQ(program.fifo.step.count, expected.step) << expected.proto;
    EXPECT_EQ(program.kernels.at(0).threads, expected.threads) << expected.proto;
  }
}

TEST(Msccl, executor_fixes_how_operations_are_cut) {
  const auto fifo = [](const char* proto, std::string_view executor) {
    const std::string xml = algo({gpu(0, tb(0, -1, -1, {{"cpy"}}))}, "", proto);
    const Program program = read_msccl(xml, "test.xml", executor);
    EXPECT_EQ(program.executed_by.name, executor);
    return program.fifo;
  };
  EXPECT_EQ(fifo("Simple", "msccl").slices, 2);
  EXPECT_EQ(fifo("Simple", "msccl").call, MiB(2));
  EXPECT_EQ(fifo("Simple", "msccl-slice1").slots, 2);
  EXPECT_EQ(fifo("Simple", "hemiola").call, Bytes{});
  EXPECT_EQ(fifo("LL", "rccl").step, KiB(16)) << "256 threads";
  EXPECT_EQ(fifo("LL128", "rccl").step, Bytes{50'176}) << "lines of 64 B";
}

TEST(Msccl, send_reads_its_source) {
  const Program program = with_peer({{"s", "i 2", "o 5"}, {"r"}});
  const Op& op = only(program.bodies.at(0), OpKind::send);
  EXPECT_THAT(op.src, ElementsAre(local(0, 2)));
  EXPECT_TRUE(op.dst.empty());
  EXPECT_EQ(op.send_to, (ConnectionRef{constant(1), 0, 0, 0}));
  EXPECT_EQ(op.recv_from, ConnectionRef{});
  EXPECT_EQ(op.where, "/algo/gpu[0]/tb[0]/step[0]");
}

TEST(Msccl, receive_writes_its_destination) {
  const Program program = with_peer({{"s"}, {"r", "i 2", "s 5", 3}});
  const Op& op = only(program.bodies.at(0), OpKind::recv);
  EXPECT_TRUE(op.src.empty());
  EXPECT_THAT(op.dst, ElementsAre(local(2, 5, 3)));
  EXPECT_EQ(op.recv_from, (ConnectionRef{constant(1), 0, 0, 0}));
}

TEST(Msccl, receive_copy_send_writes_its_destination) {
  const Op op = only(with_peer({{"rcs", "i 2", "o 5"}}).bodies.at(0), OpKind::recv_copy_send);
  EXPECT_TRUE(op.src.empty());
  EXPECT_THAT(op.dst, ElementsAre(local(1, 5)));
  EXPECT_EQ(op.send_to.peer, constant(1));
  EXPECT_EQ(op.recv_from.peer, constant(1));
}

TEST(Msccl, receive_reduce_send_reads_its_source) {
  const Op op = only(with_peer({{"rrs", "i 2", "o 5"}}).bodies.at(0), OpKind::recv_reduce_send);
  EXPECT_THAT(op.src, ElementsAre(local(0, 2)));
  EXPECT_TRUE(op.dst.empty());
}

TEST(Msccl, receive_reduce_copy_has_both_places) {
  const Op op =
      only(with_peer({{"s"}, {"rrc", "i 2", "o 5"}}).bodies.at(0), OpKind::recv_reduce_copy);
  EXPECT_THAT(op.src, ElementsAre(local(0, 2)));
  EXPECT_THAT(op.dst, ElementsAre(local(1, 5)));
}

TEST(Msccl, receive_reduce_copy_send_has_both_places) {
  const Op op =
      only(with_peer({{"rrcs", "i 2", "o 5"}}).bodies.at(0), OpKind::recv_reduce_copy_send);
  EXPECT_THAT(op.src, ElementsAre(local(0, 2)));
  EXPECT_THAT(op.dst, ElementsAre(local(1, 5)));
}

TEST(Msccl, copy_joins_its_block_afterwards) {
  const Program program = alone({{{"cpy", "i 1", "o 3", 2}}});
  EXPECT_THAT(kinds(program.bodies.at(0)),
              ElementsAre(OpKind::loop, OpKind::copy, OpKind::sync, OpKind::end_loop));
  EXPECT_THAT(program.bodies.at(0).ops[1].src, ElementsAre(local(0, 1, 2)));
  EXPECT_THAT(program.bodies.at(0).ops[1].dst, ElementsAre(local(1, 3, 2)));
}

TEST(Msccl, reduction_adds_to_what_its_destination_holds) {
  const Program program = alone({{{"re", "s 1", "i 3"}}});
  EXPECT_THAT(kinds(program.bodies.at(0)),
              ElementsAre(OpKind::loop, OpKind::reduce, OpKind::sync, OpKind::end_loop));
  EXPECT_THAT(program.bodies.at(0).ops[1].src, ElementsAre(local(0, 3), local(2, 1)));
  EXPECT_THAT(program.bodies.at(0).ops[1].dst, ElementsAre(local(0, 3)));
}

TEST(Msccl, reductions_into_one_chunk_become_one_operation) {
  const Program program = alone(
      {{{"re", "s 1", "i 3"}, {"re", "s 4", "i 3"}, {"re", "s 2", "i 3"}, {"re", "s 2", "i 4"}}});
  EXPECT_THAT(kinds(program.bodies.at(0)),
              ElementsAre(OpKind::loop, OpKind::reduce, OpKind::sync, OpKind::reduce, OpKind::sync,
                          OpKind::end_loop));
  EXPECT_THAT(program.bodies.at(0).ops[1].src,
              ElementsAre(local(0, 3), local(2, 1), local(2, 4), local(2, 2)));
}

TEST(Msccl, reductions_from_another_buffer_or_with_a_dependency_start_again) {
  const Program program =
      alone({{{"re", "s 1", "o 3"}, {"re", "i 1", "o 3"}, {"re", "i 2", "o 3", 1, 1, 0}},
             {{"cpy", "i 0", "o 0", 1, -1, -1, 1}}});
  EXPECT_THAT(
      kinds(program.bodies.at(0)),
      ElementsAre(OpKind::loop, OpKind::reduce, OpKind::sync, OpKind::reduce, OpKind::sync,
                  OpKind::dep_wait, OpKind::sync, OpKind::reduce, OpKind::sync, OpKind::end_loop));
}

TEST(Msccl, the_sixteenth_reduction_of_a_block_closes_its_chain) {
  std::vector<StepText> steps(18, StepText{"re", "s 0", "i 3"});
  const Program program = alone({steps});
  std::vector<std::size_t> sources;
  for (const Op& op : program.bodies.at(0).ops)
    if (op.kind == OpKind::reduce) sources.push_back(op.src.size() - 1);
  EXPECT_THAT(sources, ElementsAre(16U, 2U));
}

TEST(Msccl, a_step_waits_for_the_block_that_it_depends_on) {
  const Program program =
      alone({{{"cpy", "i 0", "s 0", 1, -1, -1, 1}}, {{"cpy", "s 0", "o 0", 1, 0, 0}}});
  EXPECT_THAT(kinds(program.bodies.at(0)), ElementsAre(OpKind::loop, OpKind::copy, OpKind::sync,
                                                       OpKind::dep_signal, OpKind::end_loop));
  EXPECT_THAT(kinds(program.bodies.at(1)),
              ElementsAre(OpKind::loop, OpKind::dep_wait, OpKind::sync, OpKind::copy, OpKind::sync,
                          OpKind::end_loop));
  const Op& wait = program.bodies.at(1).ops[1];
  EXPECT_THAT(wait.semaphores, ElementsAre(SemaphoreRef{own_rank(), 0}));
  EXPECT_EQ(wait.target, 1);
  EXPECT_EQ(wait.count, 1);
  EXPECT_THAT(program.bodies.at(0).ops[3].semaphores, ElementsAre(SemaphoreRef{own_rank(), 0}));
  EXPECT_EQ(program.semaphores.at(0).name, "progress of workgroup 0");
  EXPECT_TRUE(program.semaphores.at(0).local);
  EXPECT_TRUE(program.warnings.empty());
}

TEST(Msccl, nops_carry_further_dependencies_of_the_next_step) {
  const std::vector<StepText> announcing{{"cpy", "i 0", "s 0", 1, -1, -1, 1},
                                         {"cpy", "i 1", "s 1", 1, -1, -1, 1}};
  const Program program = alone({announcing,
                                 announcing,
                                 {{"nop", "i 0", "i 0", 0, 0, 1},
                                  {"nop", "i 0", "i 0", 0, 1, 0},
                                  {"re", "s 0", "o 0", 1, 1, 1}}});
  const Body& body = program.bodies.at(2);
  EXPECT_THAT(kinds(body),
              ElementsAre(OpKind::loop, OpKind::dep_wait, OpKind::dep_wait, OpKind::dep_wait,
                          OpKind::sync, OpKind::reduce, OpKind::sync, OpKind::end_loop));
  EXPECT_EQ(body.ops[1].target, 2);
  EXPECT_EQ(body.ops[2].target, 1);
  EXPECT_EQ(body.ops[3].target, 2);
  EXPECT_EQ(body.ops[1].where, "/algo/gpu[0]/tb[2]/step[0]");
}

TEST(Msccl, step_numbers_count_nops_and_merged_reductions) {
  // Block 0 announces steps 1 (nop and reduction), 3 (two merged reductions) and 4.
  const Program program = alone({{{"nop", "i 0", "i 0", 0, 1, 0},
                                  {"re", "s 0", "i 0", 1, 1, 0, 1},
                                  {"re", "s 1", "i 1"},
                                  {"re", "s 2", "i 1", 1, -1, -1, 1},
                                  {"cpy", "i 2", "s 2", 1, -1, -1, 1}},
                                 {{"cpy", "i 0", "s 0", 1, -1, -1, 1}},
                                 {{"cpy", "i 0", "o 0", 1, 0, 1},
                                  {"cpy", "i 1", "o 1", 1, 0, 3},
                                  {"cpy", "s 2", "o 2", 1, 0, 4}}});
  std::vector<std::int64_t> targets;
  for (const Op& op : program.bodies.at(2).ops)
    if (op.kind == OpKind::dep_wait) targets.push_back(op.target);
  EXPECT_THAT(targets, ElementsAre(1, 2, 3));
  EXPECT_TRUE(program.warnings.empty()) << program.warnings.render();
}

TEST(Msccl, a_wait_for_a_silent_step_ends_at_the_next_that_announces_itself) {
  const Program program = alone({{{"cpy", "i 0", "s 0"}, {"cpy", "i 1", "s 1", 1, -1, -1, 1}},
                                 {{"cpy", "s 0", "o 0", 1, 0, 0}}});
  EXPECT_EQ(only(program.bodies.at(1), OpKind::dep_wait).target, 1);
  EXPECT_THAT(program.warnings.render(), HasSubstr("the wait ends at step 1"));
}

TEST(Msccl, a_wait_that_nothing_announces_stays_a_deadlock) {
  const Program program = alone({{{"cpy", "i 1", "s 1", 1, -1, -1, 1}, {"cpy", "i 0", "s 0"}},
                                 {{"cpy", "s 0", "o 0", 1, 0, 1}}});
  const Op& wait = only(program.bodies.at(1), OpKind::dep_wait);
  EXPECT_EQ(wait.target, 2);  // the first signal of the next piece
  EXPECT_EQ(wait.count, 1);
  EXPECT_THAT(program.warnings.render(), HasSubstr("cannot end in the last piece"));
  EXPECT_THAT(program.warnings.render(), HasSubstr("test.xml:"));
}

TEST(Msccl, a_nop_cannot_announce_itself) {
  const Program program =
      alone({{{"nop", "i 0", "i 0", 0, -1, -1, 1}}, {{"cpy", "s 0", "o 0", 1, 0, 0}}});
  EXPECT_TRUE(program.bodies.at(0).ops.empty());
  EXPECT_EQ(only(program.bodies.at(1), OpKind::dep_wait).count, 0);
  EXPECT_FALSE(program.warnings.empty());
}

TEST(Msccl, needless_announcements_are_warned_about_once) {
  const Program program =
      alone({{{"cpy", "i 0", "o 0", 1, -1, -1, 1}, {"cpy", "i 1", "o 1", 1, -1, -1, 1}}});
  ASSERT_EQ(program.warnings.items().size(), 1U);
  EXPECT_THAT(program.warnings.render(),
              HasSubstr("no thread block waits for this step (and 1 more like it)"));
}

TEST(Msccl, a_dependency_with_nothing_after_it_is_warned_about) {
  const Program program =
      alone({{{"cpy", "i 0", "o 0", 1, -1, -1, 1}}, {{"nop", "i 0", "i 0", 0, 0, 0}}});
  EXPECT_THAT(program.warnings.render(), HasSubstr("never waited for"));
}

TEST(Msccl, reductions_of_different_counts_stay_apart_with_a_warning) {
  const Program program = alone({{{"re", "s 0", "i 0", 1}, {"re", "s 4", "i 0", 2}}});
  EXPECT_EQ(std::count_if(program.bodies.at(0).ops.begin(), program.bodies.at(0).ops.end(),
                          [](const Op& op) { return op.kind == OpKind::reduce; }),
            2);
  EXPECT_THAT(program.warnings.render(), HasSubstr("different cnt"));
}

TEST(Msccl, connections_are_numbered_by_thread_block_at_both_ends) {
  const std::string first = gpu(0, tb(0, 1, -1, {{"s"}}) + tb(1, 1, 1, {{"s"}, {"r"}}, 1));
  const std::string second = gpu(1, tb(0, 0, 0, {{"s"}, {"r"}}, 1) + tb(1, -1, 0, {{"r"}}));
  const Program program = read_program(algo({first, second}));
  EXPECT_EQ(program.outbound, 2);
  EXPECT_EQ(program.inbound, 2);
  EXPECT_EQ(only(program.bodies.at(0), OpKind::send).send_to,
            (ConnectionRef{constant(1), 1, 0, 0}));
  EXPECT_EQ(only(program.bodies.at(1), OpKind::send).send_to,
            (ConnectionRef{constant(1), 0, 1, 1}));
  EXPECT_EQ(only(program.bodies.at(1), OpKind::recv).recv_from,
            (ConnectionRef{constant(1), 0, 0, 1}));
  EXPECT_EQ(only(program.bodies.at(2), OpKind::recv).recv_from,
            (ConnectionRef{constant(0), 0, 1, 1}));
}

TEST(Msccl, in_place_all_reduce_has_one_memory) {
  const Program program =
      read_program(replaced(algo({gpu(0, "")}), "inplace=\"0\"", "inplace=\"1\""));
  EXPECT_EQ(program.buffers.at(1).alias, 0);
  EXPECT_EQ(program.buffers.at(1).alias_chunk, constant(0));
  EXPECT_EQ(program.buffers.at(0).alias, -1);
}

TEST(Msccl, in_place_all_gather_finds_its_input_in_the_output) {
  std::string xml = algo({gpu(0, ""), gpu(1, "")}, "", "LL", "allgather");
  for (int i = 0; i < 2; ++i) xml = replaced(xml, "i_chunks=\"8\"", "i_chunks=\"0\"");
  const Program program = read_program(replaced(xml, "inplace=\"0\"", "inplace=\"1\""));
  EXPECT_THAT(program.buffers.at(0).chunks, ElementsAre(4));
  EXPECT_THAT(program.buffers.at(1).chunks, ElementsAre(8));
  EXPECT_EQ(program.buffers.at(0).alias, 1);
  EXPECT_EQ(program.buffers.at(0).alias_chunk(Indices{.rank = 1}), 4);
}

TEST(Msccl, in_place_reduce_scatter_leaves_its_output_in_the_input) {
  for (const char* spelling : {"reducescatter", "reduce_scatter"}) {
    std::string xml = algo({gpu(0, ""), gpu(1, "")}, "", "LL", spelling);
    for (int i = 0; i < 2; ++i) xml = replaced(xml, "o_chunks=\"8\"", "o_chunks=\"4\"");
    const Program program = read_program(replaced(xml, "inplace=\"0\"", "inplace=\"1\""));
    EXPECT_EQ(program.collective, Collective::reduce_scatter) << spelling;
    EXPECT_EQ(program.buffers.at(1).alias, 0);
    EXPECT_EQ(program.buffers.at(1).alias_chunk(Indices{.rank = 1}), 4);
  }
}

TEST(Msccl, nthreads_of_microsoft_msccl_are_the_threads_of_a_block) {
  const std::vector<std::string> gpus{gpu(0, tb(0, -1, -1, {{"cpy"}}))};
  EXPECT_EQ(read_program(algo(gpus, " nthreads=\"384\"")).kernels.at(0).threads, 384);
  EXPECT_EQ(read_program(algo(gpus)).kernels.at(0).threads, 512);
}

TEST(Msccl, gpus_and_thread_blocks_may_stand_in_any_order) {
  const Program program = read_program(algo(
      {gpu(1, tb(1, -1, 0, {{"r"}}) + tb(0, -1, -1, {{"cpy"}})), gpu(0, tb(0, 1, -1, {{"s"}}))}));
  EXPECT_EQ(only(program.bodies.at(0), OpKind::send).where, "/algo/gpu[1]/tb[0]/step[0]");
  EXPECT_EQ(only(program.bodies.at(2), OpKind::recv).where, "/algo/gpu[0]/tb[0]/step[0]");
  EXPECT_EQ(program.workgroups(0), 1);
  EXPECT_EQ(program.workgroups(1), 2);
}

TEST(Msccl, real_files_are_read_without_warnings) {
  if (!std::filesystem::exists(msccl::shared_folder()))
    GTEST_SKIP() << "NOT TESTED: no " << msccl::shared_folder();
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(msccl::shared_folder())) {
    const std::string path = entry.path().string();
    const Program program = read_msccl(read_file(path), path);
    EXPECT_TRUE(program.warnings.empty()) << program.warnings.render();
    EXPECT_GE(program.ranks, 8) << path;
    EXPECT_NO_THROW(
        bind(program, nullptr, {.size = program.next_legal_size(MiB(1), DataType::float32)}))
        << path;
    ++files;
  }
  EXPECT_EQ(files, 22);
}

TEST(Msccl, all_pairs_file_sums_seven_sources_at_once) {
  const std::string path = msccl::shared_folder() + "/allreduce_allpairs_8g_LL.xml";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "NOT TESTED: no " << path;
  const Program program = read_msccl(read_file(path), path);
  int reductions = 0;
  for (const Body& body : program.bodies) {
    for (const Op& op : body.ops) {
      if (op.kind != OpKind::reduce) continue;
      ++reductions;
      EXPECT_EQ(op.src.size(), 8U);
    }
  }
  EXPECT_EQ(reductions, 64);  // 448 `re` steps
}

}  // namespace
}  // namespace hemiola::program
