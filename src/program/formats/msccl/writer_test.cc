// Writing MSCCL XML: round trips, and what the format cannot say.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "core/text.h"
#include "program/export.h"
#include "program/program.h"
#include "program/testing/msccl_text.h"

namespace hemiola::program {
namespace {

using ::testing::HasSubstr;

void expect_same_buffers(const Program& a, const Program& b) {
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (std::size_t i = 0; i < a.buffers.size(); ++i) {
    EXPECT_EQ(a.buffers[i].name, b.buffers[i].name);
    EXPECT_EQ(a.buffers[i].kind, b.buffers[i].kind);
    EXPECT_EQ(a.buffers[i].chunks, b.buffers[i].chunks);
    EXPECT_EQ(a.buffers[i].bytes, b.buffers[i].bytes);
    EXPECT_EQ(a.buffers[i].alias, b.buffers[i].alias);
    EXPECT_EQ(a.buffers[i].alias_chunk, b.buffers[i].alias_chunk);
  }
}

void expect_same_code(const Program& a, const Program& b) {
  ASSERT_EQ(a.bodies.size(), b.bodies.size());
  for (std::size_t i = 0; i < a.bodies.size(); ++i) {
    ASSERT_EQ(a.bodies[i].ops.size(), b.bodies[i].ops.size()) << "body " << i;
    for (std::size_t k = 0; k < a.bodies[i].ops.size(); ++k) {
      ASSERT_TRUE(a.bodies[i].ops[k] == b.bodies[i].ops[k])
          << "body " << i << " op " << k << " at " << a.bodies[i].ops[k].where;
    }
  }
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (std::size_t i = 0; i < a.kernels.size(); ++i) {
    EXPECT_EQ(a.kernels[i].threads, b.kernels[i].threads);
    EXPECT_EQ(a.kernels[i].bodies, b.kernels[i].bodies);
  }
  EXPECT_EQ(a.code_of, b.code_of);
  ASSERT_EQ(a.semaphores.size(), b.semaphores.size());
  for (std::size_t i = 0; i < a.semaphores.size(); ++i) {
    EXPECT_EQ(a.semaphores[i].name, b.semaphores[i].name);
    EXPECT_EQ(a.semaphores[i].local, b.semaphores[i].local);
  }
}

void expect_same(const Program& a, const Program& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.collective, b.collective);
  EXPECT_EQ(a.protocol, b.protocol);
  EXPECT_EQ(a.in_place, b.in_place);
  EXPECT_EQ(a.ranks, b.ranks);
  EXPECT_EQ(a.inbound, b.inbound);
  EXPECT_EQ(a.outbound, b.outbound);
  EXPECT_EQ(a.chunks_per_size, b.chunks_per_size);
  EXPECT_EQ(a.min_size, b.min_size);
  EXPECT_EQ(a.max_size, b.max_size);
  expect_same_buffers(a, b);
  expect_same_code(a, b);
}

Program round_trip(const Program& program) {
  return read_msccl(write_msccl(program), "written.xml");
}

std::string writer_refusal(const Program& program) {
  try {
    write_msccl(program);
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "";
}

TEST(MscclWriter, real_files_survive_a_round_trip) {
  if (!std::filesystem::exists(msccl::shared_folder()))
    GTEST_SKIP() << "NOT TESTED: no " << msccl::shared_folder();
  for (const auto& entry : std::filesystem::directory_iterator(msccl::shared_folder())) {
    SCOPED_TRACE(entry.path().string());
    const Program program = read_msccl(read_file(entry.path().string()), entry.path().string());
    expect_same(program, round_trip(program));
  }
}

// Two gpus exchange through every kind of step; gpu 0 has chains of dependencies and of reductions.
const char* const kEverything =
    R"(<algo name="a &amp; b" proto="LL" nchannels="2" nchunksperloop="8" ngpus="2"
      coll="custom" inplace="0" minBytes="16" maxBytes="64">
  <gpu id="0" i_chunks="8" o_chunks="8" s_chunks="4">
    <tb id="0" send="1" recv="1" chan="1">
      <step s="0" type="s" srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="2" depid="-1" deps="-1" hasdep="1"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="s" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="2" type="rcs" srcbuf="i" srcoff="0" dstbuf="s" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="3" type="rrs" srcbuf="i" srcoff="2" dstbuf="i" dstoff="2" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="4" type="rrc" srcbuf="i" srcoff="3" dstbuf="o" dstoff="3" cnt="1" depid="1" deps="3" hasdep="0"/>
      <step s="5" type="rrcs" srcbuf="i" srcoff="4" dstbuf="o" dstoff="4" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="1" send="-1" recv="-1" chan="0">
      <step s="0" type="nop" srcbuf="i" srcoff="-1" dstbuf="i" dstoff="-1" cnt="0" depid="0" deps="0" hasdep="0"/>
      <step s="1" type="re" srcbuf="s" srcoff="0" dstbuf="i" dstoff="5" cnt="1" depid="0" deps="1" hasdep="0"/>
      <step s="2" type="re" srcbuf="s" srcoff="1" dstbuf="i" dstoff="5" cnt="1" depid="-1" deps="-1" hasdep="0"/>
      <step s="3" type="re" srcbuf="s" srcoff="2" dstbuf="i" dstoff="5" cnt="1" depid="-1" deps="-1" hasdep="1"/>
      <step s="4" type="cpy" srcbuf="i" srcoff="5" dstbuf="o" dstoff="5" cnt="1" depid="-1" deps="-1" hasdep="0"/>
    </tb>
    <tb id="2" send="-1" recv="-1" chan="0"></tb>
  </gpu>
  <gpu id="1" i_chunks="8" o_chunks="8" s_chunks="2">
    <tb id="0" send="0" recv="0" chan="1">
      <step s="0" type="s" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="5" depid="-1" deps="-1" hasdep="0"/>
      <step s="1" type="r" srcbuf="i" srcoff="0" dstbuf="o" dstoff="0" cnt="5" depid="-1" deps="-1" hasdep="0"/>
    </tb>
  </gpu>
</algo>
)";

TEST(MscclWriter, every_step_type_survives_a_round_trip) {
  const Program program = read_msccl(kEverything, "everything.xml");
  EXPECT_TRUE(program.warnings.empty()) << program.warnings.render();
  expect_same(program, round_trip(program));
}

TEST(MscclWriter, writes_steps_as_they_were) {
  const std::string text = write_msccl(read_msccl(kEverything, "everything.xml"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "<algo name=\"a &amp; b\" proto=\"LL\" nchannels=\"2\" nchunksperloop=\"8\" ngpus=\"2\" "
          "coll=\"custom\" inplace=\"0\" outofplace=\"1\" minBytes=\"16\" maxBytes=\"64\">"));
  EXPECT_THAT(
      text,
      HasSubstr(
          "<step s=\"3\" type=\"re\" srcbuf=\"s\" srcoff=\"2\" dstbuf=\"i\" dstoff=\"5\" cnt=\"1\" "
          "depid=\"-1\" deps=\"-1\" hasdep=\"1\" />"));
  EXPECT_THAT(text, HasSubstr("<step s=\"4\" type=\"rrc\" srcbuf=\"i\" srcoff=\"3\" dstbuf=\"o\" "
                              "dstoff=\"3\" cnt=\"1\" "
                              "depid=\"1\" deps=\"3\" hasdep=\"0\" />"));
}

TEST(MscclWriter, a_wait_that_cannot_end_survives_a_round_trip) {
  std::string text = kEverything;
  text.replace(text.find("hasdep=\"1\"/>\n      <step s=\"4\" type=\"cpy\""), 10, "hasdep=\"0\"");
  const Program program = read_msccl(text, "silent.xml");
  EXPECT_FALSE(program.warnings.empty());
  expect_same(program, round_trip(program));
}

/// A reduce-scatter of two gpus in place, with a block of `steps` copies.
std::string scatter_text(int steps) {
  std::string xml = msccl::algo(
      {msccl::gpu(0, msccl::tb(0, -1, -1,
                               std::vector<msccl::StepText>(static_cast<std::size_t>(steps),
                                                            {"cpy", "i 0", "s 0"}))),
       msccl::gpu(1, "")},
      " nthreads=\"256\"", "LL", "reduce_scatter");
  for (int i = 0; i < 2; ++i) xml = msccl::replaced(xml, "o_chunks=\"8\"", "o_chunks=\"4\"");
  return xml;
}

TEST(MscclWriter, writes_the_dialect_that_is_asked_for) {
  const Program program = read_msccl(scatter_text(65), "rs.xml");
  const std::string microsoft = write_msccl(program, MscclDialect::microsoft);
  EXPECT_THAT(microsoft, HasSubstr("coll=\"reduce_scatter\""));
  EXPECT_THAT(microsoft, HasSubstr("nthreads=\"256\""));
  EXPECT_THAT(microsoft, ::testing::Not(HasSubstr("outofplace")));
  expect_same(program, read_msccl(microsoft, "rs.xml"));
  const Program shorter = read_msccl(scatter_text(64), "rs.xml");
  const std::string rccl = write_msccl(shorter, MscclDialect::rccl);
  EXPECT_THAT(rccl, HasSubstr("coll=\"reducescatter\""));
  EXPECT_THAT(rccl, HasSubstr("outofplace=\"1\""));  // rccl refuses a file without it
  EXPECT_EQ(rccl, write_msccl(shorter));
  expect_same(shorter, read_msccl(rccl, "rs.xml"));
}

TEST(MscclWriter, refuses_what_the_dialect_that_is_asked_for_lacks) {
  const auto refusal = [](const std::string& xml, MscclDialect dialect) -> std::string {
    try {
      return write_msccl(read_msccl(xml, "file.xml"), dialect);
    } catch (const Failure& failure) {
      return failure.diagnostics().render();
    }
  };
  EXPECT_THAT(refusal(kEverything, MscclDialect::rccl), HasSubstr("rccl has no collective"));
  EXPECT_THAT(refusal(kEverything, MscclDialect::microsoft), HasSubstr("coll=\"custom\""));
  EXPECT_THAT(refusal(scatter_text(65), MscclDialect::rccl),
              HasSubstr("needs 65 steps; the executor has room for 64"));
}

/// One rank and workgroup; tests change its one operation.
Program single(Op op) {
  Program program;
  program.name = "single";
  program.collective = Collective::all_reduce;
  program.ranks = 2;
  program.chunks_per_size = 4;
  program.buffers = {{.name = "input", .kind = BufferKind::input, .chunks = {4}},
                     {.name = "output", .kind = BufferKind::output, .chunks = {4}}};
  program.inbound = program.outbound = 1;
  program.bodies = {Body{{std::move(op)}}};
  program.kernels = {Kernel{.name = "k", .bodies = {0}}};
  program.codes = {RankCode{{{StreamItem{}}}}};
  program.code_of = {0, 0};
  program.finish();
  return program;
}

Op copy(Operand from, Operand to) {
  Op op;
  op.kind = OpKind::copy;
  op.src = {std::move(from)};
  op.dst = {std::move(to)};
  op.where = "/here";
  return op;
}

TEST(MscclWriter, operands_are_evaluated_for_each_rank) {
  const std::string text =
      write_msccl(single(copy({.chunk = own_rank()}, {.buffer = 1, .chunk = neighbour(1, 2)})));
  EXPECT_THAT(text, HasSubstr("srcbuf=\"i\" srcoff=\"0\" dstbuf=\"o\" dstoff=\"1\""));
  EXPECT_THAT(text, HasSubstr("srcbuf=\"i\" srcoff=\"1\" dstbuf=\"o\" dstoff=\"0\""));
}

TEST(MscclWriter, counted_loops_are_unrolled) {
  Program program =
      single(copy({.chunk = {.loop = {1, 0}}}, {.buffer = 1, .chunk = {.loop = {1, 0}}}));
  Op loop;
  loop.kind = OpKind::loop;
  loop.count = 3;
  Op end;
  end.kind = OpKind::end_loop;
  program.bodies[0].ops = {loop, program.bodies[0].ops[0], end};
  const Program read = round_trip(program);
  int copies = 0;
  for (const Op& op : read.bodies.at(0).ops) copies += op.kind == OpKind::copy ? 1 : 0;
  EXPECT_EQ(copies, 3);
  program.bodies[0].ops[0].count = std::int64_t{1} << 60;
  EXPECT_THAT(writer_refusal(program), HasSubstr("unrolls to more than"));
}

TEST(MscclWriter, operations_of_other_formats_are_named) {
  Op op = copy({}, {.buffer = 1});
  op.kind = OpKind::put;
  EXPECT_THAT(writer_refusal(single(op)),
              HasSubstr("operation 'put' of rank 0, workgroup 0: the format has no such step"));
  EXPECT_THAT(writer_refusal(single(op)), HasSubstr("/here"));
}

TEST(MscclWriter, remote_and_packet_operands_are_refused) {
  EXPECT_THAT(writer_refusal(single(copy({.rank = constant(1)}, {.buffer = 1}))),
              HasSubstr("operands are local"));
  EXPECT_THAT(writer_refusal(single(copy({.access = Access::packet}, {.buffer = 1}))),
              HasSubstr("operands are plain memory"));
}

TEST(MscclWriter, a_workgroup_has_one_peer_each_way) {
  Op send;
  send.kind = OpKind::send;
  send.src = {Operand{}};
  send.send_to = {constant(1), 0, 0, 0};
  Program program = single(send);
  program.ranks = 3;
  program.code_of = {0, 0, 0};
  program.bodies[0].ops.push_back(send);
  program.bodies[0].ops.back().send_to.peer = constant(2);
  EXPECT_THAT(writer_refusal(program), HasSubstr("more than one send peer"));
}

TEST(MscclWriter, reductions_that_do_not_add_to_their_destination_are_refused) {
  Op op = copy({}, {.buffer = 1});
  op.kind = OpKind::reduce;
  op.src.push_back({.chunk = constant(1)});
  EXPECT_THAT(writer_refusal(single(op)), HasSubstr("a reduction adds to its one destination"));
}

TEST(MscclWriter, waits_without_a_following_step_are_refused) {
  Op wait;
  wait.kind = OpKind::dep_wait;
  wait.semaphores = {{.index = 0}};
  wait.target = 1;
  EXPECT_THAT(writer_refusal(single(wait)), HasSubstr("nothing follows it"));
}

TEST(MscclWriter, collectives_without_a_name_are_refused) {
  Program program = single(copy({}, {.buffer = 1}));
  program.collective = Collective::send_recv;
  EXPECT_THAT(writer_refusal(program), HasSubstr("no collective 'send-recv'"));
}

}  // namespace
}  // namespace hemiola::program
