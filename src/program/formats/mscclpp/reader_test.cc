#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <filesystem>

#include "core/text.h"
#include "program/testing/cursor.h"

namespace hemiola::program {
namespace {

using namespace testing_support;
using ::testing::HasSubstr;

/// A plan of two GPUs; each has a thread block with the given operations and declarations.
std::string plan(const std::string& ops,
                 const std::string& head = R"("protocol": "LL", "inplace": false)",
                 const std::string& second = "") {
  const auto gpu = [](int id, const std::string& block_ops) {
    const std::string peer = std::to_string(1 - id);
    return R"({"id": )" + std::to_string(id) +
           R"(, "input_chunks": 4, "output_chunks": 4, "scratch_chunks": 4,
  "channels": [{"channel_type": "memory", "connected_to": [)" +
           peer + "," + peer + R"(]},
               {"channel_type": "port", "connected_to": [)" +
           peer + R"(]},
               {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 4, "ranks": [0, 1]}]}],
  "remote_buffers": [{"rank": )" +
           peer + R"(, "type": "s", "access_channel_types": ["memory", "port"]},
                     {"rank": )" +
           peer + R"(, "type": "o", "access_channel_types": ["memory"]}],
  "semaphores": [{"init_value": 0}, {"init_value": 2}],
  "threadblocks": [{"id": 0, "ops": [)" +
           block_ops + R"(],
    "channels": [{"channel_type": "memory", "channel_ids": [1, 0]}, {"channel_type": "port", "channel_ids": [0]},
                 {"channel_type": "switch", "channel_ids": [0]}],
    "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [1, 0]},
                           {"access_channel_type": "port", "remote_buffer_ids": [0]}]}]})";
  };
  return R"({"name": "test", "collective": "allreduce", )" + head + R"(, "gpus": [)" + gpu(0, ops) +
         "," + gpu(1, second) + "]}";
}

Lines lines_of(const std::string& ops,
               const std::string& head = R"("protocol": "LL", "inplace": false)") {
  return expand(bind(read_mscclpp(plan(ops, head), "plan.json"), nullptr, {.size = {4 * 64}}));
}

TEST(Mscclpp, local_operations_are_read) {
  EXPECT_EQ(lines_of(R"({"name": "nop"},
    {"name": "copy", "src_buff": [{"type": "i", "index": 1, "size": 2}], "dst_buff": [{"type": "o", "index": 0, "size": 2}]},
    {"name": "re", "src_buff": [{"type": "i", "index": 1, "size": 1}, {"type": "s", "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}], "reduce_op": "max"},
    {"name": "barrier", "barrier_id": 0, "num_threadblocks": 1},
    {"name": "sem_release", "semaphore_ids": [1]}, {"name": "sem_acquire", "semaphore_ids": [1]},
    {"name": "cpkt", "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"type": "s", "index": 1, "size": 1}]},
    {"name": "upkt", "src_buff": [{"type": "s", "index": 1, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}]},
    {"name": "repkt", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"type": "s", "index": 1, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}], "reduce_op": "sum"},
    {"name": "recpkt", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"type": "s", "index": 1, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}, {"type": "s", "index": 2, "size": 1}], "reduce_op": "sum"})"),
            (Lines{"sync", "move 128 0.input@64 -> 0.output@0",
                   "move 64 max 0.input@64 0.scratch@0 -> 0.output@0",
                   "barrier 0 of 1 release acquire device", "signal 0:semaphore 1=1 release device",
                   "wait 0:semaphore 1=1 acquire device", "move 64 0.input@0 -> 0.scratch@128/LL",
                   "move 64 0.scratch@128/LL -> 0.output@0",
                   "move 64 sum 0.input@0 0.scratch@128/LL -> 0.output@0",
                   "move 64 sum 0.input@0 0.scratch@128/LL -> 0.output@0 0.scratch@256/LL"}));
}

TEST(Mscclpp, memory_channel_operations_are_read_through_the_thread_blocks_own_ids) {
  // Channel 0 of the thread block is the GPU's channel 1; its buffer 0 is the peer's output.
  EXPECT_EQ(
      lines_of(R"({"name": "signal", "channel_type": "memory", "channel_ids": [0, 1]},
    {"name": "rlxsignal", "channel_type": "memory", "channel_ids": [1]},
    {"name": "wait", "channel_type": "memory", "channel_ids": [0]}, {"name": "rlxwait", "channel_type": "memory", "channel_ids": [0]},
    {"name": "put", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 3, "size": 1}]},
    {"name": "get", "channel_type": "memory", "src_buff": [{"buffer_id": 0, "index": 3, "size": 1}], "dst_buff": [{"type": "o", "index": 1, "size": 1}]},
    {"name": "res", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"type": "s", "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}]},
    {"name": "rre", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}]},
    {"name": "rres", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"buffer_id": 0, "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}, {"buffer_id": 0, "index": 1, "size": 1}]},
    {"name": "ppkt", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 1, "index": 1, "size": 1}]},
    {"name": "rppkt", "channel_type": "memory", "src_buff": [{"type": "s", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 1, "index": 1, "size": 1}]},
    {"name": "respkt", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"type": "s", "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}, {"buffer_id": 1, "index": 1, "size": 1}]},
    {"name": "recspkt", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}, {"type": "s", "index": 0, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}, {"type": "s", "index": 3, "size": 1}, {"buffer_id": 1, "index": 1, "size": 1}]})"),
      (Lines{
          "signal 1:memory channel 1=1 1:memory channel 0=1 release", "signal 1:memory channel 0=1",
          "wait 0:memory channel 1=1 acquire", "wait 0:memory channel 1=2",
          "move 64 0.input@0 -> 1.output@192", "move 64 1.output@192 -> 0.output@64",
          "move 64 sum 0.input@0 0.scratch@0 -> 0.output@0 1.output@0",
          "move 64 sum 0.input@0 1.output@0 -> 0.output@0",
          "move 64 sum 0.input@0 1.output@0 -> 0.output@0 1.output@64",
          "move 64 0.input@0 -> 1.scratch@128/LL", "move 64 0.scratch@0/LL -> 1.scratch@128/LL",
          "move 64 sum 0.input@0 0.scratch@0/LL -> 0.output@0 1.scratch@128/LL",
          "move 64 sum 0.input@0 0.scratch@0/LL -> 0.output@0 0.scratch@384/LL 1.scratch@128/LL"}));
}

TEST(Mscclpp, port_and_switch_channel_operations_are_read) {
  EXPECT_EQ(
      lines_of(
          R"({"name": "pws", "channel_type": "port", "channel_ids": [0], "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 3, "size": 1}]},
    {"name": "pwsf", "channel_type": "port", "channel_ids": [0], "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 3, "size": 1}]},
    {"name": "signal", "channel_type": "port", "channel_ids": [0]}, {"name": "wait", "channel_type": "port", "channel_ids": [0]},
    {"name": "flush", "channel_type": "port", "channel_ids": [0]},
    {"name": "ppkt", "channel_type": "port", "channel_ids": [0], "src_buff": [{"type": "s", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 1, "size": 1}]},
    {"name": "glres", "channel_type": "switch", "src_buff": [{"switch_channel_id": 0, "index": 1, "size": 1}], "dst_buff": [{"switch_channel_id": 0, "index": 1, "size": 1}]},
    {"name": "gstore", "channel_type": "switch", "src_buff": [{"type": "o", "index": 1, "size": 1}], "dst_buff": [{"switch_channel_id": 0, "index": 1, "size": 1}]},
    {"name": "glre", "channel_type": "switch", "src_buff": [{"switch_channel_id": 0, "index": 1, "size": 1}], "dst_buff": [{"type": "o", "index": 1, "size": 1}]})"),
      (Lines{"post 64 0.input@0 -> 1.scratch@192 1:port channel 0=1 release",
             "post 64 0.input@0 -> 1.scratch@192 1:port channel 0=1 release", "flush",
             "post 1:port channel 0=1 release", "wait 0:port channel 0=1 acquire", "flush",
             "post 64 0.scratch@0/LL -> 1.scratch@128/LL release",
             "move 64 sum g0.input@64/multicast -> g0.input@64/multicast",
             "move 64 0.output@64 -> g0.input@64/multicast",
             "move 64 sum g0.input@64/multicast -> 0.output@64"}));
}

TEST(Mscclpp, pipelines_cut_regions_into_pieces) {
  EXPECT_EQ(
      lines_of(R"({"name": "pipeline", "iter_context": {"unit_size": 48, "num_chunks": 1}, "ops": [
    {"name": "copy", "src_buff": [{"type": "i", "index": 1, "size": 1}], "dst_buff": [{"type": "o", "index": 0, "size": 1}]}, {"name": "nop"}]})"),
      (Lines{"move 48 0.input@64 -> 0.output@0", "sync", "move 16 0.input@112 -> 0.output@48",
             "sync"}));
}

TEST(Mscclpp, reused_scratch_holds_64_mib_for_all_its_chunks) {
  const Program program = read_mscclpp(
      plan(
          "",
          R"("protocol": "Simple", "inplace": false, "reuse_resources": true, "use_double_scratch_buffer": true)"),
      "plan.json");
  EXPECT_EQ(program.buffers[2].chunk_limit, Bytes{(64 << 20) / 2 / 4});
}

TEST(Mscclpp, in_place_plans_share_memory_as_nccl_does) {
  const auto places = [](const std::string& collective, int in, int out) {
    const auto gpu = [&](int id) {
      return "{\"id\": " + std::to_string(id) + ", \"input_chunks\": " + std::to_string(in) +
             ", \"output_chunks\": " + std::to_string(out) +
             ", \"scratch_chunks\": 0, \"threadblocks\": []}";
    };
    const Program program =
        read_mscclpp("{\"name\": \"x\", \"collective\": \"" + collective +
                         "\", \"protocol\": \"Simple\", \"inplace\": true, \"gpus\": [" + gpu(0) +
                         "," + gpu(1) + "]}",
                     "x");
    const Bound bound =
        bind(program, nullptr, {.size = program.next_legal_size({1}, DataType::float32)});
    const auto input = bound.resolve(0, 0, 1), output = bound.resolve(1, 0, 1);
    return std::to_string(input.buffer) + "@" + std::to_string(input.offset) + " " +
           std::to_string(output.buffer) + "@" + std::to_string(output.offset) + " size " +
           std::to_string(bound.size().count);
  };
  EXPECT_EQ(places("allreduce", 2, 2), "0@0 0@0 size 32");
  EXPECT_EQ(places("allgather", 2, 4), "1@32 1@0 size 64");
  EXPECT_EQ(places("reducescatter", 4, 2), "0@0 0@32 size 64");
}

TEST(Mscclpp, an_unpaired_channel_signals_a_semaphore_that_nobody_waits_for) {
  const std::string text =
      R"({"name": "x", "collective": "allreduce", "protocol": "Simple", "inplace": true, "gpus": [
    {"id": 0, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 0, "channels": [{"channel_type": "memory", "connected_to": [1, 1]}],
     "threadblocks": [{"id": 0, "channels": [{"channel_type": "memory", "channel_ids": [0, 1]}], "ops": [{"name": "signal", "channel_type": "memory", "channel_ids": [0, 1]}]}]},
    {"id": 1, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 0, "channels": [{"channel_type": "memory", "connected_to": [0]}], "threadblocks": []}]})";
  const Program program = read_mscclpp(text, "x");
  EXPECT_EQ(program.semaphores.size(), 2U);
  EXPECT_EQ(expand(bind(program, nullptr, {.size = {16}})),
            Lines{"signal 1:memory channel 0=1 1:memory channel 1=1 release"});
}

// --- round trips ---------------------------------------------------------------------------------

std::string difference(const Program& a, const Program& b) {
  if (a.name != b.name || a.collective != b.collective || a.protocol != b.protocol ||
      a.in_place != b.in_place)
    return "head";
  if (a.ranks != b.ranks || a.chunks_per_size != b.chunks_per_size || a.alignment != b.alignment ||
      a.barriers != b.barriers)
    return "geometry";
  if (a.min_size != b.min_size || a.max_size != b.max_size || a.root != b.root) return "range";
  if (a.groups != b.groups || !(a.channels == b.channels) || a.code_of != b.code_of)
    return "groups, channels or codes";
  if (a.buffers.size() != b.buffers.size() || a.semaphores.size() != b.semaphores.size())
    return "numbers of buffers or semaphores";
  for (std::size_t i = 0; i < a.buffers.size(); ++i) {
    const Buffer &x = a.buffers[i], &y = b.buffers[i];
    if (x.name != y.name || x.kind != y.kind || x.chunks != y.chunks || x.packets != y.packets ||
        x.rotation != y.rotation || x.chunk_limit != y.chunk_limit || x.alias != y.alias ||
        x.alias_chunk != y.alias_chunk)
      return "buffer " + x.name;
  }
  for (std::size_t i = 0; i < a.semaphores.size(); ++i) {
    const Semaphore &x = a.semaphores[i], &y = b.semaphores[i];
    if (x.name != y.name || x.initial != y.initial || x.local != y.local || x.shared != y.shared)
      return "semaphore " + x.name;
  }
  if (a.kernels.size() != b.kernels.size() || a.bodies.size() != b.bodies.size())
    return "numbers of kernels or bodies";
  for (std::size_t i = 0; i < a.kernels.size(); ++i)
    if (a.kernels[i].threads != b.kernels[i].threads ||
        a.kernels[i].bodies != b.kernels[i].bodies || a.kernels[i].name != b.kernels[i].name)
      return "kernel";
  for (std::size_t i = 0; i < a.bodies.size(); ++i)
    if (a.bodies[i].ops != b.bodies[i].ops) return "body " + std::to_string(i);
  return "";
}

TEST(MscclppWriter, writes_every_real_plan_so_that_it_reads_back_the_same) {
  const std::filesystem::path folder = HEMIOLA_SOURCE_DIR "/../shared/inputs/mscclpp_json";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "THE REAL PLANS ARE ABSENT: " << folder;
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Program first = load(entry.path().string());
    EXPECT_EQ(difference(first, read_mscclpp(write_mscclpp(first), "again")), "") << entry.path();
    EXPECT_TRUE(first.warnings.empty()) << first.warnings.render();
    ++files;
  }
  EXPECT_GE(files, 12);
}

TEST(MscclppWriter, real_plans_walk_at_three_sizes_inside_their_buffers) {
  const std::filesystem::path folder = HEMIOLA_SOURCE_DIR "/../shared/inputs/mscclpp_json";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "THE REAL PLANS ARE ABSENT: " << folder;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const Program plan = load(entry.path().string());
    for (const Bytes size : {KiB(1), MiB(1), MiB(16)}) {
      const Bound program =
          bind(plan, nullptr, {.size = plan.next_legal_size(size, DataType::float32)});
      for (int rank = 0; rank < program.ranks(); ++rank) {
        for (const std::int32_t body : program.kernels()[static_cast<std::size_t>(rank)].bodies) {
          Cursor cursor(program, rank, body);
          Primitive p;
          for (int repetition = 0; repetition < 2; ++repetition, cursor.repeat()) {
            while (cursor.next(p)) {
              for (const auto* side : {&p.src, &p.dst}) {
                for (const Span& s : *side) {
                  ASSERT_GE(s.offset, 0);
                  ASSERT_LE(s.offset + memory_size(p.bytes, s.access),
                            program.memory_bytes(s.buffer, std::max(s.rank, 0)))
                      << entry.path();
                }
              }
            }
          }
        }
      }
    }
  }
}

TEST(MscclppWriter, numbers_channels_for_programs_that_were_not_plans) {
  Program program = program_of(
      {{.kind = OpKind::put,
        .channel = Channel::memory,
        .src = {local(0, 0)},
        .dst = {remote(1, 1, 0)}},
       {.kind = OpKind::signal, .channel = Channel::memory, .semaphores = {{constant(1), 1}}},
       {.kind = OpKind::wait, .channel = Channel::memory, .semaphores = {{own_rank(), 0}}}});
  program.bodies[1].ops = {
      {.kind = OpKind::wait, .channel = Channel::memory, .semaphores = {{own_rank(), 1}}},
      {.kind = OpKind::signal, .channel = Channel::memory, .semaphores = {{constant(0), 0}}}};
  program.buffers.resize(3);
  program.collective = Collective::all_reduce;
  const Program back = read_mscclpp(write_mscclpp(program), "back");
  const Bound bound_back = bind(back, nullptr, {.size = {512}});
  EXPECT_EQ(expand(bound_back, 0, 0),
            (Lines{"move 64 0.input@0 -> 1.output@0", "signal 1:memory channel 0=1 release",
                   "wait 0:memory channel 0=1 acquire"}));
  EXPECT_EQ(expand(bound_back, 1, 1),
            (Lines{"wait 1:memory channel 0=1 acquire", "signal 0:memory channel 0=1 release"}));
}

TEST(MscclppWriter, unrolls_counted_loops) {
  Operand from = local(0, 0);
  from.chunk = {.loop = {2, 0}};
  Program program = program_of({{.kind = OpKind::loop, .count = 3},
                                {.kind = OpKind::copy, .src = {from}, .dst = {local(1, 0)}},
                                {.kind = OpKind::end_loop}});
  program.collective = Collective::all_reduce;
  EXPECT_EQ(read_mscclpp(write_mscclpp(program), "back").bodies[0].ops.size(), 3U);
}

TEST(MscclppWriter, names_what_the_format_cannot_say) {
  const auto refused = [](Program program) -> std::string {
    try {
      write_mscclpp(program);
    } catch (const Failure& failure) {
      return failure.what();
    }
    return "written";
  };
  EXPECT_THAT(refused(program_of(
                  {{.kind = OpKind::send, .src = {local(0, 0)}, .send_to = {constant(1), 0, 0}}})),
              HasSubstr("send of rank 0: the format has no such operation"));
  EXPECT_THAT(
      refused(program_of({{.kind = OpKind::copy, .src = {local(0, 0)}, .dst = {remote(1, 1, 0)}}})),
      HasSubstr("must be local"));
  Program ll128 = program_of({});
  ll128.protocol = Protocol::ll128;
  EXPECT_THAT(refused(ll128), HasSubstr("no LL128"));
}

}  // namespace
}  // namespace hemiola::program
