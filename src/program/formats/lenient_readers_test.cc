// What readers of programs take though executors do not look at it, or only some do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/lenient.h"
#include "program/bind/bound.h"
#include "program/program.h"
#include "program/testing/msccl_text.h"

namespace hemiola::program {
namespace {

using msccl::algo;
using msccl::gpu;
using msccl::replaced;
using msccl::tb;
using ::testing::HasSubstr;
using ::testing::Not;

/// Two gpus that exchange and add; with more attributes of <algo>.
std::string exchange(const std::string& more) {
  const std::string steps0 = tb(0, 1, 1, {{"s", "i 0"}, {"rrc", "i 1", "i 1"}, {"re"}});
  return algo({gpu(0, steps0), gpu(1, tb(0, 0, 0, {{"s"}, {"r"}}))}, more);
}

ReduceOp reduction_of(const Program& program, OpKind kind) {
  for (const Body& body : program.bodies) {
    for (const Op& op : body.ops)
      if (op.kind == kind) return op.reduce;
  }
  ADD_FAILURE() << "no " << name_of(kind);
  return ReduceOp::none;
}

std::string msccl_failure(const std::string& xml) {
  try {
    read_msccl(xml, "test.xml");
  } catch (const Failure& failure) {
    return failure.what();
  }
  return "no failure";
}

TEST(MscclRedop, is_the_operation_of_all_steps_that_reduce) {
  const Program program = read_msccl(exchange(" redop=\"max\""), "test.xml");
  EXPECT_EQ(reduction_of(program, OpKind::recv_reduce_copy), ReduceOp::max);
  EXPECT_EQ(reduction_of(program, OpKind::reduce), ReduceOp::max);
  EXPECT_EQ(reduction_of(program, OpKind::send), ReduceOp::none);
  const Bound bound = bind(program, nullptr, {.size = {32}});
  EXPECT_EQ(bound.op(), ReduceOp::max);
  EXPECT_THAT(bound.warnings().render(), HasSubstr("reduces with max; sum is not used"));
}

TEST(MscclRedop, is_the_callers_where_the_file_names_none) {
  EXPECT_EQ(reduction_of(read_msccl(exchange(""), "test.xml"), OpKind::reduce), ReduceOp::none);
  const Program program = read_msccl(exchange(" redop=\"nop\""), "test.xml");
  EXPECT_EQ(reduction_of(program, OpKind::reduce), ReduceOp::none);
  EXPECT_THAT(program.warnings.render(), HasSubstr("ignored: redop is 'nop', but steps reduce"));
}

TEST(MscclRedop, survives_being_written) {
  for (const char* more : {" redop=\"max\"", " redop=\"sum\"", ""}) {
    const Program program = read_msccl(exchange(more), "test.xml");
    const std::string text = write_msccl(program);
    EXPECT_THAT(text, *more ? ::testing::Matcher<std::string>(HasSubstr(more + 1))
                            : ::testing::Matcher<std::string>(Not(HasSubstr("redop"))));
    EXPECT_EQ(reduction_of(read_msccl(text, "again.xml"), OpKind::reduce),
              reduction_of(program, OpKind::reduce));
  }
}

TEST(MscclRedop, of_an_unknown_name_is_refused) {
  EXPECT_THAT(msccl_failure(exchange(" redop=\"mean\"")), HasSubstr("unknown redop 'mean'"));
}

/// An all-gather in place of two gpus with four chunks each, and a <copy> on gpu 1.
std::string with_copy(const std::string& copy, const std::string& place = "1") {
  const std::string own = gpu(0, tb(0, -1, -1, {{"cpy", "o 0", "o 1"}}));
  std::string text =
      algo({own, replaced(gpu(1, ""), "</gpu>", copy + "</gpu>")}, "", "Simple", "allgather");
  for (int i = 0; i < 2; ++i) text = replaced(text, "i_chunks=\"8\"", "i_chunks=\"4\"");
  return replaced(text, "inplace=\"0\"", "inplace=\"" + place + "\"");
}

TEST(MscclCopy, of_memory_onto_itself_is_ignored) {
  const Program program = read_msccl(with_copy("<copy i_off=\"1\" o_off=\"5\"/>"), "test.xml");
  ASSERT_EQ(program.warnings.items().size(), 1u) << program.warnings.render();
  EXPECT_TRUE(is_lenient(program.warnings.items()[0]));
  EXPECT_THAT(program.warnings.render(),
              HasSubstr("ignored: <copy> of chunk 1 of the input to chunk 5 of the output, which "
                        "are one memory (at /algo/gpu[1]/copy[0])"));
}

TEST(MscclCopy, that_nobody_carries_out_is_said_so) {
  for (const std::string& xml : {with_copy("<copy i_off=\"1\" o_off=\"4\"/>"),
                                 with_copy("<copy i_off=\"1\" o_off=\"5\"/>", "0")}) {
    const std::string warnings = read_msccl(xml, "test.xml").warnings.render();
    EXPECT_THAT(warnings, HasSubstr("which no interpreter carries out"));
    EXPECT_THAT(warnings, HasSubstr("a step of type 'cpy' copies it"));
  }
}

TEST(MscclCopy, of_chunks_that_are_not_there_is_refused) {
  EXPECT_THAT(msccl_failure(with_copy("<copy i_off=\"4\" o_off=\"5\"/>")),
              HasSubstr("attribute 'i_off' is 4, outside 0 .. 3 (at /algo/gpu[1]/copy[0])"));
  EXPECT_THAT(msccl_failure(with_copy("<copy i_off=\"0\"/>")),
              HasSubstr("attribute 'o_off' of <copy> is missing"));
  EXPECT_THAT(msccl_failure(with_copy("<copy i_off=\"0\" o_off=\"0\" n=\"1\"/>")),
              HasSubstr("unknown attribute 'n' of <copy>"));
  EXPECT_THAT(msccl_failure(with_copy("<cpoy/>")), HasSubstr("unexpected element <cpoy> in <gpu>"));
}

/// A plan of one GPU that copies input to output, with more keys of the source operand.
std::string copying(const std::string& more) {
  return R"({"name": "test", "collective": "allreduce", "protocol": "Simple", "inplace": false,
"gpus": [{"id": 0, "input_chunks": 1, "output_chunks": 1, "scratch_chunks": 0, "threadblocks":
 [{"id": 0, "ops": [{"name": "copy", "src_buff": [{)" +
         more + R"("type": "i", "index": 0, "size": 1}],
  "dst_buff": [{"type": "o", "index": 0, "size": 1}]}]}]}]})";
}

TEST(MscclppRank, of_a_local_operand_is_ignored_where_it_is_the_own) {
  const Program program = read_mscclpp(copying("\"rank\": 0, "), "plan.json");
  ASSERT_EQ(program.warnings.items().size(), 1u);
  EXPECT_TRUE(is_lenient(program.warnings.items()[0]));
  EXPECT_THAT(program.warnings.render(), HasSubstr("plan.json:3:"));
  EXPECT_TRUE(program.bodies.at(0).ops == read_mscclpp(copying(""), "plan.json").bodies.at(0).ops);
}

TEST(MscclppRank, of_another_gpu_is_refused) {
  const auto message = [](const std::string& more) {
    try {
      read_mscclpp(copying(more), "plan.json");
    } catch (const Failure& failure) {
      return std::string(failure.what());
    }
    return std::string("no failure");
  };
  EXPECT_THAT(message("\"rank\": 1, "),
              HasSubstr("names rank 1, but a buffer by its type is that of rank 0 itself (at "
                        "/gpus/0/threadblocks/0/ops/0/src_buff/0/rank)"));
  EXPECT_THAT(message("\"rank\": \"a\", "), HasSubstr("/src_buff/0/rank"));
}

}  // namespace
}  // namespace hemiola::program
