// Bad plans: each gives one message with its place and a hint, and none crashes the reader.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <string>

#include "core/diagnostics.h"
#include "program/bind/bound.h"
#include "program/program.h"

namespace hemiola::program {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

const std::string kGood = R"({
"name": "test", "collective": "allreduce", "protocol": "LL", "inplace": true,
"gpus": [
{"id": 0, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 2,
 "channels": [{"channel_type": "memory", "connected_to": [1]}, {"channel_type": "switch", "buffer_type": "i", "rank_groups": [{"size": 2, "ranks": [0, 1]}]}],
 "remote_buffers": [{"rank": 1, "type": "s", "access_channel_types": ["memory"]}],
 "semaphores": [{"init_value": 0}],
 "threadblocks": [{"id": 0, "ops": [
  {"name": "ppkt", "channel_type": "memory", "src_buff": [{"type": "i", "index": 0, "size": 1}], "dst_buff": [{"buffer_id": 0, "index": 1, "size": 1}]},
  {"name": "signal", "channel_type": "memory", "channel_ids": [0]},
  {"name": "pipeline", "iter_context": {"unit_size": 32, "num_chunks": 1}, "ops": [{"name": "nop"}]},
  {"name": "sem_acquire", "semaphore_ids": [0]},
  {"name": "barrier", "barrier_id": 0, "num_threadblocks": 1}],
  "channels": [{"channel_type": "memory", "channel_ids": [0]}],
  "remote_buffer_refs": [{"access_channel_type": "memory", "remote_buffer_ids": [0]}]}]},
{"id": 1, "input_chunks": 2, "output_chunks": 2, "scratch_chunks": 2, "threadblocks": []}],
"num_threads_per_block": 256, "buffer_alignment": 16, "min_message_size": 0, "max_message_size": 18446744073709551615
})";

std::string mscclpp_failure(const std::string& text) {
  try {
    read_mscclpp(text, "plan.json");
  } catch (const Failure& failure) {
    EXPECT_EQ(failure.code(), ExitCode::bad_input);
    return failure.what();
  }
  return "no failure";
}

/// The good plan with its first `from` replaced.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return mscclpp_failure(text.replace(at, from.size(), to));
}

TEST(MscclppErrors, the_good_plan_is_good) {
  EXPECT_EQ(mscclpp_failure(kGood), "no failure");
}

TEST(MscclppErrors, syntax_errors_have_line_and_column) {
  EXPECT_THAT(mscclpp_failure("{\n  \"name\": ,\n}"),
              HasSubstr("plan.json:2:11: error: the JSON text is malformed here"));
  EXPECT_THAT(mscclpp_failure("{\"name\": \"x\""), HasSubstr("ends too early"));
  EXPECT_THAT(mscclpp_failure(""), HasSubstr("ends too early"));
  EXPECT_THAT(mscclpp_failure("[1e999]"), HasSubstr("too large"));
  EXPECT_THAT(mscclpp_failure("[]"), HasSubstr("an object is needed here, not an array"));
}

TEST(MscclppErrors, unknown_names_come_with_a_suggestion_and_a_place) {
  EXPECT_THAT(with("\"ppkt\"", "\"pptk\""),
              AllOf(HasSubstr("plan.json:9:12: error: unknown operation 'pptk' (at "
                              "/gpus/0/threadblocks/0/ops/0/name)"),
                    HasSubstr("did you mean 'ppkt'?")));
  EXPECT_THAT(with("\"inplace\"", "\"in_place\""),
              AllOf(HasSubstr("unknown key 'in_place'"), HasSubstr("did you mean 'inplace'?")));
  EXPECT_THAT(with("\"index\": 0", "\"idx\": 0"), HasSubstr("unknown key 'idx'"));
  EXPECT_THAT(with("\"type\": \"s\"", "\"type\": \"x\""), HasSubstr("unknown buffer type 'x'"));
  EXPECT_THAT(with("[{\"channel_type\": \"memory\"", "[{\"channel_type\": \"memroy\""),
              HasSubstr("did you mean 'memory'?"));
  EXPECT_THAT(with("\"LL\"", "\"LL256\""), HasSubstr("unknown protocol 'LL256'"));
}

TEST(MscclppErrors, missing_keys_are_named) {
  EXPECT_THAT(with("\"name\": \"test\", ", ""), HasSubstr("the key 'name' is missing"));
  EXPECT_THAT(with("\"input_chunks\": 2, ", ""),
              HasSubstr("the key 'input_chunks' is missing (at /gpus/0)"));
  EXPECT_THAT(with(", \"semaphore_ids\": [0]", ""), HasSubstr("'semaphore_ids' is missing"));
  EXPECT_THAT(with(", \"channel_ids\": [0]", ""), HasSubstr("'channel_ids' is missing"));
}

TEST(MscclppErrors, indices_out_of_range_are_named_with_what_there_is) {
  EXPECT_THAT(with("\"connected_to\": [1]", "\"connected_to\": [2]"),
              HasSubstr("rank 2 is not there: the plan has 2 GPUs"));
  EXPECT_THAT(with("\"connected_to\": [1]", "\"connected_to\": [0]"),
              HasSubstr("rank 0 is connected to itself"));
  EXPECT_THAT(with("\"buffer_id\": 0", "\"buffer_id\": 1"),
              HasSubstr("there is no remote buffer 1: the thread block has 1"));
  EXPECT_THAT(with("\"channel_ids\": [0]}", "\"channel_ids\": [3]}"),
              HasSubstr("there is no channel of this type 3: the thread block has 1"));
  EXPECT_THAT(with("\"semaphore_ids\": [0]", "\"semaphore_ids\": [1]"),
              HasSubstr("there is no semaphore 1: the GPU has 1"));
  EXPECT_THAT(with("\"remote_buffer_ids\": [0]", "\"remote_buffer_ids\": [9]"),
              HasSubstr("there is no remote buffer 9: the GPU has 1"));
  EXPECT_THAT(with("\"index\": 1", "\"index\": 2"),
              HasSubstr("chunks [2, 3) of scratch of rank 1, which has 2"));
  EXPECT_THAT(with("\"index\": 0", "\"index\": -1"), HasSubstr("-1 is not in the range"));
  EXPECT_THAT(with("\"index\": 0", "\"index\": 0.5"), HasSubstr("not a fraction"));
  EXPECT_THAT(with("\"index\": 0", "\"index\": 99999999999999999999"), HasSubstr("not a fraction"));
  EXPECT_THAT(with("\"num_threadblocks\": 1", "\"num_threadblocks\": 2"),
              HasSubstr("a barrier of 2 thread blocks on a GPU that has 1"));
  EXPECT_THAT(with("\"unit_size\": 32", "\"unit_size\": 0"), HasSubstr("0 is not in the range"));
  EXPECT_THAT(with("\"buffer_alignment\": 16", "\"buffer_alignment\": 0"),
              HasSubstr("0 is not in the range"));
}

TEST(MscclppErrors, gpus_and_thread_blocks_are_numbered_in_order) {
  EXPECT_THAT(with("{\"id\": 1,", "{\"id\": 2,"),
              HasSubstr("GPU 2 stands where GPU 1 is needed (at /gpus/1/id)"));
  EXPECT_THAT(with("[{\"id\": 0, \"ops\"", "[{\"id\": 1, \"ops\""),
              HasSubstr("thread block 1 stands where thread block 0 is needed"));
  EXPECT_THAT(
      mscclpp_failure(
          R"({"name": "x", "collective": "allreduce", "protocol": "LL", "inplace": true, "gpus": []})"),
      HasSubstr("the plan has no GPUs"));
}

TEST(MscclppErrors, operands_must_suit_the_operation) {
  EXPECT_THAT(with("{\"type\": \"i\", \"index\": 0, \"size\": 1}",
                   "{\"buffer_id\": 0, \"index\": 0, \"size\": 1}"),
              HasSubstr("a local buffer is needed here"));
  EXPECT_THAT(with("{\"buffer_id\": 0, \"index\": 1, \"size\": 1}",
                   "{\"type\": \"s\", \"index\": 1, \"size\": 1}"),
              HasSubstr("a remote buffer is needed here"));
}

TEST(MscclppErrors, sizes_of_operands_must_agree) {
  EXPECT_THAT(with("{\"type\": \"i\", \"index\": 0, \"size\": 1}",
                   "{\"type\": \"i\", \"index\": 0, \"size\": 2}"),
              HasSubstr("different sizes"));
}

TEST(MscclppErrors, an_unknown_collective_is_a_warning) {
  std::string text = kGood;
  text.replace(text.find("\"allreduce\""), 11, "\"shuffle\"");
  const Program program = read_mscclpp(text, "plan.json");
  EXPECT_EQ(program.collective, Collective::custom);
  EXPECT_THAT(program.warnings.render(), HasSubstr("collective 'shuffle' is not known"));
}

RC_GTEST_PROP(MscclppErrors, truncated_plans_fail_and_never_crash, ()) {
  const auto length = *rc::gen::inRange<std::size_t>(0, kGood.size() - 1);
  RC_ASSERT(mscclpp_failure(kGood.substr(0, length)) != "no failure");
}

RC_GTEST_PROP(MscclppErrors, mutated_plans_fail_or_bind_and_never_crash, ()) {
  std::string text = kGood;
  const int changes = *rc::gen::inRange(1, 4);
  for (int i = 0; i < changes; ++i) {
    const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
    text[at] = *rc::gen::element('0', '1', '9', '-', '"', '{', '}', '[', ']', ',', ':', 'i', 's',
                                 'x', '\0', '\xff');
  }
  try {
    const Program program = read_mscclpp(text, "plan.json");
    bind(program, nullptr, {.size = program.next_legal_size({64}, DataType::float32)});
    read_mscclpp(write_mscclpp(program), "again");
  } catch (const Failure& failure) {
    RC_ASSERT(failure.diagnostics().has_errors());
  }
}

}  // namespace
}  // namespace hemiola::program
